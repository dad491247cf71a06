"""The lazy methods: a query's neighbors train an SVM, vote or are averaged at prediction."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from daskls.estimators import param
from daskls.estimators.base import LocalEstimator
from daskls.estimators.classifier import LocalClassifier
from daskls.estimators.docs import complete
from daskls.estimators.neighborhoods import (
    SELECTION_C,
    advice_on_selection,
    check_single,
    fit_fields,
    groups_of,
    inner_of,
    local_spec,
    one_count,
    select,
    selection_of,
    widths_of,
)
from daskls.estimators.regressor import LocalRegressor
from daskls.estimators.scales import coded_features, scale_factors
from daskls.kernels.kernel import find_kernel
from daskls.methods.neighborhoods.method import KNN, KNNSVM

if TYPE_CHECKING:
    from daskls.estimators.advice import Advice


@complete()
class KNNSVC(LocalClassifier):
    """kNNSVM: an SVM on the nearest training rows of every query, trained at prediction.

    `fit` only regroups the rows. Where neither C nor gamma is given, it also selects C and the
    width, leaving out 1 % of the rows (2000 at least, 5000 at most) one at a time, which costs
    about as much as predicting five times as many rows. Neighborhoods of one class need no
    training; queries of a block with the same neighbors share an SVM.

    Parameters
    ----------
    n_neighbors : int, default 100
        k, the rows of a neighborhood; at most the number of rows, which gives the usual SVM.
    {kernel}
        For "poly", neighbors are nearest in the kernel's feature space.
    {selected_C, selected_gamma}
    selection : "each" or None, default None
        "each": each query's neighbors choose C and the width among the candidates, by 5 folds
        of the ``n_inner`` nearest ones. `fit` then selects nothing; a query trains each candidate
        five times. With gamma None, widths are percentiles of the distances within the
        neighborhood. None: one choice for all queries, if C and gamma are open.
    n_inner : int or None
        k', for selection="each". Farther neighbors are in every training fold. None: k, all
        neighbors: on nine small sets the mean error was 21.4 %, with k / 2 22.1 %.
    {degree, coef0, neighbors, n_groups, k_tol, feature_scale, class_weight}
    probability : "auto", bool, "sigmoid", "isotonic" or "each", default "auto"
        Whether the model has `predict_proba`. True or "sigmoid": by Platt's sigmoid, one per class;
        "isotonic": by increasing steps. They are fitted to decision values of held-out rows of
        further fits: five to all rows, or above 10,000 rows one to some parts of space. "auto":
        none. "each": by a sigmoid fitted to the decision values of each query's neighbors in 5
        folds; `fit` does nothing more. With more than two classes among the neighbors, each has an
        SVM and a choice against the others, and the probabilities are normalized. They are 0 or 1
        where all neighbors have one class. Sample weights count, class weights do not.
    {store, client, random_state, verbose}

    Attributes
    ----------
    {classes_, n_features_in_, feature_names_in_}
    {feature_scale_}
    n_cells_ : int. 0: nothing is trained beforehand.
    selected_ : dict or None. The selection: n_neighbors, C, gamma, percentile (the width follows
        each neighborhood's own distances), and the error of every candidate as nested lists (k,
        width from large to small, C); candidates far from the best were dropped after some of the
        rows. None where C or gamma was given, or with selection="each".
    {stage_s_}

    References
    ----------
    Blanzieri, Melgani 2006, 2008; Segata, Blanzieri 2009, equation 6, and definitions 3 and 4 for
    selection="each"; Segata: FaLKM-lib v1.0, 2009, sections 2.3 and 2.6, for probability="each".

    Examples
    --------
    >>> import numpy as np
    >>> from daskls import KNNSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((300, 2))
    >>> y = (X[:, 0] > 0.5) == (X[:, 1] > 0.5)
    >>> model = KNNSVC(n_neighbors=40, C=10.0, random_state=0).fit(X, y)
    >>> model.predict([[0.9, 0.8], [0.1, 0.7]]).tolist()
    [True, False]
    """

    _method_class = KNNSVM
    feature_scale_ = property(scale_factors)
    coded_features_ = property(coded_features)

    def __init__(
        self,
        n_neighbors: param.OneCount = 100,
        *,
        kernel: param.SearchedKernel = "rbf",
        C: param.Candidates = None,
        gamma: param.Candidates = None,
        selection: Literal["each"] | None = None,
        n_inner: param.MaybeCount = None,
        degree: param.Count = 3,
        coef0: param.NotNegative = 0.0,
        neighbors: param.NeighborSearch = "exact",
        n_groups: param.Count = 3,
        tol: param.Positive = 1e-3,
        feature_scale: param.FeatureScale = None,
        class_weight: param.ClassWeight = None,
        probability: param.LocalProbability = "auto",
        store: param.Store = None,
        client: Any = None,
        random_state: param.RandomState = None,
        verbose: param.Verbose = 0,
    ) -> None:
        param.keep(locals())

    def _fit_fields(self, params: param.Params) -> dict[str, Any]:
        k, n_inner = one_count(self, params), inner_of(self, params)
        selection, spec = params["selection"], local_spec(self, params)
        if selection is None:
            spec, is_open, widths = select(spec)
            selection = "left_out" if is_open else None
        else:
            # Every candidate is trained, as in the paper.
            spec = replace(spec, C=spec.C or SELECTION_C, search="full")
            widths = widths_of(spec)
        if not find_kernel(spec.kernel).is_euclidean:
            check_single(replace(spec, C=None))
        n_groups = groups_of(self, params)
        options = {"selection": selection, "percentiles": widths, "n_groups": n_groups}
        return fit_fields(params, KNNSVM((k,), n_assigned=n_inner, **options), spec)

    def _advice(self, shrinkage: Any = None) -> "Iterable[Advice]":
        return advice_on_selection(self, "The one choice for all neighborhoods")

    @property
    def selected_(self) -> dict[str, Any] | None:
        """The selected parameters, with the errors of all candidates; None if they were given."""
        return selection_of(self)


class KernelKNN(LocalEstimator):
    """The base of estimators whose k nearest rows vote or are averaged: nothing is trained."""

    _method_class = KNN
    feature_scale_ = property(scale_factors)
    coded_features_ = property(coded_features)

    def __init__(
        self,
        n_neighbors: param.OneCount = 5,
        *,
        kernel: param.SearchedKernel = "rbf",
        gamma: param.Candidates = None,
        degree: param.Count = 3,
        coef0: param.NotNegative = 0.0,
        neighbors: param.NeighborSearch = "exact",
        n_groups: param.Count = 3,
        feature_scale: param.FeatureScale = None,
        store: param.Store = None,
        client: Any = None,
        random_state: param.RandomState = None,
        verbose: param.Verbose = 0,
    ) -> None:
        param.keep(locals())

    def _fit_fields(self, params: param.Params) -> dict[str, Any]:
        spec = check_single(local_spec(self, params, C=(1.0,)))
        k, n_groups = one_count(self, params), groups_of(self, params)
        return fit_fields(params, KNN(n_neighbors=(k,), n_groups=n_groups), spec)


@complete()
class KernelKNNClassifier(KernelKNN, LocalClassifier):
    """FkNN: the majority of the k nearest rows in the kernel's feature space.

    Parameters
    ----------
    n_neighbors : int, default 5
        k, the rows of a neighborhood; at most the number of rows. Ties go to the first class.
    {kernel}
        "rbf" and "linear" order rows as the Euclidean distance does.
    gamma : float or None. Of "poly"; None: scikit-learn's "scale", of the sampled rows.
    {degree, coef0, neighbors, n_groups, feature_scale, store, client, random_state, verbose}

    Attributes
    ----------
    {classes_, n_features_in_, feature_names_in_}
    {feature_scale_}
    n_cells_ : int. 0: nothing is trained.
    {stage_s_}

    References
    ----------
    Segata: FaLKM-lib v1.0, 2009, section 2.1.

    Examples
    --------
    >>> import numpy as np
    >>> from daskls import KernelKNNClassifier
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0]])
    >>> model = KernelKNNClassifier(n_neighbors=3).fit(X, [0, 0, 1, 1, 1])
    >>> model.predict([[0.4], [9.0]]).tolist()
    [0, 1]
    """


@complete()
class KernelKNNRegressor(KernelKNN, LocalRegressor):
    """The mean target of the k nearest rows in the kernel's feature space.

    Means are weighted by ``sample_weight``. y may have several columns, (n, t).

    Parameters
    ----------
    n_neighbors : int, default 5
        k, the rows of a neighborhood; at most the number of rows.
    {kernel}
        "rbf" and "linear" order rows as the Euclidean distance does.
    gamma : float or None. Of "poly"; None: scikit-learn's "scale", of the sampled rows.
    {degree, coef0, neighbors, n_groups, feature_scale, store, client, random_state, verbose}

    Attributes
    ----------
    {n_features_in_, feature_names_in_}
    {feature_scale_}
    n_cells_ : int. 0: nothing is trained.
    {stage_s_}

    References
    ----------
    Segata: FaLKM-lib v1.0, 2009, section 2.1, for the neighbors. Cover: Estimation by the nearest
    neighbor rule, IEEE Transactions on Information Theory, 1968.

    Examples
    --------
    >>> import numpy as np
    >>> from daskls import KernelKNNRegressor
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0]])
    >>> model = KernelKNNRegressor(n_neighbors=3).fit(X, [0.0, 0.3, 0.6, 5.0, 6.0])
    >>> model.predict([[0.4], [9.0]]).round(2)
    array([0.3 , 3.87])
    """
