"""Random chunks of rows, one local model each, averaged: the baseline of spatial cells."""

import os
from numbers import Integral
from typing import Any, ClassVar, Literal

from sklearn.utils._param_validation import Interval

from daskls.estimators.cells import CellClassifier, CellRegressor, GridShape
from daskls.estimators.docs import share_docs
from daskls.estimators.options import (
    Candidates,
    FeatureCodingParam,
    FeatureScaleParam,
    ProbabilityParam,
)
from daskls.methods.cells.method import Chunked


@share_docs("chunk")
class RandomChunkSVC(CellClassifier):
    """SVMs on random chunks of the rows, averaged: the baseline of spatial decomposition.

    Rows are assigned at random to chunks of at most ``chunk_size`` rows. Each chunk has an SVM,
    whose C and gamma are selected from a grid by cross-validation. A row is predicted by the mean
    of all chunks' decision functions, clipped to [-1, 1], so a prediction costs a kernel
    value for every support row of the model. Accuracy grows with the size of the chunks, hardly
    with their number: `VoronoiSVC` is usually both more accurate and faster.

    Parameters
    ----------
    chunk_size : int, >= 2, or None
        Maximum number of rows of a chunk; sizes differ by at most one row. Training costs about
        rows x chunk_size. None: as for the ``cell_size`` of `VoronoiSVC`.
    {loss, cell_kernel, cell_C, cell_gamma, n_grid, degree, coef0, cell_cv, scoring}
    {fit_intercept, cell_tol, search, feature_coding, feature_scale, cache_size}
    {class_weight, probability, max_false_alarm, delta, store, client, random_state, verbose}

    Attributes
    ----------
    {classes_, n_features_in_, feature_names_in_}
    {coded_features_, feature_scale_}
    {false_alarm_}
    n_cells_ : int. Chunks.
    stage_s_ : dict. Seconds of each stage that `fit` ran: sample, regroup, train.
    fit_report_ : record array (n_cells_,). One row a chunk, as in `VoronoiSVC`.

    References
    ----------
    Thomann, Blaschzyk, Meister, Steinwart: Spatial decompositions for large scale SVMs,
    AISTATS 2017, section 5, the baseline "random chunks".

    Examples
    --------
    >>> import numpy as np
    >>> from daskls import RandomChunkSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((600, 2))
    >>> y = np.where((X[:, 0] > 0.5) == (X[:, 1] > 0.5), "same", "differs")
    >>> model = RandomChunkSVC(chunk_size=200, random_state=0).fit(X, y)
    >>> model.n_cells_
    3
    >>> print(*model.predict([[0.9, 0.8], [0.1, 0.7]]))
    same differs
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _size_param = "chunk_size"
    _is_random = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CellClassifier._parameter_constraints,
        "chunk_size": [Interval(Integral, 2, None, closed="left"), None],
    }

    def __init__(
        self,
        chunk_size: int | None = None,
        *,
        loss: str = "hinge",
        kernel: str = "rbf",
        C: Candidates = None,
        gamma: Candidates = None,
        n_grid: GridShape = None,
        degree: int = 3,
        coef0: float = 0.0,
        cv: int = 5,
        scoring: Literal["tpr_x_tnr"] | None = None,
        fit_intercept: bool = False,
        tol: float = 1e-3,
        search: Literal["refine", "full"] = "refine",
        feature_coding: FeatureCodingParam = "none",
        feature_scale: FeatureScaleParam = None,
        cache_size: float | None = None,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        probability: ProbabilityParam = "auto",
        max_false_alarm: float | None = None,
        delta: float = 0.05,
        store: str | os.PathLike[str] | None = None,
        client: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.chunk_size = chunk_size
        self.loss = loss
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.n_grid = n_grid
        self.degree = degree
        self.coef0 = coef0
        self.cv = cv
        self.scoring = scoring
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.search = search
        self.feature_coding = feature_coding
        self.feature_scale = feature_scale
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.probability = probability
        self.max_false_alarm = max_false_alarm
        self.delta = delta
        self.store = store
        self.client = client
        self.random_state = random_state
        self.verbose = verbose

    def _method(self) -> Chunked:
        return Chunked()


@share_docs("chunk")
class RandomChunkSVR(CellRegressor):
    """Regression on random chunks of the rows, averaged: the baseline of spatial decomposition.

    Rows are assigned at random to chunks of at most ``chunk_size`` rows. Each chunk has a
    least-squares regression of its own. A row is predicted by the mean of all chunks' functions,
    so that a prediction costs a kernel value for every row of the model. `VoronoiSVR` is usually
    both more accurate and faster.

    Parameters
    ----------
    chunk_size : int, >= 2, or None
        Maximum number of rows of a chunk; sizes differ by at most one row. None: as for the
        ``cell_size`` of `VoronoiSVR`.
    {number_loss, cell_kernel, number_C, cell_gamma, epsilon, degree, coef0, number_cv}
    {number_intercept, tube_tol}
    {feature_coding, feature_scale, interval, store, client, random_state, verbose}

    Attributes
    ----------
    {n_features_in_, feature_names_in_}
    {coded_features_, feature_scale_}
    {interval_}
    n_cells_ : int. Chunks.
    stage_s_ : dict. Seconds of each stage that `fit` ran: sample, regroup, train.
    fit_report_ : record array (n_cells_,). One row a chunk, as in `VoronoiSVR`.

    References
    ----------
    Zhang, Duchi, Wainwright: Divide and conquer kernel ridge regression, COLT 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from daskls import RandomChunkSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((600, 2))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1]
    >>> model = RandomChunkSVR(chunk_size=200, random_state=0).fit(X, y)
    >>> model.n_cells_
    3
    >>> bool(model.score(X, y) > 0.99)
    True
    """

    _size_param = "chunk_size"
    _is_random = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CellRegressor._parameter_constraints,
        "chunk_size": [Interval(Integral, 2, None, closed="left"), None],
    }

    def __init__(
        self,
        chunk_size: int | None = None,
        *,
        loss: str = "squared_error",
        kernel: str = "auto",
        C: Candidates = None,
        gamma: Candidates = None,
        epsilon: float | None = None,
        degree: int = 3,
        coef0: float = 0.0,
        cv: int = 5,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        feature_coding: FeatureCodingParam = "auto",
        feature_scale: FeatureScaleParam = "learned",
        interval: float | None = None,
        store: str | os.PathLike[str] | None = None,
        client: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.chunk_size = chunk_size
        self.loss = loss
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.epsilon = epsilon
        self.degree = degree
        self.coef0 = coef0
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.feature_coding = feature_coding
        self.feature_scale = feature_scale
        self.interval = interval
        self.store = store
        self.client = client
        self.random_state = random_state
        self.verbose = verbose

    def _method(self) -> Chunked:
        return Chunked()
