"""Local sampling: the radii of support rows, then an SVM at one radius of balls after the other."""

from itertools import pairwise

import numpy as np

from daskls.methods.sampling.balls import (
    INITIAL,
    RADII,
    BallJob,
    ball_quotas,
    draw_balls,
    draws_of,
    join_support,
    measure_radii,
    merge_draws,
    positive_radii,
)
from daskls.methods.sampling.parts import has_part, read_part, write_part
from daskls.methods.sampling.plan import most_pairs
from daskls.methods.sampling.search import N_SEARCH_TASKS, SampleSearch, Step, errors_of, stalls
from daskls.methods.sampling.train import SAMPLES, SUPPORT, TrainJob, fit_subsamples
from daskls.records import Float64, Int64
from daskls.run.compute import compute_each

__all__ = ["MAX_RADIUS_STEPS", "RadiusSearch"]

# The search for beta: 0.1, 0.2 and so on; the paper's useful values end at 1.
RADIUS_STEP = 0.1
MAX_RADIUS_STEPS = 20
# Radii in a row that are no better than one before end the search. One may be chance: of eight
# searches on covtype that ended at the first, one had 1.7 times the error of the others.
RADIUS_PATIENCE = 2
# A task reads all leaves that its balls reach: with so many balls that reading is little of it.
MIN_BALLS = 256


class RadiusSearch(SampleSearch):
    """The radii: subsamples are trained once, each radius draws its rows anew."""

    def steps(self) -> list[Step]:
        """Train subsamples, measure radii, then train at one radius after the other."""
        n = self.job.draws.n_subsamples
        with self.clock.stage("subsamples", n, self.count(SUPPORT)):
            job = TrainJob(self.job, self.drawn)
            self.run(fit_subsamples, SUPPORT, [1] * n, job)
            n_support = self._count_support(n)
            if n_support:
                self._join(n, n_support)
                radii = self._measure()
        given = self.sampling.radius_scale
        scales = (
            [round(RADIUS_STEP * (step + 1), 10) for step in range(MAX_RADIUS_STEPS)]
            if given is None
            else [given]
        )
        with self.clock.stage("search", len(scales), self.count_steps):
            return self._try_radii(scales, radii) if n_support else [self.constant(0, scales[0])]

    def _count_support(self, n_subsamples: int) -> int:
        """Return the number of support rows of all subsamples."""
        tiles = self.tiles(SUPPORT, n_subsamples)
        found = [read_part(self.root, SUPPORT, *tile, ("numbers",)) for tile in tiles]
        return sum(len(part["numbers"]) for part in found)

    def _join(self, n_subsamples: int, n_support: int) -> None:
        """Write all support rows together.

        Raises
        ------
        MemoryPlanError : a task would not hold them
        """
        self.check(n_support, "The support rows of all subsamples", "lower sample_fraction")
        self.compute_small(join_support, self.tiles(SUPPORT, n_subsamples), self.job)

    def _measure(self) -> Float64:
        """Write the radii of the support rows, and return them."""
        if not has_part(self.root, RADII, 0, 0):
            m = len(read_part(self.root, INITIAL, 0, 0, ("numbers",))["numbers"])
            k = min(max(int(np.log(m)), 1), m - 1)
            ends = np.linspace(0, m, min(N_SEARCH_TASKS, -(-m // 512)) + 1)
            parts = list(pairwise(ends.astype(int).tolist()))
            found = compute_each(
                measure_radii, [(part, k, self.job) for part in parts], self.client
            )
            radii = positive_radii(np.concatenate(found))
            write_part(self.root, RADII, 0, 0, {"radii": radii})
        return read_part(self.root, RADII, 0, 0, ("radii",))["radii"]

    def _try_radii(self, scales: list[float], radii: Float64) -> list[Step]:
        median = float(np.median(radii))
        quotas = ball_quotas(radii, self.job.draws.n_others)
        steps: list[Step] = []
        before: Int64 | None = None
        for number, scale in enumerate(scales):
            numbers = self._sample_balls(number, scale, median, quotas)
            # Balls may hold no rows yet, or the same ones: then so does the sample.
            if before is not None and np.array_equal(numbers, before):
                continue
            before = numbers
            remedy = f"give radius_scale below {scale:g}"
            steps.append(self.train(number, scale, len(numbers), remedy))
            if stalls(errors_of(steps), RADIUS_PATIENCE):
                break
        return steps

    def _sample_balls(self, step: int, scale: float, median: float, quotas: Int64) -> Int64:
        """Write the sample of one radius; return its row numbers."""
        if not has_part(self.root, SAMPLES, step, step):
            kind = draws_of(step)
            leaf_rows = int(np.diff(self.reader.first_positions).max())
            sizes, resources = self.begun.sizes, self.begun.resources
            most = most_pairs(sizes, len(quotas), leaf_rows, resources, self.fraction)
            job = BallJob(self.job, step, scale, scale * median, most)
            self.run(draw_balls, kind, self._costs(quotas, most), job, limit=1.0)
            self.write_sample(step, *merge_draws(self.tiles(kind, len(quotas)), job))
        return read_part(self.root, SAMPLES, step, step, ("numbers",))["numbers"]

    def _costs(self, quotas: Int64, most: int) -> list[float]:
        """Return what drawing from each ball costs, in parts of what one task takes on.

        No task of several balls may keep more than ``most`` pairs of a ball and a row.
        """
        # What a ball may draw, and what it is to look for its rows.
        work = quotas + quotas.mean() + 1
        share = max(self.share_of(work.sum()), MIN_BALLS * work.mean())
        costs: list[float] = np.maximum(work / share, quotas / most).tolist()
        return costs
