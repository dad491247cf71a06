"""Space cut into cells of bounded size, with local models of quantiles or expectiles."""

import os
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions

from daskls.errors import DataError
from daskls.estimators.base import LocalRegressor
from daskls.estimators.cells import VoronoiEstimator
from daskls.estimators.docs import share_docs
from daskls.estimators.inputs import levels_of
from daskls.estimators.options import Candidates, FeatureCodingParam, FeatureScaleParam
from daskls.records import AnyArray, Float64, SolverSpec
from daskls.solvers.registry import find_measure, losses_of


@share_docs()
class VoronoiQuantileRegressor(VoronoiEstimator, LocalRegressor):
    """Local quantile regression on a spatial partition: a model for each cell.

    Space is cut into cells of at most ``cell_size`` training rows, in a scale of the features that
    is learned first. Each cell has a kernel model of the quantile at each level: the level is the
    share of y that does not exceed it, so four fifths of y lie between the levels 0.1 and 0.9.
    Or of an expectile, which is to the mean what a quantile is to the median.

    Parameters
    ----------
    cell_size : int, >= 2, or None
        Maximum number of distinct rows of a cell. None: 2000.
    {quantile, level_loss, cell_kernel, level_C, cell_gamma, degree, coef0, level_cv}
    {number_intercept, level_tol}
    n_partitions : int, >= 1, or None
        The number of different partitions of space, whose answers are averaged, then sorted. X is
        still read twice; training time, the model and the regrouped rows on disk grow n-fold.
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
        in units of the best constant's, averaged over levels.

    Notes
    -----
    y has one column. `predict` returns (n,) for one level, (n, q) for a sequence of q levels.
    Levels are fitted separately and may cross where rows are few. The answers at several levels
    are therefore sorted, row by row, after those of the partitions are averaged. Sorting never
    raises the pinball loss summed over levels (it may raise that of a single level).

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
    >>> found = model.predict(X)
    >>> found.shape
    (800, 2)
    >>> bool(0.75 < ((found[:, 0] <= y) & (y <= found[:, 1])).mean() < 0.85)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **VoronoiEstimator._parameter_constraints,
        "quantile": [Interval(Real, 0, 1, closed="neither"), "array-like"],
        "loss": [StrOptions(set(losses_of("numbers", of_levels=True)))],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        cell_size: int | None = None,
        *,
        quantile: float | Sequence[float] = 0.5,
        loss: str = "pinball",
        kernel: str = "auto",
        C: Candidates = None,
        gamma: Candidates = None,
        degree: int = 3,
        coef0: float = 0.0,
        cv: int = 5,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        n_partitions: int | None = None,
        feature_coding: FeatureCodingParam = "auto",
        feature_scale: FeatureScaleParam = "learned",
        store: str | os.PathLike[str] | None = None,
        client: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.cell_size = cell_size
        self.quantile = quantile
        self.loss = loss
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.n_partitions = n_partitions
        self.feature_coding = feature_coding
        self.feature_scale = feature_scale
        self.store = store
        self.client = client
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

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
        measure, own = find_measure(spec), y.reshape(-1).astype(np.float64)
        columns = numbers.reshape(len(own), -1).T
        scores = [
            measure.d2(own, values, level, weight)
            for values, level in zip(columns, spec.levels, strict=True)
        ]
        return float(np.mean(scores))

    def _solver(self) -> SolverSpec:
        return replace(
            super()._solver(),
            quantile=levels_of(self.quantile),
            cv=int(self.cv),
            tol=float(self.tol),
        )
