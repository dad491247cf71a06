"""A fit that trains one SVM on a sample chosen around support rows, and the rounds of CGLQ."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from daskls.blas import one_blas_thread
from daskls.memory import TaskSizes
from daskls.methods.sampling.balls import INITIAL
from daskls.methods.sampling.parts import has_part, read_part, read_part_rows
from daskls.methods.sampling.plan import (
    SEARCHED_ROWS,
    SVC_NBYTES,
    SamplingSpec,
    beside_svc,
    sample_nbytes,
)
from daskls.methods.sampling.search import SampleSearch, SearchStep, errors_of, stalls
from daskls.methods.sampling.train import KEPT, SAMPLES, SamplingJob, read_drawn, read_further
from daskls.neighbors.search import find_nearest, order_by_leaf
from daskls.partition.shuffle import plan_draws, sampling_sizes
from daskls.plan.bundles import Resources, model_nbytes
from daskls.plan.checks import gathering_nbytes
from daskls.plan.fit import FitCost
from daskls.records import Int64, LeafRows
from daskls.run.contract import FitState
from daskls.store.layout import Root
from daskls.store.leaves import LeafReader
from daskls.store.reader import write_index

# The relative decrease of the error that a round needs for another to follow. To allow one round
# without it gains less than it costs: on ijcnn1 errors are 2 % smaller for a quarter more time, on
# three smaller data sets equal.
LEAST_FALL = 0.01


def fit_samples(spec: SamplingSpec, searcher: type[SampleSearch], state: FitState) -> None:
    # Training loads the SVC, and workers may hold it since an earlier fit.
    lighter = replace(state, resources=beside_svc(state.resources))
    search = searcher(lighter, spec)
    search.draw()
    search.select()
    _finish(state.root, search.steps(), search.job)


def _finish(root: Root, steps: list[SearchStep], job: SamplingJob) -> None:
    """Write the index: the model of the smallest validation error, the first one in a tie."""
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
    spec = job.fit.spec
    selected = {"C": (spec.C or (1.0,))[0], "gamma": spec.gamma[0] if spec.gamma else None}
    summary = {"best": best.value, "n_initial_support": _n_initial(root), "path": path}
    bundles = [(best.number, best.number)]
    write_index(root, {}, {**selected, "summary": summary}, bundles, [0, 1])


def _n_initial(root: Root) -> int:
    """Return the number of support rows of the first subsamples; 0 for a constant model."""
    for kind in (INITIAL, KEPT):
        if has_part(root.store, kind, 0, 0):
            return len(read_part(root.store, kind, 0, 0, ("numbers",))["numbers"])
    return 0


class RoundSearch(SampleSearch):
    """The rounds of CGLQ; each needs the model of the one before."""

    n_rounds = 10

    def steps(self) -> list[SearchStep]:
        steps: list[SearchStep] = []
        with self.state.clock.stage("search", self.n_rounds + 1, self.count_steps):
            for number in range(self.n_rounds + 1):
                if not has_part(self.root, SAMPLES, number, number):
                    self.write_sample(number, *self._sample_round(number, steps))
                part = read_part(self.root, SAMPLES, number, number, ("numbers",))
                steps.append(self.train(number, number, len(part["numbers"]), "lower n_neighbors"))
                if not (number or steps[0].report.n_support):
                    # Number 1, as the model of the subsample alone is number 0.
                    return [self.constant(1, 0)]
                if stalls(errors_of(steps), 1, LEAST_FALL):
                    break
        return steps

    def _sample_round(self, number: int, steps: list[SearchStep]) -> tuple[Int64, Int64]:
        draws = self.job.draws
        if number == 0:
            rows, _, positions = read_drawn(self.job, 0, draws.n_sampled)
            return rows.numbers, positions
        k = min(self.sampling.n_neighbors, draws.n_rows - draws.n_validation - 1)
        before, n_support = steps[-1].number, steps[-1].report.n_support
        kind = nearest_of(before)
        limit = min(self.share_of(n_support), SEARCHED_ROWS)
        self.run(search_support, kind, [1] * n_support, self.job, before, k, limit=limit)
        return merge_round(before, self.tiles(kind, n_support), self.job)


def search_support(part: tuple[int, int], job: SamplingJob, step: int, n_neighbors: int) -> None:
    """Write the numbers and positions of the rows nearest to some of a step's support rows."""
    kind = nearest_of(step)
    if has_part(job.root, kind, *part):
        return
    reader = job.fit.open_rows()
    support = read_part_rows(job.root, KEPT, step, step)
    with one_blas_thread():
        queries = order_by_leaf(support.X, reader.regions)[part[0] : part[1] + 1]
        neighbors = find_nearest(
            support.X[queries], n_neighbors + 1, reader.regions, _training(reader, job)
        )
    others = neighbors.others(support.numbers[queries])
    numbers, first = np.unique(neighbors.numbers[others], return_index=True)
    job.write(kind, part, {"numbers": numbers, "positions": neighbors.positions[others][first]})


def _training(reader: LeafReader, job: SamplingJob) -> Callable[[int], LeafRows]:
    def read_training(leaf: int) -> LeafRows:
        rows = reader.read_leaf(leaf)
        order = job.draws.shuffled(rows.numbers, rows.X)
        return rows.only((order < job.draws.n_sampled) | (order >= job.draws.n_reserved))

    return read_training


def merge_round(
    step: int, tiles: Sequence[tuple[int, int]], job: SamplingJob
) -> tuple[Int64, Int64]:
    """Return the row numbers and positions of the next sample, in the order of numbers."""
    size = job.draws.subsample_rows
    support = read_part(job.root, KEPT, step, step, ("numbers", "positions"))
    parts = [tuple(support.values()), read_further(job, step * size, (step + 1) * size)]
    for tile in tiles:
        near = read_part(job.root, nearest_of(step), *tile, ("numbers", "positions"))
        parts.append(tuple(near.values()))
    numbers, first = np.unique(np.concatenate([p[0] for p in parts]), return_index=True)
    return numbers, np.concatenate([p[1] for p in parts])[first]


def nearest_of(step: int) -> str:
    return f"nearest-{step:03d}"


def expected_samples(
    method: SamplingSpec, sizes: TaskSizes, resources: Resources, growth: float
) -> FitCost:
    """Return what samples take whose largest has ``growth`` rows for each subsampled one."""
    n_rows = sizes.n_rows
    fraction, n_subsamples = sampling_sizes(
        method.sample_fraction, method.n_subsamples, n_rows, sizes.n_classes
    )
    draws = plan_draws(n_rows, fraction, n_subsamples, 0)
    trained = int(min(growth * draws.n_sampled, n_rows - draws.n_validation))
    nbytes = sample_nbytes(sizes, max(trained, method.n_selecting(draws)), method.loss)
    # A worker holds the SVC, once loaded, beside all that it does.
    largest = max(nbytes, gathering_nbytes(sizes)) + (0 if resources.has_svc else SVC_NBYTES)
    return FitCost(n_subsamples + 1, 1, largest, model_nbytes(sizes, trained))
