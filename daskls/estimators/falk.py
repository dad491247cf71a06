"""FalkSVC and FalkSVR: local models on the neighborhoods of centers that cover all rows."""

import os
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from daskls.errors import AdviceWarning, warn_user
from daskls.estimators.docs import share_docs
from daskls.estimators.neighborhoods import (
    PERCENTILES,
    SELECTION_C,
    FalkEstimator,
    NeighborhoodClassifier,
    NeighborhoodRegressor,
)
from daskls.estimators.options import (
    CLASS_CONSTRAINTS,
    Candidates,
    FeatureScaleParam,
    ProbabilityParam,
)
from daskls.methods.neighborhoods.plan import N_SELECTED

# Regression needs wider kernels than classification: on cpu-act the error is 0.133 standard
# deviations with the largest distance among the candidates, 0.142 without.
NUMBER_PERCENTILES = (10, 50, 90, 100)
# As C = 1 / (2 ridge): ridges from 1/2 to 5e-5.
NUMBER_C = (1.0, 10.0, 100.0, 1000.0, 10000.0)


@share_docs()
class FalkSVC(FalkEstimator, NeighborhoodClassifier):
    """FaLK-SVM: an SVM on the neighborhood of each of a few centers that cover all rows.

    Centers are training rows, chosen so that every row is among the ``n_assigned`` nearest rows of
    at least one. Around each center an SVM with offset is trained on its ``n_neighbors`` nearest
    rows. A query is predicted by the SVM of the center that its nearest training row belongs to.
    Neighbors are exact, and found without holding the rows in memory.

    Parameters
    ----------
    n_neighbors : int, or sequence of int, default 1000
        k, the rows of a neighborhood; at most the number of rows. Several values are candidates
        for ``selection="local"``.
    n_assigned : int or None
        k', the inner rows that a center covers: between 1 and k. None: half of k. Smaller
        values need more centers and follow the rows more closely.
    assign : "point", "center" or "k_centers", default "point"
        The center whose model predicts a query: that of its nearest training row (FaLK-SVM), the
        nearest center (FaLK-SVMc: faster, and the model need not hold the training rows), or the
        ``n_centers`` nearest ones, whose decision functions, clipped to [-1, 1], are averaged
        (not in the paper).
    selection : "local", "each" or None, default "local"
        How parameters without a single given value are chosen.
        None: C and gamma are single values. "local" (FaLK-SVMl): k, C and the width are chosen by
        cross-validation in the neighborhoods of 10 rows drawn by seed, with folds drawn from the k'
        inner rows. "each": C and the width are chosen in every neighborhood, as by "local".
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
    cv : int, >= 2, default 5. Folds of a selection.
    {k_tol, feature_scale, class_weight, probability, store, client, random_state, verbose}

    Attributes
    ----------
    {classes_, n_features_in_, feature_names_in_}
    {feature_scale_}
    n_cells_ : int. Centers.
    selected_ : dict or None. The choice of "local": n_neighbors, C, gamma, percentile,
        and the error of every candidate as nested lists (k, width from large to small, C).
    cover_ : dict. Rounds in which the centers were chosen, and rows searched for it.
    {stage_s_}
    fit_report_ : record array (n_cells_,). One row per center; ``n_read`` counts the leaves that
        its search read.

    References
    ----------
    Segata, Blanzieri: Fast and scalable local kernel machines, JMLR 2010 (2009 report), equations
    7 to 15. Segata: FaLKM-lib v1.0, 2009. Differences: candidate centers come in the order of a
    farthest-first traversal of a sample, then of a seeded hash; a row belongs to the center in
    whose list it has the smallest rank, ties to the smaller row number (equation 14). If more than
    k' rows are equal, those of larger numbers belong to the center of the first one. Each model
    holds copies of its support rows, so it is read from disk in one piece.

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

    _c_candidates = SELECTION_C
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **FalkEstimator._parameter_constraints,
        **CLASS_CONSTRAINTS,
    }

    def __init__(
        self,
        n_neighbors: int | Sequence[int] = 1000,
        *,
        n_assigned: int | None = None,
        assign: Literal["point", "center", "k_centers"] = "point",
        selection: Literal["local", "each"] | None = "local",
        n_centers: int = 3,
        kernel: str = "rbf",
        C: Candidates = None,
        gamma: Candidates = None,
        degree: int = 3,
        coef0: float = 0.0,
        percentiles: Sequence[float] = PERCENTILES,
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
        self.cv = cv
        self.tol = tol
        self.feature_scale = feature_scale
        self.class_weight = class_weight
        self.probability = probability
        self.store = store
        self.client = client
        self.random_state = random_state
        self.verbose = verbose

    def _warn_about_folds(self) -> None:
        """Warn that neighborhoods have fewer inner rows than folds, if a selection used them."""
        method, n_rows = self._method(), int(self._reader.meta["n_rows"])
        inner = min(method.inner(min(method.n_neighbors[0], n_rows)), n_rows)
        if method.selection in ("local", "each") and inner < self.cv:
            of = self.n_cells_ if method.selection == "each" else min(N_SELECTED, n_rows)
            warn_user(
                f"{of} neighborhoods have {inner} inner rows, fewer than cv={self.cv}; each was "
                "evaluated with as many folds as inner rows. Lower cv, or raise n_assigned.",
                AdviceWarning,
            )


@share_docs()
class FalkSVR(FalkEstimator, NeighborhoodRegressor):
    """Local regression on the neighborhood of each of a few centers that cover all rows.

    Centers, neighborhoods and the assignment of queries are those of `FalkSVC`: every row is among
    the ``n_assigned`` nearest rows of at least one center. Around each center a least-squares
    regression with offset (kernel ridge) is trained on its ``n_neighbors`` nearest rows. y may have
    several columns, (n, t), which share kernel, width, C and every factorization.

    Parameters
    ----------
    n_neighbors : int, or sequence of int, default 1000
        k, the rows of a neighborhood; at most the number of rows. Several values are candidates
        for ``selection="local"``. A model keeps all k rows.
    n_assigned : int or None
        k', the inner rows that a center covers: between 1 and k. None: half of k. Smaller
        values need more centers and follow the rows more closely.
    assign : "point", "center" or "k_centers", default "point"
        The center whose model predicts a query: that of its nearest training row, the nearest
        center (faster, and the model need not hold the training rows), or the ``n_centers``
        nearest ones, whose answers are averaged: not advisable where the data have gaps, as a model
        may answer with any number far from its rows.
    selection : "local", "each" or None, default "local"
        How parameters without a single given value are chosen: by the least squared error.
        None: C and gamma are single values. "local": k, C and the width are chosen in the
        neighborhoods of 10 rows drawn by seed, leaving out each of the k' inner rows in turn.
        "each": C and the width are chosen in every neighborhood, as by "local".
    n_centers : int, >= 1, default 3. Of "k_centers".
    {searched_kernel}
    C : float, sequence of float, or None
        1 / (2 ridge), for rows of weight 1 and y in units of its standard deviation. None: 1; with
        a selection 1, 10, 100, 1000, 10000.
    gamma : float, sequence of float (not of "poly"), or None
        None: with a selection and "rbf", 1 / q^2 with q a percentile of the distances within each
        neighborhood; else scikit-learn's "scale", 1 / (d x variance of the sampled rows).
    {degree, coef0}
    percentiles : sequence of float in [0, 100], default (10, 50, 90, 100)
        Candidates of the width where gamma is None and there is a selection.
    {feature_scale, store, client, random_state, verbose}

    Attributes
    ----------
    {n_features_in_, feature_names_in_}
    {feature_scale_}
    n_cells_ : int. Centers.
    selected_ : dict or None. The choice of "local": n_neighbors, C, gamma, percentile,
        and the squared error of every candidate, in units of the variance of y, as nested lists
        (k, width from large to small, C).
    cover_ : dict. Rounds in which the centers were chosen, and rows searched for it.
    {stage_s_}
    fit_report_ : record array (n_cells_,). One row per center: rows, C, gamma, seconds, and as
        validation error the mean squared error of left-out inner rows, in units of the variance of
        y; ``n_read`` counts the leaves that its search read.

    References
    ----------
    Segata, Blanzieri: Fast and scalable local kernel machines, JMLR 2010 (2009 report), for centers
    and neighborhoods. Saunders, Gammerman, Vovk: Ridge regression learning algorithm in dual
    variables, ICML 1998. Ours: their combination, and the choice of candidates by leave-one-out.

    Examples
    --------
    >>> import numpy as np
    >>> from daskls import FalkSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((800, 2))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1]
    >>> model = FalkSVR(n_neighbors=200, random_state=0).fit(X, y)
    >>> model.predict([[0.5, 0.5]]).round(2)
    array([0.64])
    >>> bool(model.score(X, y) > 0.99)
    True
    """

    _c_candidates = NUMBER_C
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        name: own
        for name, own in FalkEstimator._parameter_constraints.items()
        if name not in ("tol", "cv")
    }

    def __init__(
        self,
        n_neighbors: int | Sequence[int] = 1000,
        *,
        n_assigned: int | None = None,
        assign: Literal["point", "center", "k_centers"] = "point",
        selection: Literal["local", "each"] | None = "local",
        n_centers: int = 3,
        kernel: str = "rbf",
        C: Candidates = None,
        gamma: Candidates = None,
        degree: int = 3,
        coef0: float = 0.0,
        percentiles: Sequence[float] = NUMBER_PERCENTILES,
        feature_scale: FeatureScaleParam = None,
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
        self.feature_scale = feature_scale
        self.store = store
        self.client = client
        self.random_state = random_state
        self.verbose = verbose
