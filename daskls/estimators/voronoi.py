"""Space cut into cells of bounded size, one local model per cell: of classes, and of numbers."""

import os
from typing import Any, ClassVar, Literal

from daskls.estimators.cells import (
    CellClassifier,
    CellRegressor,
    GridShape,
    VoronoiEstimator,
)
from daskls.estimators.docs import share_docs
from daskls.estimators.options import (
    Candidates,
    FeatureCodingParam,
    FeatureScaleParam,
    ProbabilityParam,
)


@share_docs()
class VoronoiSVC(VoronoiEstimator, CellClassifier):
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
        Maximum number of distinct rows of a cell. Training costs about rows x cell_size, least
        squares about rows x cell_size^2; larger cells are often more accurate. None: 2000; for
        least squares 4000 up to 40,000 rows of data (60,000 where ``n_partitions`` is given or 1).
    {loss, cell_kernel, cell_C, cell_gamma, n_grid, degree, coef0, cell_cv, scoring}
    {fit_intercept, cell_tol, search}
    n_partitions : int, >= 1, or None
        The number of different partitions of space. Their decision functions, clipped to [-1, 1],
        are averaged: rows that one partition separates share a cell in another. With more than two
        classes, the functions of each pair of classes are averaged before the pairs vote. X is
        still read twice; training time, the model and the regrouped rows on disk grow n-fold. The
        first partition is that of ``n_partitions=1``. With one feature all partitions have the
        same cells and differ only in their folds. None: 1; least squares have 2 to 4 up to
        240,000 rows, from 4001 rows on, of classes from two million rows x features x classes on.
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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **VoronoiEstimator._parameter_constraints,
        **CellClassifier._parameter_constraints,
    }

    def __init__(
        self,
        cell_size: int | None = None,
        *,
        loss: str = "squared_error",
        kernel: str = "auto",
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
        n_partitions: int | None = None,
        feature_coding: FeatureCodingParam = "auto",
        feature_scale: FeatureScaleParam = "learned",
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
        self.cell_size = cell_size
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
        self.n_partitions = n_partitions
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


@share_docs()
class VoronoiSVR(VoronoiEstimator, CellRegressor):
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
        4000 up to 40,000 rows of data (60,000 where ``n_partitions`` is given or 1), 2000 beyond.
    {number_loss, cell_kernel, number_C, cell_gamma, epsilon, degree, coef0, number_cv}
    {number_intercept, tube_tol}
    n_partitions : int, >= 1, or None
        The number of different partitions of space, whose answers are averaged: rows that one
        partition separates share a cell in another. X is still read twice; training time, the
        model and the regrouped rows on disk grow n-fold. None: 1; least squares have 2 to 4 from
        4001 to 240,000 rows.
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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **VoronoiEstimator._parameter_constraints,
        **CellRegressor._parameter_constraints,
    }

    def __init__(
        self,
        cell_size: int | None = None,
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
        n_partitions: int | None = None,
        feature_coding: FeatureCodingParam = "auto",
        feature_scale: FeatureScaleParam = "learned",
        interval: float | None = None,
        store: str | os.PathLike[str] | None = None,
        client: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.cell_size = cell_size
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
        self.n_partitions = n_partitions
        self.feature_coding = feature_coding
        self.feature_scale = feature_scale
        self.interval = interval
        self.store = store
        self.client = client
        self.random_state = random_state
        self.verbose = verbose
