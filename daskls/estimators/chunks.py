"""Random chunks of rows, one local model each, averaged: the baseline of spatial cells."""

from typing import Any, Literal

from daskls.estimators import param
from daskls.estimators.cells import CellEstimator
from daskls.estimators.classifier import LocalClassifier
from daskls.estimators.docs import complete
from daskls.estimators.regressor import LocalRegressor, predict_interval, predict_to_zarr
from daskls.methods.cells.method import RandomChunks
from daskls.records import Scoring


@complete("chunk")
class RandomChunkSVC(CellEstimator, LocalClassifier):
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

    _method_class = RandomChunks
    _size_param = "chunk_size"

    def __init__(
        self,
        chunk_size: param.CellSize = None,
        *,
        loss: param.ClassLoss = "hinge",
        kernel: param.CellKernel = "rbf",
        C: param.Candidates = None,
        gamma: param.Candidates = None,
        n_grid: param.GridShape = None,
        degree: param.Count = 3,
        coef0: param.NotNegative = 0.0,
        cv: param.Folds = 5,
        scoring: Scoring | None = None,
        fit_intercept: bool = False,
        tol: param.Positive = 1e-3,
        search: Literal["refine", "full"] = "refine",
        feature_coding: param.FeatureCoding = "none",
        feature_scale: param.FeatureScale = None,
        cache_size: param.MaybePositive = None,
        class_weight: param.ClassWeight = None,
        probability: param.ProbabilityMaps = "auto",
        max_false_alarm: param.MaybeProbability = None,
        delta: param.Probability = 0.05,
        store: param.Store = None,
        client: Any = None,
        random_state: param.RandomState = None,
        verbose: param.Verbose = 0,
    ) -> None:
        param.keep(locals())


@complete("chunk")
class RandomChunkSVR(CellEstimator, LocalRegressor):
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

    _method_class = RandomChunks
    _size_param = "chunk_size"

    predict_interval = predict_interval
    predict_to_zarr = predict_to_zarr

    def __init__(
        self,
        chunk_size: param.CellSize = None,
        *,
        loss: param.NumberLoss = "squared_error",
        kernel: param.CellKernel = "auto",
        C: param.Candidates = None,
        gamma: param.Candidates = None,
        epsilon: param.Epsilon = None,
        degree: param.Count = 3,
        coef0: param.NotNegative = 0.0,
        cv: param.Folds = 5,
        fit_intercept: bool = True,
        tol: param.Positive = 1e-3,
        feature_coding: param.FeatureCoding = "auto",
        feature_scale: param.FeatureScale = "learned",
        interval: param.MaybeProbability = None,
        store: param.Store = None,
        client: Any = None,
        random_state: param.RandomState = None,
        verbose: param.Verbose = 0,
    ) -> None:
        param.keep(locals())
