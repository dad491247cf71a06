"""The search for a sample: draw rows by number, select C and gamma, train one model a step."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daskls.blas import one_blas_thread
from daskls.cluster import compute_each, run_each
from daskls.errors import DataError
from daskls.kernels.kernel import find_kernel
from daskls.methods.sampling.parts import kind_path, read_part, write_part
from daskls.methods.sampling.plan import SamplingSpec, cache_nbytes, check_trained
from daskls.methods.sampling.train import (
    DRAWN,
    SAMPLES,
    SamplingJob,
    draw_rows,
    fit_constant,
    fit_sample,
    read_drawn,
    read_further,
)
from daskls.partition.shuffle import plan_draws, sampling_sizes
from daskls.plan.bundles import group_neighbors
from daskls.records import CellReport, Int64, RowNumbers
from daskls.run.contract import FitState
from daskls.seeds import SELECTING
from daskls.solvers.base import BLANK_REPORT, Neighborhood
from daskls.solvers.registry import find_neighborhood_solver
from daskls.store.models import BundleModels, all_bundles, finished_bundles, missing_bundles

# Tasks that a stage is cut into; the number does not depend on slots, as workers may join.
N_SEARCH_TASKS = 32


@dataclass(frozen=True)
class SearchStep:
    """One model that was tried: its number, its beta or round, and the report of its training."""

    number: int
    value: float
    report: CellReport


class SampleSearch:
    """The stages after the rows are gathered; each of `n_rounds` may draw a subsample more."""

    n_rounds = 0

    def __init__(self, state: FitState, sampling: SamplingSpec) -> None:
        self.state, self.sampling = state, sampling
        self.root = state.root.store
        n_rows, n_classes = state.scan.n_kept, state.scan.target.n_classes
        self.fraction, n_subsamples = sampling_sizes(
            sampling.sample_fraction, sampling.n_subsamples, n_rows, n_classes
        )
        draws = plan_draws(n_rows, self.fraction, n_subsamples, state.seed)
        self.n_selecting = sampling.n_selecting(draws)
        spec = state.request.spec if sampling.percentiles else state.resolved_spec
        self.job = SamplingJob(
            replace(state.fit, spec=spec),
            draws,
            n_classes,
            cache_nbytes(state.sizes, draws.subsample_rows, sampling.loss, state.resources),
            max(self.n_rounds * draws.subsample_rows, self.n_selecting - draws.n_sampled),
        )
        self.reader = self.job.fit.open_rows()

    def draw(self) -> None:
        n, rows = self.reader.n_leaves, np.diff(self.reader.first_positions)
        with self.state.clock.stage("draw", n, self.count(DRAWN)):
            self.run(draw_rows, DRAWN, rows.tolist(), self.job)
        self.job = replace(self.job, drawn=self.tiles(DRAWN, n))

    def select(self) -> None:
        if not self.n_selecting:
            return
        root = self.state.root
        selected = root.attributes.get("selected")
        if selected is None:
            args = self.n_selecting, self.sampling.percentiles, self.job
            with self.state.clock.stage("select", 1, None):
                selected = self.compute_small(evaluate_candidates, *args)
            # Before any training, so that a resumed fit does not select again.
            root.update(selected=selected)
        C, gamma = (None if v is None else (v,) for v in (selected["C"], selected["gamma"]))
        # Rows of one class select nothing: take the smallest C, and scikit-learn's gamma.
        spec = self.state.resolved_spec
        least = (min(spec.C or (1.0,)),)
        first = spec.gamma[:1] if spec.gamma else None
        spec = replace(spec, C=C or least, gamma=gamma or first)
        self.job = replace(self.job, fit=replace(self.job.fit, spec=spec))

    def steps(self) -> list[SearchStep]:
        raise NotImplementedError

    def run(
        self,
        task: Callable[..., Any],
        kind: str,
        costs: Sequence[float],
        *shared: Any,
        limit: float | None = None,
    ) -> None:
        """Run a task on groups of the items that no stored part holds; ``costs`` has one per item.

        A group costs at most ``limit``, unless it is one item; None: the share of one task.
        """
        limit = self.share_of(sum(costs)) if limit is None else limit
        parts, path = group_neighbors(costs, limit), kind_path(kind)
        missing = missing_bundles(self.root, parts, path)
        run_each(task, missing, *shared, client=self.state.client)

    def share_of(self, cost: float) -> float:
        return math.ceil(cost / N_SEARCH_TASKS)

    def tiles(self, kind: str, n: int) -> tuple[tuple[int, int], ...]:
        """Return the (first, last) of the parts of a kind that hold n items, in order."""
        return tuple(all_bundles(self.root, n, kind_path(kind)))

    def count(self, kind: str) -> Callable[[], int]:
        return lambda: sum(b + 1 - a for a, b in finished_bundles(self.root, kind_path(kind)))

    def check(self, n_rows: int, what: str, remedy: str) -> None:
        args = self.state.sizes, n_rows, self.sampling.loss, self.state.resources
        check_trained(*args, what=what, remedy=remedy)

    def compute_small(self, task: Callable[..., Any], *args: Any) -> Any:
        return compute_each(task, [args], self.state.client)[0]

    def train(self, number: int, value: float, n_rows: int, remedy: str) -> SearchStep:
        """Train on the sample of a step, unless its model is stored; return the step."""
        remedy += f", or lower sample_fraction below {self.fraction:g}"
        self.check(n_rows, f"The sample of step {number}", remedy)
        cache = cache_nbytes(self.state.sizes, n_rows, self.sampling.loss, self.state.resources)
        self.compute_small(fit_sample, number, replace(self.job, cache_nbytes=cache))
        return self._reported(number, value)

    def _reported(self, number: int, value: float) -> SearchStep:
        table = BundleModels(self.root, number, number, self.job.fit.spec).report()
        return SearchStep(number, value, CellReport(*table[0].item()))

    def constant(self, number: int, value: float) -> SearchStep:
        """Train a constant where subsamples have no support rows; DataError if rows differ."""
        if not (self._has_equal_rows() or self._has_mixed_subsample()):
            self._refuse_one_class()
        self.compute_small(fit_constant, number, self.job)
        return self._reported(number, value)

    def _has_equal_rows(self) -> bool:
        regions = self.reader.regions
        filled = np.isfinite(regions.r_max)
        low, high = regions.low[filled].min(axis=0), regions.high[filled].max(axis=0)
        return bool((low == high).all())

    def _has_mixed_subsample(self) -> bool:
        draws = self.job.draws
        first = np.full(draws.n_subsamples, self.job.n_classes)
        last = np.full(draws.n_subsamples, -1)
        for tile in self.job.drawn:
            drawn = read_part(self.root, DRAWN, *tile, ("order", "codes"))
            sampled = drawn["order"] < draws.n_sampled
            subsample = drawn["order"][sampled] // draws.subsample_rows
            np.minimum.at(first, subsample, drawn["codes"][sampled])
            np.maximum.at(last, subsample, drawn["codes"][sampled])
        return bool((first < last).any())

    def _refuse_one_class(self) -> None:
        draws, fraction = self.job.draws, self.fraction
        which = f"The subsample of {draws.subsample_rows} rows has"
        remedies: list[str] = []
        if draws.n_subsamples > 1:
            which = (
                f"Each of the n_subsamples={draws.n_subsamples} subsamples of "
                f"{draws.subsample_rows} rows has"
            )
            remedies.append("lower n_subsamples")
        # Where n_subsamples follows from the fraction, a larger fraction only gives more of them.
        grows = draws.n_subsamples == 1 or self.sampling.n_subsamples is not None
        if grows and int(fraction * draws.n_rows) < draws.n_rows - draws.n_validation:
            remedies.append(f"raise sample_fraction above {fraction:g}")
        if remedies:
            remedies = [f"{' or '.join(remedies)}: a subsample then has more rows"]
        remedies.append("set another random_state, which draws other rows")
        advice = "; or ".join(remedies)
        raise DataError(
            f"{which} rows of one class only, so there are no support rows to start from. "
            f"{advice[0].upper()}{advice[1:]}; or fit on more rows of the smaller classes."
        )

    def count_steps(self) -> int:
        return len(finished_bundles(self.root))

    def write_sample(self, step: int, numbers: RowNumbers, positions: Int64) -> None:
        write_part(self.root, SAMPLES, step, step, {"numbers": numbers, "positions": positions})


def evaluate_candidates(
    n_rows: int, percentiles: tuple[float, ...] | None, job: SamplingJob
) -> dict[str, Any]:
    """Return the best candidates on the first drawn rows; None where they do not differ."""
    requested = job.fit.spec
    with one_blas_thread():
        rows = job.fit.open_rows().read_positions(_positions(n_rows, job))
        # Fewer where copies of drawn rows validate.
        n_rows = len(rows.X)
        spec = replace(requested, cv=min(requested.cv, n_rows), search="full")
        seed = SELECTING(job.draws.seed, n_rows=n_rows)
        data = rows.X, rows.targets, rows.weights
        near = Neighborhood(*data, n_rows, spec, percentiles, seed)
        report = find_neighborhood_solver(spec).fit_neighborhood(near, BLANK_REPORT).report
    has_gamma = find_kernel(requested.kernel).has_gamma and not math.isnan(report.gamma)
    return {
        "C": None if math.isnan(report.C) else report.C,
        "gamma": report.gamma if has_gamma else None,
        "n_rows": n_rows,
        "validation_error": report.validation_error,
    }


def _positions(n_rows: int, job: SamplingJob) -> Int64:
    n_first = min(n_rows, job.draws.n_sampled)
    rows, _, positions = read_drawn(job, 0, n_first)
    numbers, further = read_further(job, 0, n_rows - n_first)
    order = np.argsort(np.concatenate([rows.numbers, numbers]))
    ordered: Int64 = np.concatenate([positions, further])[order]
    return ordered


def errors_of(steps: list[SearchStep]) -> list[float]:
    return [step.report.validation_error for step in steps]


def stalls(errors: Sequence[float], patience: int, least: float = 0.0) -> bool:
    """Whether the last ``patience`` errors do not lower the best by the share ``least``."""
    before, last = errors[:-patience], errors[-patience:]
    return bool(before) and min(last) >= min(before) * (1.0 - least)
