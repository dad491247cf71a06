"""FalkSVC and FalkSVR: local models on the neighborhoods of centers that cover all rows."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from sklearn.utils.validation import check_is_fitted

from daskls.errors import AdviceWarning, ParameterError, warn_user
from daskls.estimators import param
from daskls.estimators.base import LocalEstimator
from daskls.estimators.classifier import LocalClassifier
from daskls.estimators.docs import complete
from daskls.estimators.neighborhoods import (
    PERCENTILES,
    SELECTION_C,
    advice_on_selection,
    fit_fields,
    groups_of,
    local_spec,
    selection_of,
)
from daskls.estimators.regressor import LocalRegressor
from daskls.estimators.scales import coded_features, scale_factors
from daskls.kernels.kernel import find_kernel
from daskls.methods.neighborhoods.method import Falk
from daskls.methods.neighborhoods.parts import count_cover
from daskls.methods.neighborhoods.plan import N_SELECTED
from daskls.records import SolverSpec
from daskls.run.contract import FitRequest

if TYPE_CHECKING:
    from daskls.estimators.advice import Advice

# Regression needs wider kernels than classification: on cpu-act the error is 0.133 standard
# deviations with the largest distance among the candidates, 0.142 without.
NUMBER_PERCENTILES = (10, 50, 90, 100)
# As C = 1 / (2 ridge): ridges from 1/2 to 5e-5.
NUMBER_C = (1.0, 10.0, 100.0, 1000.0, 10000.0)


class FalkEstimator(LocalEstimator):
    _method_class = Falk
    # Candidates of C of a selection where none are given.
    _c_candidates: ClassVar[tuple[float, ...]]

    feature_scale_ = property(scale_factors)
    coded_features_ = property(coded_features)

    def _fit_fields(self, params: param.Params) -> dict[str, Any]:
        spec = local_spec(self, params)
        C = spec.C or (self._c_candidates if params["selection"] else (1.0,))
        spec = replace(spec, C=C)
        method = replace(_method(params, spec), n_groups=groups_of(self, params))
        _check_candidates(params, spec)
        n_folds = spec.cv if method.selection and "cv" in params else None
        return {**fit_fields(params, method, spec), "n_folds": n_folds}

    def _advice(self, shrinkage: Any = None) -> "Iterable[Advice]":
        return advice_on_selection(self, "The one choice for all neighborhoods")

    @property
    def selected_(self) -> dict[str, Any] | None:
        """The selected parameters, with the errors of all candidates; None without a selection."""
        return selection_of(self)

    @property
    def cover_(self) -> dict[str, int]:
        """Counts of the covering: ``n_rounds``, and ``n_searched`` rows."""
        check_is_fitted(self)
        return count_cover(self._reader)


def _method(params: param.Params, spec: SolverSpec) -> Falk:
    selection = params["selection"]
    is_wide = selection and spec.gamma is None and param.has_width(spec.kernel)
    method = param.read(Falk, params, **({} if is_wide else {"percentiles": None}))
    ks, n_assigned = method.n_neighbors, method.n_assigned
    if n_assigned is not None and n_assigned > ks[0]:
        raise ParameterError(
            f"n_assigned={n_assigned} is above n_neighbors={ks[0]}; a center covers only rows that "
            "it is trained on. Lower n_assigned, or raise n_neighbors."
        )
    if len(ks) > 1 and selection != "local":
        raise ParameterError(
            f"n_neighbors has {len(ks)} candidates, which selection={selection!r} cannot choose "
            'from; give one, or selection="local".'
        )
    # Where every parameter that "local" would choose has one value, there is nothing to select.
    is_given = all(values and len(values) == 1 for values in (ks, spec.C, spec.gamma))
    return replace(method, selection=None) if selection == "local" and is_given else method


def _check_candidates(params: param.Params, spec: SolverSpec) -> None:
    if params["selection"] is None:
        for name, values in (("C", spec.C), ("gamma", spec.gamma)):
            if values is not None and len(values) > 1:
                raise ParameterError(
                    f"{name} has {len(values)} candidates but selection is None; give one "
                    'value, or a selection: "local" or "each".'
                )
    is_euclidean = find_kernel(spec.kernel).is_euclidean
    if not is_euclidean and spec.gamma is not None and len(spec.gamma) > 1:
        raise ParameterError(
            f"gamma has {len(spec.gamma)} candidates, but the nearest neighbors in a "
            f"{spec.kernel} kernel's feature space depend on gamma; give one value."
        )


@complete()
class FalkSVC(FalkEstimator, LocalClassifier):
    """FaLK-SVM: an SVM on the neighborhood of each of a few centers that cover all rows.

    Centers are training rows, chosen so that every row is among the ``n_assigned`` nearest rows of
    at least one. Around each center an SVM with offset is trained on its ``n_neighbors`` nearest
    rows. A query is predicted by the SVM of the center that its nearest training row belongs to.
    Neighbors are found without holding the rows in memory.

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
    n_centers : int, >= 1, default 3. Models averaged with assign="k_centers".
    {searched_kernel}
    C : float, sequence of float, or None
        Box bound of a row of weight 1. None: 1; with a selection the papers' 1, 4, 16, 64.
    gamma : float, sequence of float (not of "poly"), or None
        None: with a selection and "rbf", 1 / q^2 with q a percentile of the distances within each
        neighborhood; else scikit-learn's "scale", 1 / (d x variance of the sampled rows).
        The papers' width sigma is 1 / sqrt(2 gamma), in some of their programs 1 / sqrt(gamma).
    {degree, coef0, neighbors, n_groups}
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
    fit_report_ : record array (n_cells_,). One row per center; ``n_read`` counts the leaves, or
        groups, that its search read.

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

    def __init__(
        self,
        n_neighbors: param.Counts = 1000,
        *,
        n_assigned: param.MaybeCount = None,
        assign: Literal["point", "center", "k_centers"] = "point",
        selection: Literal["local", "each"] | None = "local",
        n_centers: param.Count = 3,
        kernel: param.SearchedKernel = "rbf",
        C: param.Candidates = None,
        gamma: param.Candidates = None,
        degree: param.Count = 3,
        coef0: param.NotNegative = 0.0,
        neighbors: param.NeighborSearch = "exact",
        n_groups: param.Count = 3,
        percentiles: param.Percentiles = PERCENTILES,
        cv: param.Folds = 5,
        tol: param.Positive = 1e-3,
        feature_scale: param.FeatureScale = None,
        class_weight: param.ClassWeight = None,
        probability: param.ProbabilityMaps = "auto",
        store: param.Store = None,
        client: Any = None,
        random_state: param.RandomState = None,
        verbose: param.Verbose = 0,
    ) -> None:
        param.keep(locals())

    def _warn_about_folds(self, request: FitRequest) -> None:
        """Warn that neighborhoods have fewer inner rows than folds, if a selection used them."""
        method, n_rows = cast(Falk, request.method), int(self._reader.meta["n_rows"])
        inner = min(method.inner(min(method.n_neighbors[0], n_rows)), n_rows)
        if method.selection in ("local", "each") and inner < self.cv:
            of = self.n_cells_ if method.selection == "each" else min(N_SELECTED, n_rows)
            warn_user(
                f"{of} neighborhoods have {inner} inner rows, fewer than cv={self.cv}; each was "
                "evaluated with as many folds as inner rows. Lower cv, or raise n_assigned.",
                AdviceWarning,
            )


@complete()
class FalkSVR(FalkEstimator, LocalRegressor):
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
        nearest ones, whose predictions are averaged: not advisable where the data have gaps, as a
        model may predict any number far from its rows.
    selection : "local", "each" or None, default "local"
        How parameters without a single given value are chosen: by the least squared error.
        None: C and gamma are single values. "local": k, C and the width are chosen in the
        neighborhoods of 10 rows drawn by seed, leaving out each of the k' inner rows in turn.
        "each": C and the width are chosen in every neighborhood, as by "local".
    n_centers : int, >= 1, default 3. Models averaged with assign="k_centers".
    {searched_kernel}
    C : float, sequence of float, or None
        1 / (2 ridge), for rows of weight 1 and y in units of its standard deviation. None: 1; with
        a selection 1, 10, 100, 1000, 10000.
    gamma : float, sequence of float (not of "poly"), or None
        None: with a selection and "rbf", 1 / q^2 with q a percentile of the distances within each
        neighborhood; else scikit-learn's "scale", 1 / (d x variance of the sampled rows).
    {degree, coef0, neighbors, n_groups}
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
        y; ``n_read`` counts the leaves, or groups, that its search read.

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

    def __init__(
        self,
        n_neighbors: param.Counts = 1000,
        *,
        n_assigned: param.MaybeCount = None,
        assign: Literal["point", "center", "k_centers"] = "point",
        selection: Literal["local", "each"] | None = "local",
        n_centers: param.Count = 3,
        kernel: param.SearchedKernel = "rbf",
        C: param.Candidates = None,
        gamma: param.Candidates = None,
        degree: param.Count = 3,
        coef0: param.NotNegative = 0.0,
        neighbors: param.NeighborSearch = "exact",
        n_groups: param.Count = 3,
        percentiles: param.Percentiles = NUMBER_PERCENTILES,
        feature_scale: param.FeatureScale = None,
        store: param.Store = None,
        client: Any = None,
        random_state: param.RandomState = None,
        verbose: param.Verbose = 0,
    ) -> None:
        param.keep(locals())
