"""Landmarks that the rows of all cells are projected on.

The bias that the cells of a linear SVM share: a search over rounds of all cells.

Given the bias, cells are solved one by one; the least value that they reach together is a convex
function of it. Each round gives a point above that function (the primal objectives' sum), a line
below it (the dual ones', whose slope is the sum of the cells' slopes) and its curvature. The search
takes Newton steps, within a bracket once it has one, and ends where the best point is near enough
to where the lines cross.
"""

from dataclasses import dataclass, field

import numpy as np

from daskls.kernels.landmarks import Gauge
from daskls.records import Float64, Reals

# Rows of a batch of the principal component analysis.
PCA_BATCH_ROWS = 8192


def draw_landmarks(X: Reals, gauge: Gauge, n_landmarks: int, seed: tuple[int, ...]) -> Float64:
    """Return rows drawn at random, minus the gauge's center, float64 (l, d)."""
    drawn = np.random.default_rng(seed).choice(len(X), n_landmarks, replace=False)
    return np.subtract(X[np.sort(drawn)], gauge.center, dtype=np.float64)


def find_components(X: Reals, gauge: Gauge, n_landmarks: int) -> tuple[Float64, Float64]:
    """Return the first principal components.

    Parameters
    ----------
    X : real array, shape (m, d). Sampled rows.
    gauge : Gauge of them
    n_landmarks : int

    Returns
    -------
    components : float64 array, shape (l, d). Unit vectors.
    deviations : float64 array, shape (l,). The rows' standard deviation along each.
    """
    # Here, so that a process which only predicts never loads it.
    from sklearn.decomposition import IncrementalPCA

    batch_rows = max(PCA_BATCH_ROWS, n_landmarks)
    # The last batch must have as many rows as there are components: it takes in a short one.
    n_batches = max(len(X) // batch_rows, 1)
    pca = IncrementalPCA(n_landmarks)
    # Of equal rows no component has a share of the variance, which is 0.
    with np.errstate(invalid="ignore", divide="ignore"):
        for rows in np.array_split(np.arange(len(X)), n_batches):
            pca.partial_fit(gauge.rows(X[rows]))
    components: Float64 = np.ascontiguousarray(pca.components_, np.float64)
    return components, np.sqrt(pca.explained_variance_) * gauge.scale


MAX_BIAS_ROUNDS = 60
# Rounds near one bias in which the gap must fall by a tenth.
BIAS_PATIENCE = 6
NARROW = 1e-3
# While no bracket is known, a step is so many times the last one, at least and at most.
MIN_GROWTH, MAX_GROWTH = 2.0, 8.0
# Ends of a bracket are kept apart by this share of it, so that both of them move in the end.
EDGE = 0.05


@dataclass(frozen=True)
class Evaluation:
    """The result of one round at one bias: sums over all cells."""

    round: int
    bias: float
    primal: float
    dual: float
    slope: float
    curvature: float
    cost: float


@dataclass
class BiasSearch:
    """The search of one problem.

    Parameters
    ----------
    tol : float, > 0. The search ends at a duality gap of at most tol x the sum of all costs.
    bias : float. The first bias to evaluate; then the next one.
    max_rounds : int. A guard: Newton steps and cuts need a handful.

    Attributes
    ----------
    best : Evaluation of the smallest primal value
    gap : float. By how much ``best`` may exceed the minimum.
    """

    tol: float
    bias: float = 0.0
    max_rounds: int = MAX_BIAS_ROUNDS
    below: Evaluation | None = None
    above: Evaluation | None = None
    history: list[Evaluation] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)

    @property
    def best(self) -> Evaluation:
        """The evaluation of the smallest primal value, the first of equal ones."""
        return min(self.history, key=lambda e: (e.primal, e.round))

    @property
    def gap(self) -> float:
        """By how much the best primal value may exceed the minimum."""
        return self.best.primal - self._lower_bound()

    @property
    def is_solved(self) -> bool:
        """Whether the gap is small enough."""
        return self.gap <= self.tol * self.history[0].cost

    @property
    def is_open(self) -> bool:
        """Whether another round is wanted."""
        if not self.history:
            return True
        return not self.is_solved and len(self.history) < self.max_rounds and not self._is_stuck

    @property
    def _is_stuck(self) -> bool:
        """Whether the gap no longer falls: rounding leaves nothing to gain."""
        if len(self.gaps) <= BIAS_PATIENCE:
            return False
        # A slope of 0 gives no direction: the same bias again.
        stays = len({e.bias for e in self.history[-BIAS_PATIENCE:]}) == 1
        if self.below is not None and self.above is not None:
            width = self.above.bias - self.below.bias
            stays = stays or width < NARROW * (1 + abs(self.best.bias))
        return stays and self.gaps[-1] > 0.9 * self.gaps[-1 - BIAS_PATIENCE]

    def _lower_bound(self) -> float:
        """Return a value that the function nowhere falls below."""
        flat = [e.dual for e in self.history if e.slope == 0.0]
        # Both objectives are sums of squares and of losses.
        known = [0.0, *flat]
        if self.below is not None and self.above is not None:
            a, b = self.below, self.above
            at = (b.dual - a.dual + a.slope * a.bias - b.slope * b.bias) / (a.slope - b.slope)
            known.append(a.dual + a.slope * (at - a.bias))
        return max(known)

    def add(self, found: Evaluation) -> None:
        """Add the result of a round at ``bias``, and choose the next bias."""
        self.history.append(found)
        if found.slope < 0 and (self.below is None or found.bias > self.below.bias):
            self.below = found
        if found.slope > 0 and (self.above is None or found.bias < self.above.bias):
            self.above = found
        self.gaps.append(self.gap)
        if self.is_open:
            self.bias = self._next(found)

    def _next(self, found: Evaluation) -> float:
        """Return a Newton step if it stays in the bracket and the last ones got on, else a cut."""
        if found.slope == 0.0:
            # The minimum, of which the cells do not know all yet.
            return found.bias
        newton = found.bias - found.slope / found.curvature if found.curvature > 0 else None
        if self.below is None or self.above is None:
            step = 1.0 if newton is None else abs(newton - found.bias)
            if len(self.history) > 1:
                last = abs(found.bias - self.history[-2].bias)
                step = min(max(step, MIN_GROWTH * last), MAX_GROWTH * last)
            return found.bias + (step if found.slope < 0 else -step)
        a, b = self.below, self.above
        width = b.bias - a.bias
        slow = len(self.history) > 2 and abs(found.slope) > 0.5 * abs(self.history[-3].slope)
        if newton is None or not a.bias < newton < b.bias or slow:
            share = a.slope / (a.slope - b.slope)
            newton = a.bias + min(max(share, EDGE), 1 - EDGE) * width
            if slow and len(self.history) % 2:
                newton = 0.5 * (a.bias + b.bias)
        return newton
