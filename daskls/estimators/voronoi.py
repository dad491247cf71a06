"""VoronoiSVC: space cut into cells of bounded size, one cross-validated SVM a cell."""

import os
from numbers import Integral
from typing import Any, ClassVar, Literal

from sklearn.utils._param_validation import Interval

from daskls.estimators.cells import Candidates, CellClassifier
from daskls.methods.cells.method import Voronoi

__all__ = ["VoronoiSVC"]


class VoronoiSVC(CellClassifier):
    """Local SVMs on a spatial partition: every cell its own cross-validated SVM.

    Space is cut into cells of at most ``cell_size`` training rows. In each, an SVM is
    selected from a grid of C and gamma by cross-validation. A row is answered by the cell it lies
    in. Time grows linearly with the number of rows, memory does not grow.

    Parameters
    ----------
    cell_size : int, >= 2, default 2000
        Rows of a cell at the most. Training costs about rows x cell_size; larger cells are often
        more accurate.
    loss : str, default "hinge"
        The loss of the local solvers; so far "hinge" alone.
    kernel : "rbf", "linear" or "poly", default "rbf"
        ``exp(-gamma |x - z|^2)``, ``x . z``, ``(gamma x . z + coef0)^degree``; for the last two, x
        and z are taken relative to the mean of the cell's rows.
    C : float, sequence of float, or None
        Box bound of a row of weight 1; used unchanged. None: the paper's 10 values, from
        50 / m to 500 with m the rows in a cell's training folds (its lambda from 0.01 to
        0.001 / m, C = 1 / (2 lambda m)).
    gamma : float, sequence of float, or None
        Factor of the squared distance (or the inner product); used unchanged. None: for "rbf" the
        paper's 10 widths from 5 r to 0.2 r m^(-1/d), gamma = 1 / width^2, r the largest distance
        of a cell's rows to their mean; for the other kernels 1.
    degree : int, >= 1, default 3. Of "poly".
    coef0 : float, >= 0, default 0. Of "poly"; 0 makes it homogeneous.
    cv : int, >= 2, default 5
        Stratified folds in each cell; a cell of fewer rows is dealt as many as it has rows.
    fit_intercept : bool, default False
        Give every local SVM an offset, as scikit-learn's SVC has.
    tol : float, > 0, default 1e-3
        A solver stops when its duality gap is at most tol x C x m: in the search the gap of
        decision values clipped to [-1, 1], of the models that are kept the plain one, which keeps
        decision values within sqrt(2 tol C m k(x, x)) of the SVM's, less the offset. What float32
        cannot reach is counted in ``fit_report_.n_at_limit``, with a `NonConvergenceWarning`.
    search : "refine" or "full", default "refine"
        "refine": every other value of C and of gamma is trained, at 10 x tol, then the best pair of
        them and its neighbors at tol; an axis of three values or fewer is tried whole. A pair that
        is beaten beyond doubt (2 standard deviations, on the same rows) after some folds is not
        trained on the others. "full": every pair on every fold, as in the paper. ("race", which
        version 0.1 offered, is taken for "refine", with a warning.)
    refit : "folds" or "cell", default "folds"
        Answer with the mean of the selected fold models, or with one model trained on the whole
        cell at the selected lambda (a given C is used unchanged).
    n_partitions : int, >= 1, default 1
        Space is cut this many times, each time elsewhere, and the partitions' decision functions,
        clipped to [-1, 1], are averaged: what one partition cuts apart lies together in another.
        For more than two classes those of each pair of classes are averaged before they vote. X
        is still read twice; disk space of the regrouped rows, seconds and the model grow n-fold.
        The first partition is that of ``n_partitions=1``; with one feature all have equal cells,
        and differ in their folds only.
    class_weight : dict, "balanced" or None. Multiplies sample_weight by class; "balanced" uses the
        counts of the whole data.
    store : path or None
        Where the exchange and the model go; all workers must see it. A fit that was stopped goes
        on when called again with the same store. None: a temporary folder under Dask's
        temporary-directory, removed with the last estimator or lazy array that uses it.
    client : distributed Client or None. None: the current Dask scheduler, whatever it is.
    random_state : int, RandomState or None. Same seed, same model, bit for bit.
    verbose : int. Above 0, progress is printed.

    Attributes
    ----------
    classes_ : array (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array (n_features_in_,) of str, only of named columns
    n_cells_ : int. Cells of all partitions.
    stage_s_ : dict. Seconds of each stage that `fit` ran: sample, regroup, train.
    fit_report_ : record array (n_cells_,). Rows, classes, C, gamma, validation error, steps,
        support rows, seconds of each cell, which grid edges its choice lies on, its partition.

    References
    ----------
    Thomann, Blaschzyk, Meister, Steinwart: Spatial decompositions for large scale SVMs,
    AISTATS 2017. Differences: cells are cut at full shares across the axis of largest variance,
    which leaves them fuller than farthest-first centers do; the fold models are averaged with
    equal weights.

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

    _size_param = "cell_size"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CellClassifier._parameter_constraints,
        "cell_size": [Interval(Integral, 2, None, closed="left")],
        "n_partitions": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        cell_size: int = 2000,
        *,
        loss: str = "hinge",
        kernel: Literal["rbf", "linear", "poly"] = "rbf",
        C: Candidates = None,
        gamma: Candidates = None,
        degree: int = 3,
        coef0: float = 0.0,
        cv: int = 5,
        fit_intercept: bool = False,
        tol: float = 1e-3,
        search: Literal["refine", "full"] = "refine",
        refit: Literal["folds", "cell"] = "folds",
        n_partitions: int = 1,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
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
        self.degree = degree
        self.coef0 = coef0
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.search = search
        self.refit = refit
        self.n_partitions = n_partitions
        self.class_weight = class_weight
        self.store = store
        self.client = client
        self.random_state = random_state
        self.verbose = verbose

    def _method(self) -> Voronoi:
        return Voronoi()

    def _sizes(self) -> dict[str, Any]:
        return {**super()._sizes(), "n_partitions": int(self.n_partitions)}
