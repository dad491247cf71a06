"""Before space is cut: select the scale and parameters that all cells share, or read them."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from daskls.errors import ParameterError
from daskls.kernels.frame import scaled
from daskls.kernels.registry import kernels_with
from daskls.plan import Extent
from daskls.records import LARGEST_FEATURE, FeatureScale, Float64, Reals, ScalingSpec, SolverSpec
from daskls.run.contract import Beginning
from daskls.run.progress import StageClock
from daskls.run.sample import Sample
from daskls.scaling.choose import TrialGrid
from daskls.scaling.decide import (
    Candidate,
    Decision,
    choose_for,
    choose_kernel,
    decide_scale,
    settle,
)
from daskls.scaling.plan import LOOK_ROWS, check_regions
from daskls.scaling.regions import STEPS, RegionJob, collect_regions, plan_groups, plan_regions
from daskls.scaling.spread import spreads, widest_and_narrowest
from daskls.scaling.steps import Steps
from daskls.store.artifacts import open_store
from daskls.store.scale import Resolved, find_resolved, write_resolved

__all__ = ["MAX_CELL_ROWS", "resolve"]

# Width and ridge are settled on cells of the final size, up to so many rows: in units of a cell's
# median distance the best width shrinks as cells grow. On Covertype cells of 4000 rows err on
# 1.75 % with what cells of 4000 chose, on 1.83 % with what cells of 2000 did.
MAX_CELL_ROWS = 4000
# Steps of a decision, about: how many there are is found on the way.
N_STEPS = 40


def resolve(begun: Beginning, clock: StageClock, client: Any = None) -> Beginning:
    """Return the beginning with scaled rows and with all shared parameters selected.

    Parameters
    ----------
    begun : Beginning
    clock : StageClock
    client : distributed client, or None for the current scheduler
    """
    scaling = begun.request.scaling
    if scaling is None:
        return begun
    resolved = find_resolved(begun.root)
    if resolved is None:
        resolved = _decide(begun, scaling, clock, client)
        write_resolved(begun.root, resolved)
    return _entered(begun, resolved)


def _decide(begun: Beginning, scaling: ScalingSpec, clock: StageClock, client: Any) -> Resolved:
    """Return what is asked for; look at regions of the data for what has to be found out."""
    center = begun.sample.X.mean(axis=0, dtype=np.float64)
    spread = spreads(begun.sample.X)
    search = _Search(begun, scaling, spread, center)
    name, factors = search.asked()
    spec, summary = begun.request.spec, dict[str, Any](decision=name)
    if name == "learned":
        with search.looking(search.job, clock, client) as steps:
            decision = search.learn(steps)
        name, summary = decision.taken.name, decision.to_json()
        factors = None if name == "given" else decision.taken.factors / spread
        if search.is_settled:
            spec = decision.taken.chosen.trial.resolve(spec)
    if scaling.kernels and not search.is_settled:
        with search.looking(search.groups(), clock, client) as steps:
            taken = search.choose(steps, name, factors)
        spec = taken.chosen.trial.resolve(spec)
        summary["chosen"] = taken.to_json()
    scale = None if factors is None else FeatureScale(center, factors)
    return Resolved(scale, spec, {**summary, "spread": spread.tolist()})


@dataclass(frozen=True, eq=False)
class _Search:
    """A search for the scale and the parameters that all cells share."""

    begun: Beginning
    scaling: ScalingSpec
    spread: Float64
    center: Float64

    @cached_property
    def job(self) -> RegionJob:
        """The regions; planned where something is looked at, as that grows a tree."""
        return plan_regions(self.begun, FeatureScale(self.center, 1 / self.spread))

    @property
    def is_settled(self) -> bool:
        """Whether learning a scale chooses all that is to be chosen on the way."""
        scaling = self.scaling
        is_learned = scaling.feature_scale == "learned"
        return is_learned and bool(scaling.kernels) and not scaling.by_chance

    @property
    def _cell_size(self) -> int:
        return min(self.begun.request.cell_size, MAX_CELL_ROWS)

    @property
    def _grid(self) -> TrialGrid:
        return TrialGrid.of(self.begun.request.spec, self._unit)

    @property
    def _unit(self) -> float:
        """The unit of weights: a power of two, so that ordinary ones change no bit."""
        least, most = self.begun.scan.weight_range
        classes = self.begun.class_weight
        return 2.0 ** round(math.log2(least * most * classes.min() * classes.max()) / 2)

    @property
    def unscaled(self) -> bool:
        """Whether the features seem to be in units of their own."""
        return widest_and_narrowest(self.begun.sample.X) is not None

    def asked(self) -> tuple[str, Float64 | None]:
        """Return the name of what is asked for, and the factors if they are known; None: rows."""
        wanted = self.scaling.feature_scale
        if isinstance(wanted, tuple):
            return "given", _given(wanted, len(self.spread))
        if wanted == "spread":
            return wanted, 1 / self.spread
        return wanted or "given", None

    def groups(self) -> RegionJob:
        """Return what width and ridge are chosen on: cells as the method has them."""
        if not self.scaling.by_chance:
            return self.job
        return plan_groups(self.job, self.begun.scan.n_kept, self._cell_size)

    @contextmanager
    def looking(self, job: RegionJob, clock: StageClock, client: Any) -> Iterator[Steps]:
        """Collect the rows of a job's regions, and time what is found out by them.

        Raises
        ------
        MemoryPlanError
        """
        begun = self.begun
        check_regions(begun.sizes, begun.rows.block_rows, self._cell_size, begun.resources)
        collect_regions(self.begun, job, clock, client)
        store, folder = open_store(job.root), job.folder(STEPS)
        with clock.stage("scale", N_STEPS, lambda: len(store.names(folder))):
            yield Steps(job, client)

    def learn(self, steps: Steps) -> Decision:
        """Return which scale is taken, settled where that is all there is to choose."""
        if not self.is_settled:
            # Cells choose for themselves; a scale is learned by least squares all the same.
            open_grid = TrialGrid.of(SolverSpec(), self._unit)
            kernels = kernels_with("is_raced")[:1]
            return decide_scale(steps, self.spread, kernels, open_grid, unscaled=self.unscaled)
        kernels, grid = self.scaling.kernels, self._grid
        decision = decide_scale(steps, self.spread, kernels, grid, unscaled=self.unscaled)
        return replace(decision, taken=settle(steps, decision.taken, self._grid, self._cell_size))

    def choose(self, steps: Steps, name: str, factors: Float64 | None) -> Candidate:
        """Return a scale with the best kernel, width and ridge for it."""
        own = self.spread if factors is None else factors * self.spread
        # A group by chance is a cell: a smaller one would be less dense.
        size = self._cell_size if self.scaling.by_chance else LOOK_ROWS
        kernels = self.scaling.kernels
        taken = choose_for(steps, name, own, kernels[0], self._grid, size)
        taken = choose_kernel(steps, taken, kernels, self._grid, size)
        if self.scaling.by_chance:
            return taken
        return settle(steps, taken, self._grid, self._cell_size)


def _given(factors: tuple[float, ...], n_features: int) -> Float64:
    """Return given factors, one a feature.

    Raises
    ------
    ParameterError
    """
    if len(factors) != n_features:
        raise ParameterError(
            f"feature_scale holds {len(factors)} factors, but X has {n_features} features. Give "
            "one factor a feature."
        )
    return np.array(factors, np.float64)


def _check_range(X: Reals, scale: FeatureScale) -> None:
    """Refuse factors that take rows to where distances overflow.

    Raises
    ------
    ParameterError
    """
    beyond = (np.abs(X) >= LARGEST_FEATURE).any(axis=0)
    if beyond.any():
        feature = int(scale.columns[beyond.argmax()])
        raise ParameterError(
            f"feature_scale multiplies feature {feature} by {scale.factors[feature]:g}, which "
            f"takes values of it beyond {LARGEST_FEATURE:g}, where distances overflow. Lower the "
            "factor."
        )


def _entered(begun: Beginning, resolved: Resolved) -> Beginning:
    """Return the beginning with sample, sizes and parameters in the selected scale of features.

    Raises
    ------
    MemoryPlanError
    ParameterError : a factor that takes rows out of the range of float32
    """
    request = replace(begun.request, spec=resolved.spec)
    sizes = replace(begun.sizes, spec=resolved.spec)
    scale = resolved.scale
    if scale is None:
        return replace(begun, request=request, sizes=sizes)
    sample = Sample(scaled(begun.sample.X, scale), begun.sample.checksum)
    _check_range(sample.X, scale)
    raw_nbytes = sizes.n_features * sizes.itemsize
    sizes = replace(
        sizes,
        n_features=len(scale.columns),
        itemsize=sample.X.itemsize,
        raw_nbytes=raw_nbytes,
    )
    leaf_rows = min(begun.sampling.leaf_rows, begun.scan.n_kept)
    request.method.check(
        Extent(sizes, begun.scan.n_kept, leaf_rows, begun.rows.block_rows), begun.resources
    )
    return replace(begun, request=request, sizes=sizes, sample=sample, scale=scale)
