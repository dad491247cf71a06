"""Landmarks that the rows of all cells are projected on, a kernel's features of these projections,
and the bias that linear SVMs share.

Given the bias, cells are solved one by one; the least value that they reach together is a convex
function of the bias. Each round gives, at one bias, a point above that function (the sum of the
primal objectives), a line below it (from the dual objectives; its slope is the sum of the cells'
slopes) and its curvature. The search takes Newton steps, inside a bracket once it has one. It ends
when the best point is near enough to where the lines cross.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from daskls.kernels.kernel import find_kernel
from daskls.kernels.landmarks import FeatureMap, Normalization, project_rows, project_tiles
from daskls.records import Float64, KernelSpec, Reals

# Rows per batch of the principal component analysis.
PCA_BATCH_ROWS = 8192
# Directions of a kernel matrix whose share of the largest eigenvalue is below this are noise.
LEAST_EIGENVALUE = 1e-12


def draw_landmarks(
    X: Reals, normalization: Normalization, n_landmarks: int, seed: tuple[int, ...]
) -> Float64:
    drawn = np.random.default_rng(seed).choice(len(X), n_landmarks, replace=False)
    return np.subtract(X[np.sort(drawn)], normalization.center, dtype=np.float64)


def find_components(
    X: Reals, normalization: Normalization, n_landmarks: int
) -> tuple[Float64, Float64]:
    # Imported here so that a process that only predicts never loads it.
    from sklearn.decomposition import IncrementalPCA

    batch_rows = max(PCA_BATCH_ROWS, n_landmarks)
    # Each batch needs as many rows as there are components: a short last one joins the others.
    n_batches = max(len(X) // batch_rows, 1)
    pca = IncrementalPCA(n_landmarks)
    # The variance of equal rows is 0, and so is what the components' shares are divided by.
    with np.errstate(invalid="ignore", divide="ignore"):
        for rows in np.array_split(np.arange(len(X)), n_batches):
            pca.partial_fit(normalization.rows(X[rows]))
    components: Float64 = np.ascontiguousarray(pca.components_, np.float64)
    return components, np.sqrt(pca.explained_variance_) * normalization.scale


def find_features(
    points: Float64, center: Float64, landmarks: Float64, gamma: float | None, kernel: KernelSpec
) -> FeatureMap:
    """Return a kernel's features on the span of some points' images; points minus the center.

    Source: Williams, Seeger: Using the Nystroem method to speed up kernel machines, 2001.
    """
    Z = project_rows(points, np.zeros_like(center), landmarks, gamma)
    base = find_kernel(kernel.name).block(Z, Z)
    values, vectors = np.linalg.eigh(find_kernel(kernel.name).apply(base, kernel, base))
    scales = np.zeros_like(values)
    np.power(values, -0.25, out=scales, where=values > LEAST_EIGENVALUE * values[-1])
    half = vectors * scales
    return FeatureMap(kernel, Z, half @ half.T)


def scale_of_projections(
    X: Reals, center: Float64, landmarks: Float64, gamma: float | None
) -> float:
    """Return scikit-learn's gamma "scale" of projections: 1 / (l x variance of their values)."""
    n_values = len(X) * len(landmarks)

    def mean(power: int, about: float = 0.0) -> float:
        tiles = project_tiles(X, center, landmarks, gamma)
        return math.fsum(float(((tile - about) ** power).sum()) for _, tile in tiles) / n_values

    variance = mean(2, about=mean(1))
    return 1.0 / (len(landmarks) * variance) if variance else 1.0


MAX_BIAS_ROUNDS = 60
# At one bias, or in so narrow a bracket, the gap must fall by a tenth within this many rounds.
BIAS_PATIENCE = 6
NARROW_BRACKET = 1e-3
# Until there is a bracket, the least and the largest step, in units of the last one.
MIN_GROWTH, MAX_GROWTH = 2.0, 8.0
# Cuts keep this share of a bracket away from its ends, so that both ends move eventually.
EDGE = 0.05


@dataclass(frozen=True)
class Evaluation:
    """The result of one round at one bias: sums over all cells. ``cost`` is the sum of rows' C."""

    round: int
    bias: float
    primal: float
    dual: float
    slope: float
    curvature: float
    cost: float


@dataclass
class BiasSearch:
    """The search for the bias, to a duality gap of at most tol x the sum of all rows' C."""

    tol: float
    bias: float = 0.0
    max_rounds: int = MAX_BIAS_ROUNDS
    below: Evaluation | None = None
    above: Evaluation | None = None
    history: list[Evaluation] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)

    @property
    def best(self) -> Evaluation:
        return min(self.history, key=lambda e: (e.primal, e.round))

    @property
    def gap(self) -> float:
        return self.best.primal - self._lower_bound()

    @property
    def is_solved(self) -> bool:
        return self.gap <= self.tol * self.history[0].cost

    @property
    def is_open(self) -> bool:
        if not self.history:
            return True
        return not self.is_solved and len(self.history) < self.max_rounds and not self._is_stalled

    @property
    def _is_stalled(self) -> bool:
        """Whether the gap no longer falls, as rounding leaves nothing to gain."""
        if len(self.gaps) <= BIAS_PATIENCE:
            return False
        # A slope of 0 gives no direction: the bias stays.
        stays = len({e.bias for e in self.history[-BIAS_PATIENCE:]}) == 1
        if self.below is not None and self.above is not None:
            width = self.above.bias - self.below.bias
            stays = stays or width < NARROW_BRACKET * (1 + abs(self.best.bias))
        return stays and self.gaps[-1] > 0.9 * self.gaps[-1 - BIAS_PATIENCE]

    def _lower_bound(self) -> float:
        flat = [e.dual for e in self.history if e.slope == 0.0]
        # The objective is a sum of squares and losses, so 0 is a bound as well.
        known = [0.0, *flat]
        if self.below is not None and self.above is not None:
            a, b = self.below, self.above
            at = (b.dual - a.dual + a.slope * a.bias - b.slope * b.bias) / (a.slope - b.slope)
            known.append(a.dual + a.slope * (at - a.bias))
        return max(known)

    def add(self, evaluation: Evaluation) -> None:
        self.history.append(evaluation)
        if evaluation.slope < 0 and (self.below is None or evaluation.bias > self.below.bias):
            self.below = evaluation
        if evaluation.slope > 0 and (self.above is None or evaluation.bias < self.above.bias):
            self.above = evaluation
        self.gaps.append(self.gap)
        if self.is_open:
            self.bias = self._next(evaluation)

    def _next(self, latest: Evaluation) -> float:
        """Return a Newton step if it stays in the bracket and slopes fall fast, else a cut."""
        if latest.slope == 0.0:
            # This is the minimum, but the cells are not solved well enough yet to prove it.
            return latest.bias
        newton = latest.bias - latest.slope / latest.curvature if latest.curvature > 0 else None
        if self.below is None or self.above is None:
            step = 1.0 if newton is None else abs(newton - latest.bias)
            if len(self.history) > 1:
                last = abs(latest.bias - self.history[-2].bias)
                step = min(max(step, MIN_GROWTH * last), MAX_GROWTH * last)
            return latest.bias + (step if latest.slope < 0 else -step)
        a, b = self.below, self.above
        width = b.bias - a.bias
        slow = len(self.history) > 2 and abs(latest.slope) > 0.5 * abs(self.history[-3].slope)
        if newton is None or not a.bias < newton < b.bias or slow:
            share = a.slope / (a.slope - b.slope)
            newton = a.bias + min(max(share, EDGE), 1 - EDGE) * width
            if slow and len(self.history) % 2:
                newton = 0.5 * (a.bias + b.bias)
        return newton
