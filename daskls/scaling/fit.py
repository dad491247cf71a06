"""Before space is cut: coding, scale and parameters that all cells share, chosen or read."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from daskls.errors import ParameterError
from daskls.kernels.copies import find_copies
from daskls.kernels.frame import scaled
from daskls.kernels.kernel import find_kernel, kernels_with
from daskls.memory import TaskSizes
from daskls.plan.bundles import Resources
from daskls.records import (
    LARGEST_FEATURE,
    Coding,
    FeatureScale,
    Float32,
    Float64,
    KernelSpec,
    Reals,
    ScalingSpec,
    SolverSpec,
)
from daskls.run.contract import FitRequest, FitState
from daskls.run.sample import Sample
from daskls.scaling.candidates import Candidate
from daskls.scaling.coding import BaseCoding, find_bases, max_coded_features, widest_and_narrowest
from daskls.scaling.grid import (
    STEPS,
    TRIAL_ROWS,
    Steps,
    Trial,
    TrialGrid,
    check_race,
    check_regions,
    race_nbytes,
    regions_nbytes,
)
from daskls.scaling.regions import collect_regions, plan_regions
from daskls.scaling.search import Decision, decide, race, uncoded_if_near
from daskls.scaling.splits import (
    DENSE_FROM,
    Job,
    SampledRows,
    SampleJob,
    draw_cells,
    draw_rows,
    expected_splits,
    held_out,
    plan_of_regions,
    plan_of_sample,
    race_rows,
    token_of,
    write_rows,
)
from daskls.solvers.registry import find_loss
from daskls.solvers.squares.system import median_distance
from daskls.solvers.squares.target_coding import TargetCoding, coding_of
from daskls.store.choices import ResolvedScaling, find_resolved, write_resolved
from daskls.store.objects import open_store

# Width and ridge are chosen again on cells of the final size, up to this many rows: in units of a
# cell's median distance, the best width shrinks as cells grow. On Covertype the error of cells of
# 4000 rows is 1.75 % with parameters chosen on cells of 4000, and 1.83 % with those of 2000.
MAX_CELL_ROWS = 4000
# Approximate numbers of steps of a race and of a decision on regions, for progress; the exact
# numbers are not known before.
RACE_STEPS, REGION_STEPS = 8, 7
# With fewer rows only kernel, width and ridge are chosen.
LEAST_RACED = 60
# Where distinct rows of a sample have so many copies in the mean, hardly any other row is left.
COPIES_OF_ALL = 10
# Rows whose kernel values show whether two candidates are the same.
COMPARED_ROWS = 100
CODINGS: tuple[Coding, ...] = ("none", "ranks", "indicators", "both")


def resolve(state: FitState) -> FitState:
    scaling = state.request.scaling
    if scaling is None:
        return state
    resolved = find_resolved(state.root)
    if resolved is None:
        resolved = _decide(state, scaling)
        write_resolved(state.root, resolved)
    return _rescaled(state, resolved)


def _decide(state: FitState, scaling: ScalingSpec) -> ResolvedScaling:
    """Return the scale and parameters as given; choose on some rows what is left open."""
    search = _Search(state, scaling)
    candidates = search.candidates()
    spec = state.request.spec
    if len(candidates) > 1 or scaling.kernels or search.learns:
        decision = search.decide(candidates)
        taken, summary = decision.taken, decision.to_json()
        spec = _spec_with(spec, taken.trial) if scaling.kernels else spec
    else:
        (taken,) = candidates
        summary = {"decision": taken.name, "coding": taken.coding}
    base = search.bases[taken.base]
    # Constants are divided by 1, but move no distance.
    varies = (search.sample.X[0] != search.sample.X).any(axis=0)
    summary["spread"] = np.where(varies[base.scale.sources], base.spread, 0.0).tolist()
    return ResolvedScaling(search.scale_of(taken), spec, summary)


def is_open(scaling: ScalingSpec) -> bool:
    is_one = scaling.feature_scale != "learned" and scaling.feature_coding != "auto"
    return bool(scaling.kernels) or not is_one


def plan_choice(
    request: FitRequest, sizes: TaskSizes, n_sample: int, resources: Resources
) -> tuple[int, list[Callable[[], None]]]:
    """Return the peak bytes of the tasks of a choice, before codings, and what refuses them."""
    scaling = request.scaling
    if scaling is None or not is_open(scaling):
        return 0, []
    is_whole, cell_rows = n_sample == sizes.n_rows, min(request.cell_size, MAX_CELL_ROWS)
    splits = expected_splits(n_sample, cell_rows, has_cells=is_whole and not scaling.by_chance)
    raced = race_nbytes(splits, sizes.n_features, sizes.n_outputs)
    check = partial(check_race, splits, sizes.n_features, sizes, resources)
    if is_whole or scaling.by_chance:
        return raced, [check]
    regions = sizes, sizes.block_rows, cell_rows
    return max(raced, regions_nbytes(*regions)), [
        check,
        partial(check_regions, *regions, resources),
    ]


def usual_spec(spec: SolverSpec, scaling: ScalingSpec | None) -> SolverSpec:
    if scaling is None or not scaling.kernels:
        return spec
    # The middle one of the candidate kernels, which take about the same memory.
    kernel = scaling.kernels[len(scaling.kernels) // 2]
    return _spec_with(spec, TrialGrid.of(spec).of_kernel(kernel).start(kernel))


def _spec_with(spec: SolverSpec, trial: Trial) -> SolverSpec:
    """Return a spec with the chosen parameters; C stays open where cells choose it."""
    chosen = trial.resolve(spec)
    return replace(chosen, C=spec.C) if find_loss(spec).costs_by_cell else chosen


def _rescaled(state: FitState, resolved: ResolvedScaling) -> FitState:
    """Return the state with the sample and the parameters in the chosen scale of features."""
    request, scale = replace(state.request, spec=resolved.spec), resolved.scale
    if scale is None:
        return replace(state, request=request)
    sample = replace(state.sample, X=scaled(state.sample.X, scale))
    _check_range(sample.X, scale)
    rescaled = replace(state, request=request, sample=sample, scale=scale)
    rescaled.check_memory()
    return rescaled


def _check_range(X: Reals, scale: FeatureScale) -> None:
    beyond = (np.abs(X) >= LARGEST_FEATURE).any(axis=0)
    if beyond.any():
        feature = int(scale.columns[beyond.argmax()])
        raise ParameterError(
            f"feature_scale multiplies feature {feature} by {scale.factors[feature]:g}, so that "
            f"its values exceed {LARGEST_FEATURE:g} and distances overflow. Lower the factor."
        )


@dataclass(frozen=True, eq=False)
class _Search:
    state: FitState
    scaling: ScalingSpec

    @cached_property
    def sample(self) -> Sample:
        """The sampled rows, of which copies are one: on one side of any split."""
        return self.state.sample.merged()

    @property
    def is_whole(self) -> bool:
        return len(self.state.sample.X) == self.state.scan.n_kept

    @property
    def has_all(self) -> bool:
        """Whether about every distinct row was sampled."""
        n_sampled = len(self.state.sample.X)
        return self.is_whole or n_sampled >= COPIES_OF_ALL * len(self.sample.X)

    @cached_property
    def bases(self) -> list[BaseCoding]:
        X = self.state.sample.X
        coding = self.scaling.feature_coding
        codings: tuple[Coding, ...] = CODINGS if coding == "auto" else (coding,)
        return find_bases(X, codings, max_coded_features(self.state.scan.n_kept, X.shape[1]))

    @property
    def learns(self) -> bool:
        return self.scaling.feature_scale == "learned" and self.is_open

    @property
    def _kernels(self) -> tuple[str, ...]:
        """The candidate kernels; where cells choose their own, the one a scale is learned with."""
        return self.scaling.kernels or kernels_with("is_raced")[:1]

    @property
    def _grid(self) -> TrialGrid:
        # Where cells choose their own parameters, the scale is still learned by least squares.
        spec = self.state.request.spec if self.scaling.kernels else SolverSpec()
        if find_loss(spec).costs_by_cell:
            spec = replace(spec, C=None)
        return TrialGrid.of(spec, self._unit)

    @property
    def _unit(self) -> float:
        """The unit of weights: a power of two, so that dividing by it is exact."""
        least, most = self.state.scan.weight_range
        classes = self.state.class_weight
        return 2.0 ** round(math.log2(least * most * classes.min() * classes.max()) / 2)

    @property
    def _aim(self) -> TargetCoding:
        return coding_of(self.state.scan.target, self.state.request.spec)

    @property
    def _cell_size(self) -> int:
        return min(self.state.request.cell_size, MAX_CELL_ROWS)

    def candidates(self) -> list[Candidate]:
        """Return all combinations of coding, scale and kernel, without equivalent ones."""
        candidates: list[Candidate] = []
        shapes: list[Float64] = []
        for number, base in enumerate(self.bases):
            rows = self._few_rows(base)
            for name, factors in self._scales(base):
                for kernel in self._kernels:
                    trial = self._grid.of_kernel(kernel).start(kernel)
                    shape = _shape_of(rows * factors.astype(np.float32), trial)
                    if not any(np.allclose(shape, other, rtol=1e-3, atol=1e-6) for other in shapes):
                        candidates.append(Candidate(number, base.name, name, factors, trial))
                        shapes.append(shape)
        return candidates if self.is_open else candidates[: len(self._kernels)]

    @property
    def is_open(self) -> bool:
        return (len(self.sample.X) if self.has_all else self.state.scan.n_kept) >= LEAST_RACED

    def _few_rows(self, base: BaseCoding) -> Float32:
        X = self.sample.X
        return scaled(X[:: max(len(X) // COMPARED_ROWS, 1)][:COMPARED_ROWS], base.scale)

    def _scales(self, base: BaseCoding) -> list[tuple[str, Float64]]:
        feature_scale, ones = self.scaling.feature_scale, np.ones(base.n_features)
        if isinstance(feature_scale, tuple):
            return [("given", self._all_factors(feature_scale) * base.spread)]
        if feature_scale is None:
            return [("given", base.spread)]
        # Coded features have a unit of their own, so that the others are divided by their spread.
        if feature_scale == "spread" or base.name != "none":
            return [("spread", ones)]
        if (base.spread == base.spread[0]).all():
            return [("given", base.spread)]
        # Units that differ this much are arbitrary, which a race on few rows might not show.
        if widest_and_narrowest(self.state.sample.X) is not None:
            return [("spread", ones)]
        return [("given", base.spread), ("spread", ones)]

    def _all_factors(self, factors: tuple[float, ...]) -> Float64:
        """Return a factor for each column; one that marks gaps has that of its source."""
        gaps, n_features = self.state.rows.gaps, self.sample.X.shape[1]
        marked = () if gaps is None else gaps.marked
        n_columns = n_features - len(marked)
        if len(factors) != n_columns:
            raise ParameterError(
                f"feature_scale holds {len(factors)} factors, but X has {n_columns} features. Give "
                "one factor per feature."
            )
        return np.array([*factors, *(factors[column] for column in marked)], np.float64)

    def scale_of(self, candidate: Candidate) -> FeatureScale | None:
        base, feature_scale = self.bases[candidate.base], self.scaling.feature_scale
        factors = base.scale.factors * candidate.factors
        if candidate.name == "given" and base.name == "none":
            if not isinstance(feature_scale, tuple):
                return None
            factors = self._all_factors(feature_scale)
        return replace(base.scale, factors=factors)

    def decide(self, candidates: Sequence[Candidate]) -> Decision:
        state = self.state
        drawn = self._draw()
        plan = plan_of_sample(drawn, self._cell_size)
        # `plan_choice` knew nothing of codings, which may add features.
        widest, has_cells = max(base.n_features for base in self.bases), self._has_cells
        splits = expected_splits(len(state.sample.X), self._cell_size, has_cells=has_cells)
        check_race(splits, widest, state.sizes, state.resources)
        job = SampleJob(state.root.where(), self._aim, token_of(drawn, self.bases))
        write_rows(job, self.sample, drawn, self.bases)
        with self._timed(job, RACE_STEPS):
            steps = Steps(job, state.client, job.token)
            left = race(steps, candidates, plan, self._grid)
            # Of few distinct rows regions hold no others, and may hold out all of them or none.
            is_all = self.is_whole or (plan.leave_out and self.has_all)
            if is_all or self.scaling.by_chance:
                return decide(steps, left, plan, self._grid, learns=self.learns)
        return self._decide_densely(uncoded_if_near(left))

    def _draw(self) -> SampledRows:
        """Return the rows of the race: random rows, and rows of cells if all data is sampled."""
        X, targets, seed = self.sample.X, self.sample.targets, self.state.seed
        held = held_out(len(X), seed)
        equal = find_copies(X) if self._aim.leaves_out_together else None
        if equal is not None:
            # Equal rows of two classes are held out together: one would reveal the other.
            held = held[equal[0]][equal[1]]
        drawn = draw_rows(len(X), *race_rows(len(X)), seed, held)
        if not self._has_cells or len(X) < DENSE_FROM or not len(drawn.reserved):
            return drawn
        rows = scaled(X, self._plain.scale)
        cells = draw_cells(rows, targets, self._cell_size, seed, held, self._aim)
        return replace(drawn, cells=cells)

    @property
    def _has_cells(self) -> bool:
        return self.is_whole and not self.scaling.by_chance

    @cached_property
    def _plain(self) -> BaseCoding:
        """The rows divided by their spread, whichever codings are candidates."""
        return find_bases(self.state.sample.X, ("none",), 0)[0]

    def _decide_densely(self, left: Sequence[Candidate]) -> Decision:
        state, base = self.state, self.bases[left[0].base]
        check_regions(state.sizes, state.rows.block_rows, self._cell_size, state.resources)
        widest = max(b.n_features for b in self.bases)
        job = plan_regions(state, self._plain.scale, widest).gathered_in(base.scale, base.name)
        collect_regions(state, job)
        plan = plan_of_regions(job, min(TRIAL_ROWS, self._cell_size), self._cell_size)
        with self._timed(job, REGION_STEPS):
            steps = Steps(job, state.client)
            kernels = self._kernels
            return decide(steps, left, plan, self._grid, learns=self.learns, kernels=kernels)

    @contextmanager
    def _timed(self, job: Job, n_steps: int) -> Iterator[None]:
        store = open_store(job.root)

        def count() -> int:
            return min(len(store.names(job.folder(STEPS))), n_steps)

        with self.state.clock.stage("scale", n_steps, count):
            yield


def _shape_of(A: Float32, trial: Trial) -> Float64:
    """Return -log of kernel values in units of the width: equal for equivalent candidates."""
    kernel = find_kernel(trial.kernel)
    gamma = trial.width if trial.is_gamma else kernel.gamma_of(median_distance(trial.kernel, A))
    base = kernel.matrix(A.astype(np.float64)).astype(np.float64)
    values = kernel.apply(base, KernelSpec(trial.kernel, gamma), base)
    return -np.log(values)
