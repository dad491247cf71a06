"""LandmarkSVC: L3-SVMs, a linear SVM for each cluster, on shared landmarks, solved jointly."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, cast

from sklearn.utils.validation import check_is_fitted

from daskls.errors import GridEdgeWarning, NonConvergenceWarning, ParameterError, warn_user
from daskls.estimators import param
from daskls.estimators.classifier import LocalClassifier
from daskls.estimators.docs import complete
from daskls.kernels.kernel import find_kernel
from daskls.methods.landmarks.method import L3
from daskls.methods.landmarks.parts import read_linear_model
from daskls.records import Float64, SolverSpec

if TYPE_CHECKING:
    from daskls.estimators.advice import Advice


@complete()
class LandmarkSVC(LocalClassifier):
    """L3-SVMs: a linear SVM for each cluster, on shared landmarks, with one common bias.

    The rows are clustered by k-means. A row is represented by its projections on ``n_landmarks``
    landmarks, and predicted by its cluster's linear function of these. The weights of all clusters
    and the common bias solve a single hinge-loss problem, exactly and out of core: for a fixed
    bias each cluster is solved separately; a search over the bias, which takes a few rounds, joins
    them. Predicting a row costs one product with the landmarks; the model is as large as one linear
    model per cluster.

    Parameters
    ----------
    n_cells : int, >= 1, or None
        K, the number of k-means clusters; fewer if fewer rows are distinct or a cluster is empty.
        None: (n / 400)^1.5 for n rows, at least 2 and at most 100: 2 for 500 rows, 20 for 3000, the
        paper's 100 from 8618 rows on. Few rows in many clusters lose to one linear SVM.
    n_landmarks : int, >= 1, or None
        L, the number of landmarks; fewer if there are fewer rows or, for "pca", dimensions. None:
        the number of features (the paper's advice), at least 100 for a kernel that is not linear.
    landmarks : "random" or "pca", default "random"
        Rows drawn by seed, or the first principal components of the rows: worth their time where
        landmarks are few (on 12,000 rows of MNIST below 20, in the paper below 100).
    projection : "linear" or "rbf", default "linear"
        ``(x - m) . (l - m)`` with the mean m of the sampled rows, or ``exp(-gamma |x - l|^2)``.
        With landmarks="pca" a principal component replaces ``l - m`` in "linear"; in "rbf" l is the
        point one standard deviation along it. Neither depends on the origin or on a common unit of
        all features; both depend on the ratio of their units.
    C : float, sequence of float, or None
        Cost of a row of weight 1 (the paper's c is C times the number of rows). Cross-validation
        of the whole problem chooses one of several values; among equal errors the smallest C whose
        predictions are not all equal, values inside the grid before its edges. None:
        0.03, 0.3 ... 300,000, each divided by the mean squared norm of the sampled rows'
        projections.
    gamma : float > 0, or None. Factor of the squared distance in projection="rbf"; None:
        scikit-learn's "scale", 1 / (d x variance).
    kernel : "linear", "rbf" or "poly", default "linear"
        The kernel of two rows' projections in the SVM of each cluster (the paper's section A.2). It
        is replaced by Nystroem's features on L sampled rows (landmarks="random": on the landmarks),
        which are exact if these are all rows. The model is larger than the linear one by 2 L^2
        numbers.
    kernel_gamma : float > 0, or None. Factor in the kernel; None: 1 / (L x variance) of the
        projections of the sampled rows.
    {degree, coef0}
    cv : int, >= 2, default 5. Folds of the choice of C, drawn by row number.
    tol : float, > 0, default 1e-3
        The joint problem is solved to a duality gap of tol x the sum of C x weight.
    {class_weight, probability, store, client, random_state, verbose}

    Attributes
    ----------
    {classes_, n_features_in_, feature_names_in_}
    n_cells_ : int. Clusters.
    cluster_centers_ : float64 array (n_cells_, d)
    center_ : float64 array (d,). The mean m of the sampled rows.
    landmarks_ : float64 array (n_landmarks, d). Points; unit vectors for "pca" with "linear".
    coef_ : float64 array (n_problems, n_cells_, n_landmarks). Weights of projections, or of the
        kernel's features. One problem for two classes, else one for each class against the rest.
    intercept_ : float64 array (n_problems,). The common bias.
    selected_ : dict or None. The chosen C, the candidates and their cross-validation errors.
    stage_s_ : dict. Seconds of each stage that `fit` ran: sample, regroup, select, train.
    fit_report_ : record array (n_cells_,). One row per cluster; ``n_support`` counts the support
        rows of all problems. ``n_trained`` and ``n_at_limit`` count joint problems, including
        those of the choice of C.

    References
    ----------
    Zantedeschi, Emonet, Sebban: L3-SVMs: Landmarks-based linear local support vector machines,
    2017, sections 2 and A.2. Differences: rows and landmarks are centered before their products
    (not in the paper), so that every cluster's function equals the common bias at the mean, not at
    the origin; the candidates of C scale with the projections (the paper tries 0.001 to 100
    whatever the unit); C is a row's cost, not c / m; the bias is free, as in the paper's equations
    (its experiments, with liblinear, penalize it); clusters are found on the sampled rows, which
    are all rows up to some 65,000. Williams, Seeger: Using the Nystroem method to speed up kernel
    machines, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from daskls import LandmarkSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((600, 2)) - 0.5
    >>> y = np.where((X[:, 0] > 0) == (X[:, 1] > 0), "same", "differs")
    >>> model = LandmarkSVC(n_cells=20, random_state=0).fit(X, y)
    >>> print(*model.predict([[0.4, 0.3], [-0.4, 0.2]]))
    same differs
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _method_class = L3

    def __init__(
        self,
        n_cells: param.MaybeCount = None,
        *,
        n_landmarks: param.MaybeCount = None,
        landmarks: Literal["random", "pca"] = "random",
        projection: Literal["linear", "rbf"] = "linear",
        C: param.Candidates = None,
        gamma: param.MaybePositive = None,
        kernel: param.SearchedKernel = "linear",
        kernel_gamma: param.MaybePositive = None,
        degree: param.Count = 3,
        coef0: param.NotNegative = 0.0,
        cv: param.Folds = 5,
        tol: param.Positive = 1e-3,
        class_weight: param.ClassWeight = None,
        probability: param.ProbabilityMaps = "auto",
        store: param.Store = None,
        client: Any = None,
        random_state: param.RandomState = None,
        verbose: param.Verbose = 0,
    ) -> None:
        param.keep(locals())

    def _fit_fields(self, params: param.Params) -> dict[str, Any]:
        # Imported here so that a process that only predicts never loads the trainers.
        from daskls.methods.landmarks.plan import MOST_CLUSTERS, count_clusters

        gamma = params["gamma"]
        method = param.read(L3, params)
        if gamma is not None and not find_kernel(method.projection).has_gamma:
            raise ParameterError(
                f'gamma={gamma:g} has no effect with projection="linear"; leave it out, or set '
                'projection="rbf".'
            )
        kernel = find_kernel(params["kernel"])
        unused = [] if kernel.has_gamma else ["kernel_gamma"]
        unused += [] if kernel.is_power else ["degree", "coef0"]
        param.check_unused(self, unused, f"kernel={params['kernel']!r}")
        spec = param.read(SolverSpec, params, fit_intercept=True, clipped_gap=False)
        return {
            "method": method,
            "spec": spec,
            "cell_size": 2,
            "count_cells": lambda n_rows: method.n_cells or count_clusters(n_rows),
            "sample_remedy": f"lower n_cells below {method.n_cells or MOST_CLUSTERS}",
            "n_folds": spec.cv if spec.n_costs > 1 else None,
        }

    def _advice(self, shrinkage: Any = None) -> Iterable["Advice"]:
        shared, selected = self.fit_report_[0], self.selected_
        if shared.edge and selected:
            grid = selected["candidates"]
            side = "smaller" if selected["C"] == grid[0] else "larger"
            yield (
                GridEdgeWarning,
                (
                    f"C={shared.C:g} was chosen at the edge of its candidates, {grid[0]:g} to "
                    f"{grid[-1]:g}: give {side} ones as C, and look at selected_."
                ),
            )

    def _warn_about_limits(self) -> None:
        shared = self.fit_report_[0]
        if shared.n_at_limit:
            warn_user(
                f"{shared.n_at_limit} of {shared.n_trained} joint problems ended before their "
                f"duality gap reached tol={self.tol:g}. Scale the features, lower C, or raise tol.",
                NonConvergenceWarning,
            )

    @property
    def cluster_centers_(self) -> Float64:
        """The centers of the clusters, in the units of X."""
        check_is_fitted(self)
        cells = read_linear_model(self._reader).cells
        centers: Float64 = cells.points + cells.center
        return centers

    @property
    def center_(self) -> Float64:
        """The mean of the sampled rows, around which rows are projected."""
        check_is_fitted(self)
        return read_linear_model(self._reader).cells.center

    @property
    def landmarks_(self) -> Float64:
        """The landmarks: points, or unit vectors for "pca" with "linear"."""
        check_is_fitted(self)
        linear = read_linear_model(self._reader)
        method = cast(L3, self._fitted_method())
        are_rows = method.landmarks == "random" or find_kernel(method.projection).has_width
        return linear.landmarks + linear.cells.center if are_rows else linear.landmarks

    @property
    def coef_(self) -> Float64:
        """The weights of the landmarks, by problem and cluster."""
        check_is_fitted(self)
        return read_linear_model(self._reader).theta

    @property
    def intercept_(self) -> Float64:
        """The bias of each problem."""
        check_is_fitted(self)
        return read_linear_model(self._reader).intercepts

    @property
    def selected_(self) -> dict[str, Any] | None:
        """The chosen C, its candidates and their errors; None where one C was given."""
        check_is_fitted(self)
        selected = self._reader.root.attributes.get("selected")
        return selected and {name: selected[name] for name in ("C", "candidates", "errors")}
