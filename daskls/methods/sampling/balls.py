"""The search of local sampling: balls around support rows, and an SVM at each of their radii."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from daskls.blas import one_blas_thread
from daskls.cluster import compute_each
from daskls.errors import MemoryPlanError
from daskls.methods.base import one_leaf
from daskls.methods.sampling.parts import has_part, read_part, read_part_rows, write_part
from daskls.methods.sampling.plan import WAITING_PAIRS, most_pairs
from daskls.methods.sampling.search import (
    N_SEARCH_TASKS,
    SampleSearch,
    SearchStep,
    errors_of,
    stalls,
)
from daskls.methods.sampling.train import (
    SAMPLES,
    SUPPORT,
    SamplingJob,
    as_arrays,
    fit_subsamples,
    join_rows,
)
from daskls.neighbors.balls import find_inside, keep_smallest, near_balls
from daskls.neighbors.search import find_nearest, order_by_leaf
from daskls.partition.shuffle import ball_keys
from daskls.records import Float64, Int64, Keys, LeafRows, RowNumbers
from daskls.run.resources import free_nbytes

# Kinds of parts: the support rows of all subsamples, and their radii.
INITIAL, RADII = "initial", "radii"
# Bytes of a drawn row on the client while draws are merged.
DRAW_NBYTES = 72
# The search for beta tries 0.1, 0.2 and so on; the paper's useful values end at 1.
RADIUS_STEP = 0.1
MAX_RADIUS_STEPS = 20
# Consecutive radii without improvement that end the search. One may be chance: of eight searches
# on covtype that ended at the first, one had 1.7 times the error of the others.
RADIUS_PATIENCE = 2
# Fewest balls of a task. It reads all leaves that its balls reach; with this many balls that is a
# small part of its work.
MIN_BALLS = 256


@dataclass(frozen=True)
class BallJob:
    """Arguments of the draws of one step; a task may keep ``most`` pairs of a ball and a row."""

    sampling: SamplingJob
    step: int
    scale: float
    radius: float
    most: int


@dataclass(frozen=True, eq=False)
class BallPairs:
    """Pairs of a ball and a row in it: ball, key of the draw, the row's number and position."""

    balls: Int64
    keys: Keys
    numbers: RowNumbers
    positions: Int64

    def __len__(self) -> int:
        return len(self.balls)

    def take(self, which: Int64) -> "BallPairs":
        return BallPairs(
            self.balls[which], self.keys[which], self.numbers[which], self.positions[which]
        )


class RadiusSearch(SampleSearch):
    def steps(self) -> list[SearchStep]:
        """Train the subsamples, measure radii, then train at one radius after the other."""
        n = self.job.draws.n_subsamples
        radii = None
        with self.state.clock.stage("subsamples", n, self.count(SUPPORT)):
            self.run(fit_subsamples, SUPPORT, [1] * n, self.job)
            n_support = self._count_support(n)
            if n_support:
                self._join(n, n_support)
                radii = self._measure()
        radius_scale = self.sampling.radius_scale
        scales = (
            [round(RADIUS_STEP * (step + 1), 10) for step in range(MAX_RADIUS_STEPS)]
            if radius_scale is None
            else [radius_scale]
        )
        with self.state.clock.stage("search", len(scales), self.count_steps):
            if radii is None:
                return [self.constant(0, scales[0])]
            return self._try_radii(scales, radii)

    def _count_support(self, n_subsamples: int) -> int:
        tiles = self.tiles(SUPPORT, n_subsamples)
        parts = [read_part(self.root, SUPPORT, *tile, ("numbers",)) for tile in tiles]
        return sum(len(part["numbers"]) for part in parts)

    def _join(self, n_subsamples: int, n_support: int) -> None:
        self.check(n_support, "The support rows of all subsamples", "lower sample_fraction")
        self.compute_small(join_support, self.tiles(SUPPORT, n_subsamples), self.job)

    def _measure(self) -> Float64:
        if not has_part(self.root, RADII, 0, 0):
            m = len(read_part(self.root, INITIAL, 0, 0, ("numbers",))["numbers"])
            k = min(max(int(np.log(m)), 1), m - 1)
            ends = np.linspace(0, m, min(N_SEARCH_TASKS, -(-m // 512)) + 1)
            parts = list(pairwise(ends.astype(int).tolist()))
            measured = compute_each(
                measure_radii, [(part, k, self.job) for part in parts], self.state.client
            )
            radii = positive_radii(np.concatenate(measured))
            write_part(self.root, RADII, 0, 0, {"radii": radii})
        return read_part(self.root, RADII, 0, 0, ("radii",))["radii"]

    def _try_radii(self, scales: list[float], radii: Float64) -> list[SearchStep]:
        median = float(np.median(radii))
        quotas = ball_quotas(radii, self.job.draws.n_others)
        steps: list[SearchStep] = []
        before: Int64 | None = None
        for number, scale in enumerate(scales):
            numbers = self._sample_balls(number, scale, median, quotas)
            # Larger balls may hold no new rows, so the sample is the same.
            if before is not None and np.array_equal(numbers, before):
                continue
            before = numbers
            remedy = f"give radius_scale below {scale:g}"
            steps.append(self.train(number, scale, len(numbers), remedy))
            if stalls(errors_of(steps), RADIUS_PATIENCE):
                break
        return steps

    def _sample_balls(self, step: int, scale: float, median: float, quotas: Int64) -> Int64:
        if not has_part(self.root, SAMPLES, step, step):
            kind = draws_of(step)
            leaf_rows = int(np.diff(self.reader.first_positions).max())
            sizes, resources = self.state.sizes, self.state.resources
            most = most_pairs(sizes, len(quotas), leaf_rows, resources, self.fraction)
            job = BallJob(self.job, step, scale, scale * median, most)
            self.run(draw_balls, kind, self._costs(quotas, most), job, limit=1.0)
            self.write_sample(step, *merge_draws(self.tiles(kind, len(quotas)), job))
        return read_part(self.root, SAMPLES, step, step, ("numbers",))["numbers"]

    def _costs(self, quotas: Int64, most: int) -> list[float]:
        """A task of several balls costs at most 1, and then keeps at most ``most`` pairs."""
        # The rows that a ball may draw, and the search for them.
        work = quotas + quotas.mean() + 1
        share = max(self.share_of(work.sum()), MIN_BALLS * work.mean())
        costs: list[float] = np.maximum(work / share, quotas / most).tolist()
        return costs


def join_support(tiles: Sequence[tuple[int, int]], job: SamplingJob) -> None:
    """Write the support rows of all subsamples together, in the order of their nearest leaves."""
    if has_part(job.root, INITIAL, 0, 0):
        return
    rows = join_rows([read_part_rows(job.root, SUPPORT, *tile) for tile in tiles])
    positions = [read_part(job.root, SUPPORT, *tile, ("positions",))["positions"] for tile in tiles]
    # By number first, as the order of the parts depends on the workers.
    by_number = np.argsort(rows.numbers)
    with one_blas_thread():
        order = by_number[order_by_leaf(rows.X[by_number], job.fit.open_rows().regions)]
    joined = {**as_arrays(rows.take(order)), "positions": np.concatenate(positions)[order]}
    job.write(INITIAL, (0, 0), joined)


def measure_radii(part: tuple[int, int], n_neighbors: int, job: SamplingJob) -> Float64:
    rows = read_part_rows(job.root, INITIAL, 0, 0)
    with one_blas_thread():
        leaf, region, _ = one_leaf(rows.X, rows.numbers)
        # A row is its own nearest, at distance 0, so index k is the k-th other row.
        neighbors = find_nearest(rows.X[slice(*part)], n_neighbors + 1, region, lambda _: leaf)
    radii: Float64 = np.sqrt(neighbors.distances[:, n_neighbors])
    return radii


def positive_radii(radii: Float64) -> Float64:
    """Return the radii with zeros replaced by the smallest positive one, if there is one.

    >>> positive_radii(np.array([0.0, 3.0, 2.0])).tolist()
    [2.0, 3.0, 2.0]
    """
    positive = radii[radii > 0]
    return np.where(radii > 0, radii, positive.min()) if len(positive) else radii


def ball_quotas(radii: Float64, n_others: int) -> Int64:
    """Return how many rows each ball may draw: a share of ``n_others`` inverse to its radius.

    >>> ball_quotas(np.array([1.0, 1.0, 2.0]), 100).tolist()
    [40, 40, 20]
    """
    inverse = 1.0 / radii if radii.all() else np.ones(len(radii))
    # fsum is exact in any order; 1e-9 keeps a share that should be an integer from being rounded
    # down.
    quotas: Int64 = np.floor(inverse / math.fsum(inverse) * n_others + 1e-9).astype(np.int64)
    return quotas


def draw_balls(part: tuple[int, int], job: BallJob) -> None:
    """Write the rows of smallest keys that some balls draw, from the leaves that they reach."""
    sampling, kind = job.sampling, draws_of(job.step)
    if has_part(sampling.root, kind, *part):
        return
    which = slice(part[0], part[1] + 1)
    reader = sampling.fit.open_rows()
    support = read_part_rows(sampling.root, INITIAL, 0, 0)
    radii = read_part(sampling.root, RADII, 0, 0, ("radii",))["radii"]
    quotas = ball_quotas(radii, sampling.draws.n_others)[which]
    centers, numbers = support.X[which].astype(np.float64), support.numbers[which]
    del support
    collected = [join_pairs([], quotas)]
    n_waiting = 0
    for leaf in range(reader.n_leaves):
        balls = near_balls(centers, job.radius, reader.regions, leaf)
        balls = balls[quotas[balls] > 0]
        if not len(balls):
            continue
        rows = _others(reader.read_leaf(leaf), sampling)
        for of_ball, row in find_inside(centers, job.radius, balls, rows):
            keys = ball_keys(rows.numbers[row], numbers[of_ball], sampling.draws.seed)
            collected.append(BallPairs(of_ball, keys, rows.numbers[row], rows.positions[row]))
            n_waiting += len(row)
            # Wait for at least as many as are kept, or most time would go into sorting those again.
            if n_waiting > max(WAITING_PAIRS, len(collected[0])):
                collected, n_waiting = [join_pairs(collected, quotas)], 0
                _check_kept(collected[0], job)
    pairs = join_pairs(collected, quotas)
    _check_kept(pairs, job)
    drawn, first = np.unique(pairs.numbers, return_index=True)
    sampling.write(kind, part, {"numbers": drawn, "positions": pairs.positions[first]})


def _check_kept(pairs: BallPairs, job: BallJob) -> None:
    """Refuse more pairs than fit in a task; only a task of a single ball can have more."""
    if len(pairs) > job.most:
        raise MemoryPlanError(
            f"One ball draws at least {len(pairs)} rows, but a task may hold {job.most}; give "
            f"radius_scale below {job.scale:g}, or give each worker more memory or fewer "
            "threads."
        )


def _others(leaf: LeafRows, job: SamplingJob) -> LeafRows:
    return leaf.only(job.draws.shuffled(leaf.numbers, leaf.X) >= job.draws.n_reserved)


def join_pairs(parts: Sequence[BallPairs], quotas: Int64) -> BallPairs:
    names = ("balls", "keys", "numbers", "positions")
    kinds = (np.int64, np.uint64, np.int64, np.int64)
    joined = BallPairs(
        *(
            np.concatenate([np.empty(0, kind), *(getattr(p, name) for p in parts)])
            for name, kind in zip(names, kinds, strict=True)
        )
    )
    return joined.take(keep_smallest(joined.balls, joined.keys, quotas))


def merge_draws(tiles: Sequence[tuple[int, int]], job: BallJob) -> tuple[Int64, Int64]:
    """Return numbers and positions of the support rows and all that balls draw, by number."""
    names = ("numbers", "positions")
    root = job.sampling.root
    parts = [read_part(root, INITIAL, 0, 0, names)]
    n_rows = len(parts[0]["numbers"])
    for tile in tiles:
        parts.append(read_part(root, draws_of(job.step), *tile, names))
        n_rows += len(parts[-1]["numbers"])
        needed, free = DRAW_NBYTES * n_rows, free_nbytes()
        if needed > free:
            raise MemoryPlanError(
                f"Merging what balls draw, {n_rows} rows so far, needs {needed >> 20} MiB "
                f"on the client but {free >> 20} MiB are free; give radius_scale below "
                f"{job.scale:g}, or lower sample_fraction."
            )
    numbers, first = np.unique(np.concatenate([p["numbers"] for p in parts]), return_index=True)
    return numbers, np.concatenate([p["positions"] for p in parts])[first]


def draws_of(step: int) -> str:
    return f"balls-{step:03d}"
