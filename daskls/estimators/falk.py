"""FalkSVC: local SVMs on the neighborhoods of a covering set of centers."""

import os
import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, Literal

from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from daskls.errors import AdviceWarning, ParameterError
from daskls.estimators.docs import share_docs
from daskls.estimators.neighborhoods import (
    SELECTION_COSTS,
    SVM_CONSTRAINTS,
    NeighborhoodClassifier,
    counts,
    selection_of,
    svm_spec,
)
from daskls.estimators.probability import PROBABILITY, ProbabilityParam
from daskls.estimators.scale import FeatureScaleParam, has_width
from daskls.kernels.registry import find_kernel
from daskls.methods.neighborhoods.method import Falk
from daskls.records import SolverSpec

__all__ = ["FalkSVC"]

# The papers' grid of local model selection.
PERCENTILES = (1, 10, 50, 90)

Candidates = float | Sequence[float] | None


@share_docs()
class FalkSVC(NeighborhoodClassifier):
    """FaLK-SVM: an SVM on the neighborhood of each of a few centers that cover all rows.

    Centers are training rows, chosen so that every row is among the ``n_assigned`` nearest rows of
    at least one. Around each an SVM with offset is trained on its ``n_neighbors`` nearest rows. A
    query is predicted by the SVM of the center that its nearest training row belongs to. Neighbors
    are exact, and found without holding the rows in memory.

    Parameters
    ----------
    n_neighbors : int, or sequence of int, default 1000
        k, the rows of a neighborhood; at most all rows there are. Several are candidates for
        ``selection="local"`` and ``"grid"``.
    n_assigned : int or None
        k', the inner rows that a center covers: between 1 and k. None: half of k. Smaller
        values need more centers and follow the rows more closely.
    assign : "point", "center" or "k_centers", default "point"
        The center whose model predicts a query: that of its nearest training row (FaLK-SVM), the
        nearest center (FaLK-SVMc: faster, and the model need not hold the training rows), or the
        ``n_centers`` nearest ones, whose decision functions, clipped to [-1, 1], are averaged
        (not in the paper).
    selection : "local", "grid", "each" or None, default "local"
        How what is not given as one value is chosen.
        None: C and gamma are single values. "local" (FaLK-SVMl): k, C and the width are chosen by
        cross-validation in the neighborhoods of ``n_selected`` rows drawn by seed, the folds drawn
        from the k' inner rows. "grid": they are chosen by cross-validation of the whole method,
        ``cv`` times as many neighborhoods for each k, all candidates on each: slow, but reliable
        for k. "each": C and the width are chosen so in every neighborhood.
    n_centers : int, >= 1, default 3. Of "k_centers".
    {searched_kernel}
    C : float, sequence of float, or None
        Box bound of a row of weight 1. None: 1; with a selection the papers' 1, 4, 16, 64.
    gamma : float, sequence of float (not of "poly"), or None
        None: with a selection and "rbf", 1 / q^2 with q a percentile of the distances within each
        neighborhood; else scikit-learn's "scale", 1 / (d x variance of the sampled rows).
        The papers' width sigma is 1 / sqrt(2 gamma) or 1 / sqrt(gamma), by program.
    {degree, coef0}
    percentiles : sequence of float in [0, 100], default (1, 10, 50, 90)
        Candidates of the width where gamma is None and there is a selection.
    n_selected : int, >= 1, default 10. Neighborhoods that "local" evaluates.
    cv : int, >= 2, default 5. Folds of a selection.
    {k_tol, feature_scale, class_weight, probability, store, client, random_state, verbose}

    Attributes
    ----------
    {classes_, n_features_in_, feature_names_in_}
    {feature_scale_}
    n_cells_ : int. Centers.
    selected_ : dict or None. What "local" or "grid" chose: n_neighbors, C, gamma, percentile, and
        the error of every candidate as nested lists (k, width from large to small, C).
    cover_ : dict. Rounds in which the centers were decided, and rows searched for it.
    {stage_s_}
    fit_report_ : record array (n_cells_,). One row a center; ``n_read`` counts the leaves that its
        search read.

    References
    ----------
    Segata, Blanzieri: Fast and scalable local kernel machines, JMLR 2010 (2009 report), equations
    7 to 15. Segata: FaLKM-lib v1.0, 2009. Differences: the order in which rows may become centers
    is that of a farthest-first traversal of a sample, then a seeded hash; a row belongs to the
    center in whose list it has the smallest rank, ties to the smaller row number (equation 14).
    Of more than k' equal rows, those of larger numbers belong to the center of the first one.
    Models hold copies of their support rows, so that each is read from disk in one piece.

    Examples
    --------
    >>> import numpy as np
    >>> from daskls import FalkSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((600, 2))
    >>> y = np.where((X[:, 0] > 0.5) == (X[:, 1] > 0.5), "same", "differs")
    >>> model = FalkSVC(n_neighbors=100, C=10.0, random_state=0).fit(X, y)
    >>> print(*model.predict([[0.9, 0.8], [0.1, 0.7]]))
    same differs
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NeighborhoodClassifier._parameter_constraints,
        **SVM_CONSTRAINTS,
        "n_assigned": [Interval(Integral, 1, None, closed="left"), None],
        "assign": [StrOptions({"point", "center", "k_centers"})],
        "selection": [StrOptions({"local", "grid", "each"}), None],
        "n_centers": [Interval(Integral, 1, None, closed="left")],
        "percentiles": ["array-like"],
        "n_selected": [Interval(Integral, 1, None, closed="left")],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "probability": PROBABILITY,
    }

    def __init__(
        self,
        n_neighbors: int | Sequence[int] = 1000,
        *,
        n_assigned: int | None = None,
        assign: Literal["point", "center", "k_centers"] = "point",
        selection: Literal["local", "grid", "each"] | None = "local",
        n_centers: int = 3,
        kernel: str = "rbf",
        C: Candidates = None,
        gamma: Candidates = None,
        degree: int = 3,
        coef0: float = 0.0,
        percentiles: Sequence[float] = PERCENTILES,
        n_selected: int = 10,
        cv: int = 5,
        tol: float = 1e-3,
        feature_scale: FeatureScaleParam = None,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        probability: ProbabilityParam = "auto",
        store: str | os.PathLike[str] | None = None,
        client: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.n_assigned = n_assigned
        self.assign = assign
        self.selection = selection
        self.n_centers = n_centers
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.percentiles = percentiles
        self.n_selected = n_selected
        self.cv = cv
        self.tol = tol
        self.feature_scale = feature_scale
        self.class_weight = class_weight
        self.probability = probability
        self.store = store
        self.client = client
        self.random_state = random_state
        self.verbose = verbose

    def _solver(self) -> SolverSpec:
        spec = svm_spec(self, SELECTION_COSTS if self.selection else (1.0,), int(self.cv))
        if self.selection is None:
            for name, values in (("C", spec.C), ("gamma", spec.gamma)):
                if values is not None and len(values) > 1:
                    raise ParameterError(
                        f"{name} has {len(values)} candidates but selection is None; give one "
                        'value, or a selection: "local", "grid" or "each".'
                    )
        is_euclidean = find_kernel(self.kernel).is_euclidean
        if not is_euclidean and spec.gamma is not None and len(spec.gamma) > 1:
            raise ParameterError(
                f"gamma has {len(spec.gamma)} candidates, but which rows are near each other in a "
                f"{self.kernel} kernel's feature space depends on it; give one value."
            )
        return spec

    def _method(self) -> Falk:
        candidates = counts("n_neighbors", self.n_neighbors)
        if self.n_assigned is not None and self.n_assigned > candidates[0]:
            raise ParameterError(
                f"n_assigned={self.n_assigned} is above n_neighbors={candidates[0]}; a center "
                "covers only rows that it is trained on. Lower n_assigned, or raise n_neighbors."
            )
        if len(candidates) > 1 and self.selection not in ("local", "grid"):
            raise ParameterError(
                f"n_neighbors has {len(candidates)} candidates, which selection="
                f'{self.selection!r} cannot choose from; give one, or selection="local" or "grid".'
            )
        local_widths = self.selection and self.gamma is None and has_width(self.kernel)
        return Falk(
            n_neighbors=candidates,
            n_assigned=None if self.n_assigned is None else int(self.n_assigned),
            assign=self.assign,
            n_centers=int(self.n_centers),
            selection=None if self._is_given(candidates) else self.selection,
            percentiles=widths(self.percentiles) if local_widths else None,
            n_selected=int(self.n_selected),
        )

    def _is_given(self, candidates: tuple[int, ...]) -> bool:
        """Whether all that "local" would choose is given, so that no fold has to be made."""
        spec = self._solver()
        open_values = (candidates, spec.C or (), spec.gamma or ())
        return self.selection == "local" and all(len(values) == 1 for values in open_values)

    def _warn_about_folds(self) -> None:
        """Say that neighborhoods hold fewer inner rows than folds, if a selection met that."""
        method, n_rows = self._method(), int(self._reader.meta["n_rows"])
        inner = min(method.inner(min(method.n_neighbors[0], n_rows)), n_rows)
        if method.selection in ("local", "each") and inner < self.cv:
            of = self.n_cells_ if method.selection == "each" else min(method.n_selected, n_rows)
            warnings.warn(
                f"{of} neighborhoods have {inner} inner rows, fewer than cv={self.cv}; each was "
                "evaluated with as many folds as inner rows. Lower cv, or raise n_assigned.",
                AdviceWarning,
                stacklevel=3,
            )

    @property
    def selected_(self) -> dict[str, Any] | None:
        """The selected parameters, with the errors of all candidates; None without a selection."""
        return selection_of(self)

    @property
    def cover_(self) -> dict[str, int]:
        """Counts of the covering: ``n_rounds``, and ``n_searched`` rows."""
        check_is_fitted(self)
        return self._reader.cover


def widths(percentiles: Sequence[float]) -> tuple[float, ...]:
    """Return percentiles from large to small: widest first.

    Raises
    ------
    ParameterError : none, or one outside of 0 to 100
    """
    values = sorted({float(p) for p in percentiles}, reverse=True)
    if not values or not all(0 <= p <= 100 for p in values):
        raise ParameterError(
            f"percentiles is {list(percentiles)!r}; give at least one value between 0 and 100."
        )
    return tuple(values)
