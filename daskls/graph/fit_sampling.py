"""The stages of a fit that trains one SVM on a sample chosen around support rows."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask
import numpy as np

from daskls.errors import DataError
from daskls.graph.balls import (
    INITIAL,
    RADII,
    BallJob,
    draw_balls,
    draws_of,
    join_support,
    measure_radii,
    merge_draws,
    positive_radii,
)
from daskls.graph.begin import Beginning, begin_fit, regroup_all, resolved_spec
from daskls.graph.cluster import compute, run_each
from daskls.graph.enrich import EnrichJob, merge_round, nearest_of, search_support
from daskls.graph.fit import FitResult
from daskls.graph.gather import gather_rows, has_rows, rows_handle
from daskls.graph.identity import FitRequest
from daskls.graph.progress import Progress, StageClock
from daskls.graph.rows import BlockRows
from daskls.graph.sampling import (
    DRAWN,
    KEPT,
    SAMPLES,
    SUPPORT,
    SamplingJob,
    TrainJob,
    draw_rows,
    fit_constant,
    fit_sample,
    fit_subsamples,
    read_drawn,
)
from daskls.partition.subsamples import plan_draws
from daskls.plan import (
    SEARCHED_ROWS,
    beside_svc,
    cache_nbytes,
    check_sampling,
    check_trained,
    group_open,
)
from daskls.records import CellReport, IntArray, SamplingSpec
from daskls.store.layout import Root
from daskls.store.models import BundleModels, done_mask, drop_others, find_tiles, finished_bundles
from daskls.store.parts import has_part, kind_path, read_part, remove_parts, write_part
from daskls.store.reader import ModelReader, write_single_index

__all__ = ["MAX_RADIUS_STEPS", "MAX_ROUNDS", "run_sampling_fit"]

# The search for beta: 0.1, 0.2 and so on; the paper's useful values end at 1.
RADIUS_STEP = 0.1
MAX_RADIUS_STEPS = 20
# Rounds of procedure CGLQ after the first SVM, and the relative fall of the error that one needs.
MAX_ROUNDS = 10
LEAST_FALL = 0.01
TASKS_PER_SLOT = 4


def run_sampling_fit(
    sampling: SamplingSpec,
    request: FitRequest,
    rows: BlockRows,
    store: Path,
    client: Any = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> FitResult:
    """Gather the rows by leaf, train on drawn rows, then on what is near their support rows.

    Parameters
    ----------
    sampling : SamplingSpec
    request : FitRequest
    rows : BlockRows
    store : Path. The model's folder; made if it does not exist.
    client : distributed client, or None for the current scheduler
    on_progress : called from a thread as work advances

    Returns
    -------
    result : FitResult
    """
    clock = StageClock(on_progress)
    check = partial(check_sampling, sampling=sampling)
    begun = begin_fit(request, rows, store, check, clock, client)
    root = begun.root
    if not root.is_complete:
        # Workers may have loaded the SVC in an earlier fit.
        lighter = replace(begun, resources=beside_svc(begun.resources))
        if not has_rows(begun):
            _, exchange, leaf_rows = regroup_all(begun, check, clock, client)
            gather_rows(lighter, exchange, leaf_rows, clock, client)
        search = Search(lighter, sampling, clock, client)
        search.draw()
        steps = search.rounds() if sampling.name == "cglq" else search.radii()
        _finish(root, steps, search.job)
    _clean_up(root)
    return FitResult(begun.fingerprint, clock.seconds)


@dataclass(frozen=True)
class Step:
    """One model that was tried: its number, beta or the round, and what its training reports."""

    number: int
    value: float
    report: CellReport


class Search:
    """The stages after the rows are gathered: each does what the store does not hold yet."""

    def __init__(
        self, begun: Beginning, sampling: SamplingSpec, clock: StageClock, client: Any
    ) -> None:
        self.begun, self.sampling, self.clock, self.client = begun, sampling, clock, client
        self.root = begun.root.path
        n_rows = begun.scan.n_kept
        draws = plan_draws(n_rows, sampling.sample_fraction, sampling.n_subsamples, begun.seed)
        self.job = SamplingJob(
            rows_handle(begun),
            draws,
            resolved_spec(begun),
            len(begun.scan.labels),
            cache_nbytes(begun.sizes, draws.subsample_rows, begun.resources),
            MAX_ROUNDS * draws.subsample_rows if sampling.name == "cglq" else 0,
        )
        self.reader = self.job.handle.open()

    def draw(self) -> None:
        """Write the rows of subsamples and validation."""
        with self.clock.stage("draw", self.reader.n_leaves, self._count(DRAWN)):
            self._run(draw_rows, self.reader.n_leaves, DRAWN, self._leaf_rows(), self.job)
        self.drawn = self._tiles(DRAWN, self.reader.n_leaves)

    def _leaf_rows(self) -> list[int]:
        rows: list[int] = np.diff(self.reader.first_places).tolist()
        return rows

    def _run(
        self,
        task: Callable[..., Any],
        n: int,
        kind: str,
        costs: list[int],
        job: Any,
        most: int = 0,
    ) -> None:
        """Run a task on groups of n items that no part on disk holds.

        Groups have about equal cost, and ``most`` of it if it is given.
        """
        share = -(-sum(costs) // (TASKS_PER_SLOT * self.begun.resources.n_slots))
        share = min(share, most or share)
        done = done_mask(self.root, n, kind_path(kind))
        run_each(task, group_open(costs, done, share), job, self.client)

    def _tiles(self, kind: str, n: int) -> tuple[tuple[int, int], ...]:
        return tuple(find_tiles(self.root, n, kind_path(kind)))

    def _count(self, kind: str) -> Callable[[], int]:
        """Return a function that counts what the parts of a kind hold."""
        return lambda: sum(b + 1 - a for a, b in finished_bundles(self.root, kind_path(kind)))

    def _compute(self, task: Callable[..., Any], *args: Any) -> Any:
        """Run one task of which the client needs no more than a small answer."""
        return compute([dask.delayed(task, pure=False)(*args)], self.client)[0]

    # Local sampling

    def radii(self) -> list[Step]:
        """Train subsamples, measure radii, then train at one radius after the other."""
        n = self.job.draws.n_subsamples
        with self.clock.stage("subsamples", n, self._count(SUPPORT)):
            job = TrainJob(self.job, self.drawn)
            self._run(fit_subsamples, n, SUPPORT, [1] * n, job)
            n_support = self._count_support(n)
            if n_support:
                self._join(n, n_support)
                median = self._measure()
        given = self.sampling.radius_scale
        scales = (
            [round(RADIUS_STEP * (step + 1), 10) for step in range(MAX_RADIUS_STEPS)]
            if given is None
            else [given]
        )
        with self.clock.stage("search", len(scales), self._count_steps):
            return self._try_radii(scales, median) if n_support else [self._constant(0, scales[0])]

    def _count_support(self, n_subsamples: int) -> int:
        """Return the number of support rows of all subsamples."""
        tiles = self._tiles(SUPPORT, n_subsamples)
        found = [read_part(self.root, SUPPORT, *tile, ("numbers",)) for tile in tiles]
        return sum(len(part["numbers"]) for part in found)

    def _join(self, n_subsamples: int, n_support: int) -> None:
        """Write all support rows together.

        Raises
        ------
        MemoryPlanError : a task would not hold them
        """
        self._check(n_support, "The support rows of all subsamples", "lower sample_fraction")
        self._compute(join_support, self._tiles(SUPPORT, n_subsamples), self.job)

    def _check(self, n_rows: int, what: str, remedy: str) -> None:
        check_trained(self.begun.sizes, n_rows, self.begun.resources, what=what, remedy=remedy)

    def _measure(self) -> float:
        """Return the median radius of the support rows; write all of them."""
        if not has_part(self.root, RADII, 0, 0):
            m = len(read_part(self.root, INITIAL, 0, 0, ("numbers",))["numbers"])
            k = min(max(int(np.log(m)), 1), m - 1)
            ends = np.linspace(0, m, min(self.begun.resources.n_slots, -(-m // 512)) + 1)
            parts = list(pairwise(ends.astype(int).tolist()))
            measure = dask.delayed(measure_radii, pure=False)
            found = compute([measure(part, k, self.job) for part in parts], self.client)
            radii = positive_radii(np.concatenate(found))
            write_part(self.root, RADII, 0, 0, {"radii": radii})
        radii = read_part(self.root, RADII, 0, 0, ("radii",))["radii"]
        return float(np.median(radii))

    def _try_radii(self, scales: list[float], median: float) -> list[Step]:
        steps: list[Step] = []
        before: IntArray | None = None
        for number, scale in enumerate(scales):
            numbers = self._sample_balls(number, scale * median)
            # Balls may hold no rows yet, or the same ones: then so does the sample.
            if before is not None and np.array_equal(numbers, before):
                continue
            before = numbers
            steps.append(self._train(number, scale, len(numbers), "radius_scale"))
            if len(steps) > 1 and not _falls(steps, 0.0):
                break
        return steps

    def _sample_balls(self, step: int, radius: float) -> IntArray:
        """Write the sample of one radius; return its row numbers."""
        if not has_part(self.root, SAMPLES, step, step):
            n, kind = self.reader.n_leaves, draws_of(step)
            self._run(draw_balls, n, kind, self._leaf_rows(), BallJob(self.job, step, radius))
            tiles = self._tiles(kind, n)
            self._write_sample(step, *merge_draws(step, tiles, self.job))
        return read_part(self.root, SAMPLES, step, step, ("numbers",))["numbers"]

    def _write_sample(self, step: int, numbers: IntArray, places: IntArray) -> None:
        write_part(self.root, SAMPLES, step, step, {"numbers": numbers, "places": places})

    # Procedure CGLQ

    def rounds(self) -> list[Step]:
        """Train on a subsample, then round after round on what is near its support rows."""
        steps: list[Step] = []
        with self.clock.stage("search", MAX_ROUNDS + 1, self._count_steps):
            for number in range(MAX_ROUNDS + 1):
                if not has_part(self.root, SAMPLES, number, number):
                    self._write_sample(number, *self._sample_round(number, steps))
                found = read_part(self.root, SAMPLES, number, number, ("numbers",))
                steps.append(self._train(number, number, len(found["numbers"]), "n_neighbors"))
                if not (number or steps[0].report.n_support):
                    # Another number: the model of the subsample alone has this one.
                    return [self._constant(1, 0)]
                if number and not _falls(steps, LEAST_FALL):
                    break
        return steps

    def _sample_round(self, number: int, steps: list[Step]) -> tuple[IntArray, IntArray]:
        """Return numbers and places of the rows that a round trains on."""
        draws = self.job.draws
        if number == 0:
            rows, _, places = read_drawn(self.job, self.drawn, 0, draws.n_sampled)
            return rows.numbers, places
        k = min(self.sampling.n_neighbors, draws.n_rows - draws.n_validation - 1)
        before, n_support = steps[-1].number, steps[-1].report.n_support
        job = EnrichJob(self.job, before, k)
        kind, costs = nearest_of(before), [1] * n_support
        self._run(search_support, n_support, kind, costs, job, SEARCHED_ROWS)
        tiles = self._tiles(kind, n_support)
        return merge_round(before, tiles, self.drawn, self.job)

    # Both

    def _train(self, number: int, value: float, n_rows: int, parameter: str) -> Step:
        """Train on the sample of a step, unless its model is there; return what it reports."""
        fraction = self.sampling.sample_fraction
        remedy = f"lower {parameter}, or lower sample_fraction below {fraction:g}"
        if parameter == "radius_scale":
            remedy = (
                f"give radius_scale below {value:g}, or lower sample_fraction below {fraction:g}"
            )
        self._check(n_rows, f"The sample of step {number}", remedy)
        cache = cache_nbytes(self.begun.sizes, n_rows, self.begun.resources)
        job = TrainJob(replace(self.job, cache_nbytes=cache), self.drawn)
        self._compute(fit_sample, number, job)
        return self._reported(number, value)

    def _reported(self, number: int, value: float) -> Step:
        """Return what the training of a step wrote."""
        table = BundleModels(self.root, number, number, self.job.spec).report()
        return Step(number, value, CellReport(*table[0].item()))

    def _constant(self, number: int, value: float) -> Step:
        """Answer one class everywhere, where subsamples of two classes hold equal rows only.

        Raises
        ------
        DataError : no subsample has two classes, and there are rows that differ
        """
        if not (self._has_equal_rows() or self._has_mixed_subsample()):
            self._refuse_one_class()
        self._compute(fit_constant, number, TrainJob(self.job, self.drawn))
        return self._reported(number, value)

    def _has_equal_rows(self) -> bool:
        """Whether all rows there are equal each other."""
        regions = self.reader.regions
        filled = np.isfinite(regions.r_max)
        low, high = regions.low[filled].min(axis=0), regions.high[filled].max(axis=0)
        return bool((low == high).all())

    def _has_mixed_subsample(self) -> bool:
        """Whether some subsample holds two classes."""
        draws = self.job.draws
        first = np.full(draws.n_subsamples, self.job.n_classes)
        last = np.full(draws.n_subsamples, -1)
        for tile in self.drawn:
            found = read_part(self.root, DRAWN, *tile, ("order", "codes"))
            sampled = found["order"] < draws.n_sampled
            subsample = found["order"][sampled] // draws.subsample_rows
            np.minimum.at(first, subsample, found["codes"][sampled])
            np.maximum.at(last, subsample, found["codes"][sampled])
        return bool((first < last).any())

    def _refuse_one_class(self) -> None:
        """Say that every subsample is of one class, and what gives others.

        Raises
        ------
        DataError
        """
        draws, fraction = self.job.draws, self.sampling.sample_fraction
        which = f"The subsample of {draws.subsample_rows} rows has"
        remedies: list[str] = []
        if draws.n_subsamples > 1:
            which = (
                f"Each of the n_subsamples={draws.n_subsamples} subsamples of "
                f"{draws.subsample_rows} rows has"
            )
            remedies.append("lower n_subsamples")
        if int(fraction * draws.n_rows) < draws.n_rows - draws.n_validation:
            remedies.append(f"raise sample_fraction above {fraction:g}")
        if remedies:
            remedies = [f"{' or '.join(remedies)}: a subsample then has more rows"]
        remedies.append("set another random_state, which draws other rows")
        advice = "; or ".join(remedies)
        raise DataError(
            f"{which} rows of one class only, so there are no support rows to start from. "
            f"{advice[0].upper()}{advice[1:]}; or fit on more rows of the smaller classes."
        )

    def _count_steps(self) -> int:
        return len(finished_bundles(self.root))


def _falls(steps: list[Step], least: float) -> bool:
    """Whether the last step's error is below the one before by more than a share of it."""
    before, last = (step.report.validation_error for step in steps[-2:])
    return last < before * (1.0 - least)


def _finish(root: Root, steps: list[Step], job: SamplingJob) -> None:
    """Keep the model of the smallest validation error; of equal ones the first."""
    best = min(steps, key=lambda step: (step.report.validation_error, step.number))
    path = [
        {
            "value": step.value,
            "n_rows": step.report.n_rows,
            "n_support": step.report.n_support,
            "validation_error": step.report.validation_error,
            "seconds": step.report.seconds,
        }
        for step in steps
    ]
    gamma = job.spec.gamma[0] if job.spec.gamma else None
    summary = {"best": best.value, "n_initial_support": _n_initial(root), "path": path}
    write_single_index(root, (best.number, best.number), gamma, summary)


def _n_initial(root: Root) -> int:
    """Return the number of support rows of the first subsamples; 0 of a constant."""
    for kind in (INITIAL, KEPT):
        if has_part(root.path, kind, 0, 0):
            return len(read_part(root.path, kind, 0, 0, ("numbers",))["numbers"])
    return 0


def _clean_up(root: Root) -> None:
    """Remove what a finished model has no use for: other models, and its training rows.

    Also of a model that was finished by a fit which was killed before it came here.
    """
    drop_others(root.path, [(m.first_leaf, m.last_leaf) for m in ModelReader(root.path).bundles])
    root.remove_leftovers()
    remove_parts(root.path)
    for name in ("rows", "leaves", "partition"):
        shutil.rmtree(root.path / name, ignore_errors=True)
