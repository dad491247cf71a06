"""The lazy methods: a query's neighbors train an SVM, vote or are averaged at prediction."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from daskls.errors import ParameterError
from daskls.estimators.docs import share_docs
from daskls.estimators.neighborhoods import (
    SVM_CONSTRAINTS,
    NeighborhoodClassifier,
    NeighborhoodEstimator,
    NeighborhoodRegressor,
    candidate_percentiles,
    counts,
    selecting_spec,
    selection_of,
    selects,
)
from daskls.estimators.options import CLASS_CONSTRAINTS, FeatureScaleParam, ProbabilityParam
from daskls.kernels.kernel import find_kernel
from daskls.methods.neighborhoods.method import KNN, KNNSVM
from daskls.records import SolverSpec


def single_count(estimator: Any) -> int:
    values = counts("n_neighbors", estimator.n_neighbors)
    if len(values) > 1:
        raise ParameterError(
            f"n_neighbors has {len(values)} candidates; {type(estimator).__name__} takes one. "
            "Choose with scikit-learn's GridSearchCV."
        )
    return values[0]


def check_single(spec: SolverSpec) -> SolverSpec:
    """Return the spec; ParameterError for candidates, which a lazy method cannot choose from."""
    for name, values in (("C", spec.C), ("gamma", spec.gamma)):
        if values is not None and len(values) > 1:
            raise ParameterError(
                f"{name} has {len(values)} candidates; give one value, and choose with "
                "scikit-learn's GridSearchCV."
            )
    return spec


@share_docs()
class KNNSVC(NeighborhoodClassifier):
    """kNNSVM: an SVM on the nearest training rows of every query, trained at prediction.

    `fit` only regroups the rows, and selects C and the width where neither is given, leaving out
    1 % of the rows (2000 at least, 5000 at most) one at a time. That costs about as much as
    predicting five times as many rows. Neighbors are exact. Neighborhoods of one class need no
    training; queries of a block with the same neighbors share an SVM.

    Parameters
    ----------
    n_neighbors : int, default 100
        k, the rows of a neighborhood; at most the number of rows, which gives the usual SVM.
    {kernel}
        For "poly", neighbors are nearest in the kernel's feature space.
    {selected_C, selected_gamma, degree, coef0, k_tol, feature_scale, class_weight, probability}
    {store, client, random_state, verbose}

    Attributes
    ----------
    {classes_, n_features_in_, feature_names_in_}
    {feature_scale_}
    n_cells_ : int. 0: nothing is trained beforehand.
    selected_ : dict or None. The selection: n_neighbors, C, gamma, percentile (the width follows
        each neighborhood's own distances), and the error of every candidate as nested lists (k,
        width from large to small, C); candidates far from the best were dropped after some of the
        rows. None where C or gamma was given.
    {stage_s_}

    References
    ----------
    Blanzieri, Melgani 2006, 2008; Segata, Blanzieri 2009, equation 6.

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NeighborhoodClassifier._parameter_constraints,
        **SVM_CONSTRAINTS,
        **CLASS_CONSTRAINTS,
    }

    def __init__(
        self,
        n_neighbors: int = 100,
        *,
        kernel: str = "rbf",
        C: float | Sequence[float] | None = None,
        gamma: float | Sequence[float] | None = None,
        degree: int = 3,
        coef0: float = 0.0,
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
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.feature_scale = feature_scale
        self.class_weight = class_weight
        self.probability = probability
        self.store = store
        self.client = client
        self.random_state = random_state
        self.verbose = verbose

    def _solver(self) -> SolverSpec:
        spec = selecting_spec(self)
        if not find_kernel(self.kernel).is_euclidean:
            check_single(replace(spec, C=None))
        return spec

    def _method(self) -> KNNSVM:
        k = single_count(self)
        if not selects(self):
            return KNNSVM((k,))
        return KNNSVM((k,), selection="left_out", percentiles=candidate_percentiles(self))

    def _sizes(self) -> dict[str, Any]:
        # Rows are left out one at a time.
        return {**super()._sizes(), "n_folds": None}

    @property
    def selected_(self) -> dict[str, Any] | None:
        """The selected parameters, with the errors of all candidates; None if they were given."""
        return selection_of(self)


class KernelKNN(NeighborhoodEstimator):
    """An estimator whose k nearest rows vote or are averaged: nothing is trained."""

    # Every specification has both; neighbors need neither.
    C = None
    tol = 1e-3

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NeighborhoodEstimator._parameter_constraints,
        **{name: SVM_CONSTRAINTS[name] for name in ("kernel", "gamma", "degree", "coef0")},
    }

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        kernel: str = "rbf",
        gamma: float | Sequence[float] | None = None,
        degree: int = 3,
        coef0: float = 0.0,
        feature_scale: FeatureScaleParam = None,
        store: str | os.PathLike[str] | None = None,
        client: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.feature_scale = feature_scale
        self.store = store
        self.client = client
        self.random_state = random_state
        self.verbose = verbose

    def _solver(self) -> SolverSpec:
        return check_single(self._spec((1.0,)))

    def _method(self) -> KNN:
        return KNN(n_neighbors=(single_count(self),))


@share_docs()
class KernelKNNClassifier(KernelKNN, NeighborhoodClassifier):
    """FkNN: the majority of the k nearest rows in the kernel's feature space.

    Parameters
    ----------
    n_neighbors : int, default 5
        k, the rows of a neighborhood; at most the number of rows. Ties go to the first class.
    {kernel}
        "rbf" and "linear" order rows as the Euclidean distance does.
    gamma : float or None. Of "poly"; None: scikit-learn's "scale", of the sampled rows.
    {degree, coef0, feature_scale, store, client, random_state, verbose}

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


@share_docs()
class KernelKNNRegressor(KernelKNN, NeighborhoodRegressor):
    """The mean target of the k nearest rows in the kernel's feature space.

    Means are weighted by ``sample_weight``. y may have several columns, (n, t).

    Parameters
    ----------
    n_neighbors : int, default 5
        k, the rows of a neighborhood; at most the number of rows.
    {kernel}
        "rbf" and "linear" order rows as the Euclidean distance does.
    gamma : float or None. Of "poly"; None: scikit-learn's "scale", of the sampled rows.
    {degree, coef0, feature_scale, store, client, random_state, verbose}

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
