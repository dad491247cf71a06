"""Space cut into cells of bounded size, a local model each: of classes, numbers, quantiles."""

from typing import Any, Literal

import numpy as np

from daskls.errors import DataError
from daskls.estimators import param
from daskls.estimators.cells import CellEstimator
from daskls.estimators.classifier import LocalClassifier
from daskls.estimators.docs import complete
from daskls.estimators.regressor import LocalRegressor, predict_interval, predict_to_zarr
from daskls.records import AnyArray, Float64, Scoring
from daskls.solvers.registry import find_measure


@complete()
class VoronoiSVC(CellEstimator, LocalClassifier):
    """Local classification on a spatial partition: a model for each cell.

    Space is cut into cells of at most ``cell_size`` training rows, in a scale of the features that
    is learned first. Each cell has a least-squares SVM of its own; kernel, width and C are chosen
    once for all cells. A row is predicted by the model of the cell that it lies in, or by the mean
    over several partitions of space. Time grows linearly with the number of rows; memory does not
    grow.

    ``loss="hinge", feature_scale=None, kernel="rbf"`` is the method of the paper: in each cell an
    SVM is selected from a grid of C and gamma by cross-validation.

    Parameters
    ----------
    cell_size : int, >= 2, or None
        Maximum number of distinct rows of a cell. Training costs about rows x cell_size, for least
        squares rows x cell_size^2; larger cells are often more accurate. None: 2000; for
        least squares 4000 up to 20,000 rows of data, with one partition up to 60,000.
    {loss, cell_kernel, cell_C, cell_gamma, n_grid, degree, coef0, cell_cv, scoring}
    {fit_intercept, cell_tol, search}
    n_partitions : int, >= 1, or None
        The number of different partitions of space. Their decision functions, clipped to [-1, 1],
        are averaged: rows that one partition separates share a cell in another. With more than two
        classes, the functions of each pair of classes are averaged before the pairs vote. X is
        still read twice; training time, the model and the regrouped rows on disk grow n-fold. The
        first partition is that of ``n_partitions=1``. With one feature all partitions have the
        same cells and differ only in their folds. None: 1; for least squares 2 to 4 with
        4001 to 240,000 rows, if rows x features x classes is two million or more.
    {feature_coding, feature_scale, cache_size, class_weight, probability, max_false_alarm, delta}
    {store, client, random_state, verbose}

    Attributes
    ----------
    {classes_, n_features_in_, feature_names_in_}
    {coded_features_, feature_scale_}
    {false_alarm_}
    n_cells_ : int. Cells of all partitions.
    stage_s_ : dict. Seconds of each stage that `fit` ran: sample, regroup, train.
    fit_report_ : record array (n_cells_,). One row per cell: rows, classes, C, gamma, validation
        error, steps, support rows, seconds, the grid edges that its choice lies on, its partition.

    References
    ----------
    Thomann, Blaschzyk, Meister, Steinwart: Spatial decompositions for large scale SVMs,
    AISTATS 2017. Differences: cells are cut across the axis of largest variance into whole equal
    shares of the rows, which fills them better than farthest-first centers do; fold models are
    averaged with equal weights.

    Examples
    --------
    >>> import numpy as np
    >>> from daskls import VoronoiSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((600, 2))
    >>> y = np.where((X[:, 0] > 0.5) == (X[:, 1] > 0.5), "same", "differs")
    >>> model = VoronoiSVC(cell_size=300, random_state=0).fit(X, y)
    >>> model.n_cells_
    2
    >>> print(*model.predict([[0.9, 0.8], [0.1, 0.7]]))
    same differs
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    def __init__(
        self,
        cell_size: param.CellSize = None,
        *,
        loss: param.ClassLoss = "squared_error",
        kernel: param.CellKernel = "auto",
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
        n_partitions: param.MaybeCount = None,
        feature_coding: param.FeatureCoding = "auto",
        feature_scale: param.FeatureScale = "learned",
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


@complete()
class VoronoiSVR(CellEstimator, LocalRegressor):
    """Local regression on a spatial partition: a model for each cell.

    Space is cut into cells of at most ``cell_size`` training rows, in a scale of the features that
    is learned first. Each cell has a least-squares regression of its own (kernel ridge), whose
    kernel, width and C are chosen once for all cells; or a support vector regression. A row is
    predicted by the model of the cell that it lies in, or by the mean over several partitions of
    space. Time grows linearly with the number of rows; memory does not grow.

    Parameters
    ----------
    cell_size : int, >= 2, or None
        Maximum number of distinct rows of a cell. Training costs about rows x cell_size^2. None:
        2000; 4000 up to 20,000 rows of data, with one partition up to 60,000.
    {number_loss, cell_kernel, number_C, cell_gamma, epsilon, degree, coef0, number_cv}
    {number_intercept, tube_tol}
    n_partitions : int, >= 1, or None
        The number of different partitions of space, whose predictions are averaged: rows that
        one partition separates share a cell in another. X is still read twice; training time, the
        model and the regrouped rows on disk grow n-fold. None: 1; for least squares 2 to 4 with
        4001 to 240,000 rows, if rows x features is two million or more.
    {feature_coding, feature_scale, interval, store, client, random_state, verbose}

    Attributes
    ----------
    {n_features_in_, feature_names_in_}
    {coded_features_, feature_scale_}
    {interval_}
    n_cells_ : int. Cells of all partitions.
    stage_s_ : dict. Seconds of each stage that `fit` ran: sample, regroup, train.
    fit_report_ : record array (n_cells_,). One row per cell: rows, C, gamma, seconds, its
        partition, and as validation error the mean squared error of left-out rows, in units of the
        variance of y.

    Notes
    -----
    y may have several columns, (n, t): they share kernel, width, C and every factorization. The
    center and the scale of y are those of the sampled rows. C is for y in units of its standard
    deviation; for squared errors that is the same as for y itself.

    References
    ----------
    Thomann, Blaschzyk, Meister, Steinwart: Spatial decompositions for large scale SVMs,
    AISTATS 2017. Saunders, Gammerman, Vovk: Ridge regression learning algorithm in dual variables,
    ICML 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from daskls import VoronoiSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((800, 2))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1]
    >>> model = VoronoiSVR(cell_size=400, random_state=0).fit(X, y)
    >>> model.n_cells_
    2
    >>> model.predict([[0.5, 0.5]]).round(2)
    array([0.64])
    >>> bool(model.score(X, y) > 0.99)
    True

    Prediction intervals, from rows that are held out of the fit:

    >>> noisy = y + rng.normal(0, 0.1, 800)
    >>> model = VoronoiSVR(cell_size=400, interval=0.9, random_state=0).fit(X[:600], noisy[:600])
    >>> lower, upper = model.predict_interval(X[600:]).T
    >>> bool(0.85 < ((lower <= noisy[600:]) & (noisy[600:] <= upper)).mean() < 0.96)
    True
    """

    predict_interval = predict_interval
    predict_to_zarr = predict_to_zarr

    def __init__(
        self,
        cell_size: param.CellSize = None,
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
        n_partitions: param.MaybeCount = None,
        feature_coding: param.FeatureCoding = "auto",
        feature_scale: param.FeatureScale = "learned",
        interval: param.MaybeProbability = None,
        store: param.Store = None,
        client: Any = None,
        random_state: param.RandomState = None,
        verbose: param.Verbose = 0,
    ) -> None:
        param.keep(locals())


@complete()
class VoronoiQuantileRegressor(CellEstimator, LocalRegressor):
    """Local quantile regression on a spatial partition: a model for each cell.

    Space is cut into cells of at most ``cell_size`` training rows, in a scale of the features that
    is learned first. Each cell has a kernel model for each level: the level of a quantile is the
    share of y that does not exceed it, so four fifths of y lie between the levels 0.1 and 0.9.
    ``loss="expectile"`` predicts expectiles instead: to the mean what quantiles are to the median.

    Parameters
    ----------
    cell_size : int, >= 2, or None
        Maximum number of distinct rows of a cell. None: 2000.
    {quantile, level_loss, cell_kernel, level_C, cell_gamma, degree, coef0, level_cv}
    {number_intercept, level_tol}
    n_partitions : int, >= 1, or None
        The number of different partitions of space, whose predictions are averaged, then sorted. X
        is still read twice; training time, the model and the regrouped rows on disk grow n-fold.
        None: 1.
    {feature_coding, feature_scale, store, client, random_state, verbose}

    Attributes
    ----------
    {n_features_in_, feature_names_in_}
    {coded_features_, feature_scale_}
    n_cells_ : int. Cells of all partitions.
    stage_s_ : dict. Seconds of each stage that `fit` ran: sample, regroup, train.
    fit_report_ : record array (n_cells_,). One row per cell: rows, C (the geometric mean over
        levels), gamma, seconds, its partition, and as validation error the loss on held-out rows
        relative to that of the best constant, averaged over levels.

    Notes
    -----
    y has one column. `predict` returns (n,) for one level, (n, q) for a sequence of q levels.
    Levels are fitted separately and may cross where rows are few. The predictions at several
    levels are therefore averaged over the partitions, then sorted row by row. Sorting never raises
    the pinball loss summed over levels (it may raise that of a single level).

    One kernel matrix a cell serves all levels; each model is the same as if its level were fitted
    alone. Half as many levels take half the training time of cells.

    References
    ----------
    Takeuchi, Le, Sears, Smola: Nonparametric quantile estimation, JMLR 2006. Newey, Powell:
    Asymmetric least squares estimation and testing, Econometrica 1987. Chernozhukov, Fernandez-Val,
    Galichon: Quantile and probability curves without crossing, Econometrica 2010. Thomann,
    Blaschzyk, Meister, Steinwart: Spatial decompositions for large scale SVMs, AISTATS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from daskls import VoronoiQuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((800, 1))
    >>> y = np.sin(6 * X[:, 0]) + rng.exponential(0.2, 800)
    >>> model = VoronoiQuantileRegressor(400, quantile=(0.1, 0.9), random_state=0).fit(X, y)
    >>> levels = model.predict(X)
    >>> levels.shape
    (800, 2)
    >>> bool(0.75 < ((levels[:, 0] <= y) & (y <= levels[:, 1])).mean() < 0.85)
    True
    """

    def __init__(
        self,
        cell_size: param.CellSize = None,
        *,
        quantile: param.Levels = 0.5,
        loss: param.LevelLoss = "pinball",
        kernel: param.CellKernel = "auto",
        C: param.Candidates = None,
        gamma: param.Candidates = None,
        degree: param.Count = 3,
        coef0: param.NotNegative = 0.0,
        cv: param.Folds = 5,
        fit_intercept: bool = True,
        tol: param.Positive = 1e-3,
        n_partitions: param.MaybeCount = None,
        feature_coding: param.FeatureCoding = "auto",
        feature_scale: param.FeatureScale = "learned",
        store: param.Store = None,
        client: Any = None,
        random_state: param.RandomState = None,
        verbose: param.Verbose = 0,
    ) -> None:
        param.keep(locals())

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean of D2 over the levels: 1 is perfect, 0 is the best constant.

        Parameters
        ----------
        X : array (n, d), as for `predict`, or the path of a data set, or a table
        y : array (n,), of any of these kinds; None if X is the path of a data set. For a table,
            the name of its column of numbers; None: the column of the training table.
        sample_weight : array (n,), or None; for a table also the name of its column of weights

        Returns
        -------
        score : float. For loss="pinball" scikit-learn's ``d2_pinball_score`` with the level as
            alpha; for loss="expectile" 1 minus the asymmetric squared error, in units of that of
            y's expectile.

        Raises
        ------
        DataError : as `predict`; no y, no rows, several columns, or text
        """
        return super().score(X, y, sample_weight)

    def _scored(self, y: AnyArray, numbers: Float64, weight: Float64 | None) -> float:
        if y.ndim > 1 and y.shape[1] > 1:
            raise DataError(
                f"y has {y.shape[1]} columns, but the model predicts levels of a single column. "
                "Pass the column that it was trained on."
            )
        spec = self._reader.resolved.spec
        measure, targets = find_measure(spec), y.reshape(-1).astype(np.float64)
        columns = numbers.reshape(len(targets), -1).T
        scores = [
            measure.d2(targets, values, level, weight)
            for values, level in zip(columns, spec.levels, strict=True)
        ]
        return float(np.mean(scores))
