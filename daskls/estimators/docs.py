"""Entries of docstrings that estimators share.

A docstring line that holds only names in braces, such as ``{store, client}``, is replaced by their
entries in `SHARED`. In an entry ``<cell>`` becomes the class's word for a cell, ``<default>`` the
default in the class's signature, and the keys of `REGISTERED` the text from the registries. The
first sentence of an entry, and the one that begins with "None: ", are the help of the command line.
"""

import ast
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from inspect import signature
from textwrap import indent
from typing import Any, TypeVar

from daskls.parsed_code import class_at, constant_of, constants_of, defaults_of
from daskls.solvers.registry import losses_of

T = TypeVar("T", bound=type[Any])
NAMES = re.compile(r"^( *)\{(\w+(?:, \w+)*)\}$", re.MULTILINE)
SHARED = {
    # Methods with one model per cell.
    "loss": """
loss : <losses>, default <default>
    Loss of the local models. "hinge": SVMs; each chooses its C and gamma by cross-validation.
    "squared_error": least squares with targets of +-1, one class against the rest; many times
    faster, as a <cell> is one linear system, with a ridge of 1 / (2 C). Kernel, width and C are
    chosen once for all <cell>s, by the squared errors of held-out rows; cv, search and tol have no
    effect and are refused. ``decision_function`` returns a value per class, of two classes that of
    the second; ``fit_report_.validation_error`` is by leave-one-out, on some 64 rows a <cell>.""",
    "cell_kernel": """
kernel : <kernels> or "auto", default <default>
    <formulas>.
    "poly" takes rows as they are, as scikit-learn's SVC does: scale the features first. "linear"
    takes rows relative to the <cell>'s mean, so a function without offset is 0 at the mean. If C is
    None, "linear" also divides features by their spread in the <cell>, to which C then refers (one
    spread for all, or one each if they differ by more than 100 times). Both need
    feature_scale=None, and a single C with loss="squared_error". "auto": the best of <raced> on
    held-out rows; with loss="hinge" the first of them.""",
    "cell_C": """
C : float, sequence of float, or None
    Box bound of a row of weight 1; used unchanged. None: the paper's 10 values, from
    50 / m to 500 with m the rows in a <cell>'s training folds (its lambda from 0.01 to
    0.001 / m, C = 1 / (2 lambda m)). With loss="squared_error": those of ridges from 1e-4 to 10
    (<ridges>).""",
    "cell_gamma": """
gamma : float, sequence of float, or None
    Factor in the kernel; used unchanged. None: for kernels of distances the paper's 10 widths from
    5 r to 0.2 r m^(-1/d), where r is the largest distance of a <cell>'s rows to their mean; for the
    other kernels 1. Then gamma = 1 / width^2 (1 / width for <plain>). Each kernel has its own
    distance. With loss="squared_error": widths from 1/16 to 32 times a <cell>'s median
    distance.""",
    "n_grid": """
n_grid : int, (int, int), or None
    Number of values of C and of gamma in a <cell>'s own grid; one number for both. The grid
    spans the ranges described for C and gamma: 20 values halve the steps of the usual 10. None: 10
    of each. A given C or gamma keeps its values.""",
    "cell_cv": """
cv : int, >= 2, default 5
    Stratified folds in each <cell>; a <cell> of fewer rows has as many folds as rows.""",
    "scoring": """
scoring : None or "tpr_x_tnr", default None
    The score that a <cell>'s choice of C and gamma maximizes over its held-out rows, all folds
    together. None: the accuracy. "tpr_x_tnr": the true positive rate times the true negative rate,
    as `daskls score` prints it, or the product of all recalls of more than two classes; for data
    with a rare class. Rows count by their weights; class weights cancel in a recall, and change
    only the SVMs. ``fit_report_.validation_error`` is then 1 minus the product. A <cell> of one
    class has nothing to choose and predicts that class; if all candidates score 0, the widest
    kernel and the smallest C are taken.""",
    "fit_intercept": """
fit_intercept : bool, default False
    Give every local SVM an offset, as scikit-learn's SVC has.""",
    "cell_tol": """
tol : float, > 0, default 1e-3
    A solver stops when its duality gap is at most tol x C x m. In the search this is the gap of
    decision values clipped to [-1, 1]. For the final models it is the gap without clipping, which
    keeps decision values, apart from the offset, within sqrt(2 tol C m k(x, x)) of the SVM's.
    Solves that float32 cannot bring so far are counted in ``fit_report_.n_at_limit``, with a
    `NonConvergenceWarning`.""",
    "number_loss": """
loss : <number losses>, default <default>
    "squared_error": least squares of centered y (kernel ridge). Kernel, width and C are chosen once
    for all <cell>s, by the squared errors of held-out rows; epsilon, cv and tol have no effect and
    are refused. "epsilon_insensitive": support vector regression, which outliers move little;
    kernel and width are chosen once for all <cell>s by this loss, C by folds in each <cell>.""",
    "level_loss": """
loss : <level losses>, default <default>
    "pinball": absolute errors, weighted by the level where y is above the prediction and by 1 minus
    the level where it is below; a quantile minimizes their mean. "expectile": squared errors with
    these weights; an expectile minimizes their mean (at level 1/2 it is the mean of y); cv and tol
    have no effect and are refused. Coding, scale, kernel and width are chosen as for `VoronoiSVR`,
    once for all levels: for expectiles by squared errors, for quantiles by absolute errors of least
    squares without outliers. C is chosen for each <cell> and level, by the loss itself.""",
    "quantile": """
quantile : float or sequence of float, in (0, 1), default 0.5
    The level to predict: a tenth of y exceeds the quantile of level 0.9. A sequence gives one
    column per level, in its order; columns do not cross.""",
    "level_C": """
C : float, sequence of float, or None
    For loss="pinball" scikit-learn's C of SVMs, in the units of y; for loss="expectile" 1 / (2
    ridge), for rows of weight 1. From several values each <cell> takes, level by level, the one of
    the least held-out loss. None: the values of a default grid.""",
    "level_cv": """
cv : int, >= 2, default 5
    Folds in each <cell> with loss="pinball", if C is to be chosen.""",
    "level_tol": """
tol : float, > 0, default 1e-3
    For loss="pinball": the violation of the optimality conditions, in units of y's robust
    spread, as for `VoronoiSVR`. C is chosen at ten times this tolerance.""",
    "number_C": """
C : float, sequence of float, or None
    For squared errors 1 / (2 ridge), for rows of weight 1; else scikit-learn's C, in the units of
    y. From several values the one of the least held-out error is taken, once for all <cell>s or by
    each <cell>. None: the values of a default grid.""",
    "epsilon": """
epsilon : float, >= 0, or None
    For loss="epsilon_insensitive": the largest error without cost, in the units of y, as for
    scikit-learn's SVR. None: a tenth of y's robust spread (of the standard deviation, if half of
    all y are equal). The robust spread is 1.4826 times the median distance of y to its median, the
    standard deviation of normal y without its outliers. For y of spread 1 this is SVR's 0.1.""",
    "number_cv": """
cv : int, >= 2, default 5
    Folds in each <cell> with loss="epsilon_insensitive", if C is to be chosen.""",
    "number_intercept": """
fit_intercept : bool, default True
    Give every local model an offset, as scikit-learn's SVR has; KernelRidge has none.""",
    "tube_tol": """
tol : float, > 0, default 1e-3
    For loss="epsilon_insensitive", as scikit-learn's: the violation of the optimality conditions,
    in units of y's robust spread.""",
    "search": """
search : "refine" or "full", default "refine"
    How pairs of C and gamma are searched. "refine": every other value of C and of gamma at 10 x
    tol, then the best of these pairs and its neighbors at tol; of three values or fewer all are
    tried. A pair that is clearly worse after some folds (by 2 standard deviations, on the
    same rows) is not trained on the others. "full": every pair on every fold, as in the paper.""",
    "cache_size": """
cache_size : float, > 0, or None
    MiB of kernel values that the training of a <cell> may hold, with loss="hinge" and no offset;
    as in scikit-learn's SVC. If a <cell>'s two matrices of rows^2 float32 values are larger, their
    rows are computed when needed and the last used are kept: the same SVM within tol, in less
    memory and more time. None: all are held.""",
    "sample_loss": """
loss : "hinge" or "squared_hinge", default "hinge"
    Loss of the SVMs, the L1 or the L2 soft margin: C times the slacks, or times their squares. The
    latter has more support rows, and holds the kernel matrix of a sample. C and gamma are selected
    with "hinge".""",
    # One value each: nothing is chosen.
    "kernel": """
kernel : <everywhere>, default "rbf\"""",
    "searched_kernel": """
kernel : <everywhere>, default "rbf"
    <everywhere formulas>. "poly" is of
    the rows as they are given, as in scikit-learn's SVC: scale the features first; neighbors are
    nearest in its feature space, and every search reads all rows.""",
    "gamma": """
gamma : float or None
    Factor of the squared distance (or the inner product). None: scikit-learn's "scale", of the
    sampled rows.""",
    # Selected for the whole model, unless they are given.
    "selected_C": """
C : float, sequence of float, or None
    Box bound of a row of weight 1. From several values, one is selected on held-out rows. None: 1,
    or selected from the papers' 1, 4, 16, 64 if gamma is None or has several values.""",
    "selected_gamma": """
gamma : float, sequence of float (not of KNNSVC's "poly"), or None
    Factor of the squared distance (or the inner product). None: scikit-learn's "scale", of the
    sampled rows; or, if C is None or has several values and the kernel is "rbf", selected from
    1 / q^2 with q the percentiles 1, 10, 50, 90 of the distances between the rows of the
    selection.""",
    "degree": """
degree : int, >= 1, default 3. Power of "poly".""",
    "coef0": """
coef0 : float, >= 0, default 0. Constant of "poly"; 0 makes it homogeneous.""",
    "svc_tol": """
tol : float, > 0, default 1e-3. As scikit-learn's: the violation of the optimality conditions.""",
    "neighbors": """
neighbors : "exact" or "approximate", default "exact"
    How the nearest rows are found. "approximate": PyNNDescent builds a graph for each group of
    leaves (up to 60,000 rows or 32 MiB). A query searches the graphs of ``n_groups`` groups, and
    their candidates are ranked by exact distance. Some neighbors are missed; kernel="poly" is
    refused. With few features, or below some ten thousand queries, building takes longer than it
    saves: pynndescent alone compiles for some 40 s in each process that builds.""",
    "n_groups": """
n_groups : int, >= 1, default 3
    Groups searched per query by neighbors="approximate": more groups take longer and miss less.""",
    "k_tol": """
tol : float, > 0, default 1e-3. A solver stops at a duality gap of tol x C x k.""",
    # Features.
    "feature_coding": """
feature_coding : "auto", "none", "ranks", "indicators" or "both", default <default>
    How numeric features that are thresholds, orders or categories are coded. "none": not at all.
    "ranks": a feature of more than 20 values becomes its rank among the sampled rows, in [0, 1].
    "indicators": a feature of 3 to 20 values becomes one feature per value, 1/2 in rows that have
    it, else 0; none does if there would be too many (256 MiB of rows, or twice the features).
    "both": ranks and indicators. "auto": where kernel, width and C are chosen once for all
    <cell>s, the best of these, chosen with them; else, or if gamma is given, "none". A value that
    no training row had is 0 in all indicators of its feature. Cells are cut in coded features.""",
    "feature_scale": """
feature_scale : None or "none", "spread", "learned" or array (d,), default <default>
    Factor of each feature in every distance: of cells, of neighbors and of kernels. None: features
    are not scaled. "spread": 1 / the feature's range from the 5th to the 95th percentile, so that
    units do not matter (if the range is 0, 1 / 3.29 standard deviations; for a feature of two
    values 1 / their difference, unless all features have two). "learned": the factors with which
    least squares predicts left-out rows best. They are learned on some rows, then compared with no
    scale and with the spread on held-out rows, and taken if their squared errors are lower by 4
    standard errors (2.5 below 6000 rows; 1 below 3000 rows, each of which is left out in turn). If
    spreads differ by a factor of more than 1000, they are compared with the spread alone. X is read
    once more if it has more rows than a sample. An array: these factors, >= 0; 0 leaves a feature
    out. Refused with kernels of inner products.""",
    "coded_features_": """
coded_features_ : list of str. The features that distances are computed from: those of X,
    ``rank(name)``, or ``name=value``.""",
    "feature_scale_": """
feature_scale_ : float array (d,). The factor of each feature in distances; 1 if it is not scaled.
feature_importances_ : float array (n_features_in_,). Factor times spread, summing to 1: all equal
    if features are scaled by their spread, absent if they are not scaled. To measure importances
    on other rows, use ``sklearn.inspection.permutation_importance``.""",
    # Rows that are held out of everything.
    "false_alarm_": """
false_alarm_ : record, only with max_false_alarm. ``threshold``, its ``rank`` among the scores of
    ``n_negatives`` held-out rows, ``n_positives``, ``rate``, and the ``delta`` that this rank
    gives.""",
    "interval_": """
interval_ : record, only with interval. ``half_widths``, one per column, where residuals have
    their usual size; their ``rank`` among ``n_rows`` held-out rows; ``coverage``.""",
    "max_false_alarm": """
max_false_alarm : float in (0, 1), or None
    For two classes: the share of the rows of ``classes_[0]`` that may be predicted as
    ``classes_[1]``. A fifth of the rows of ``classes_[0]`` (at most 20,000; up to half if a fifth
    is too few) and a tenth of those of ``classes_[1]`` (at most 5000), drawn by their values, are
    held out of all stages. The threshold is one of the final model's scores of the former, and
    is subtracted from decision values; the latter serve the ROC curve. With too few rows of
    ``classes_[0]`` the error names the number needed, 598 for 0.01 with a delta of 0.05.
    Probabilities do not change. None: the threshold is 0, and no row is held out.""",
    "interval": """
interval : float in (0, 1), or None
    The probability that y of a row lies in the interval of `predict_interval`: over draws of that
    row and of the held-out rows together, not for each x. A fifth of the rows (at most 20,000; up
    to half if a fifth is too few), drawn by their values, is held out of all stages. The half width
    is an order statistic of the final model's absolute errors on these rows, relative to the size
    of the errors on training rows of the <cell>. With too few rows the error gives the number
    needed, 18 for 0.9. None: no row is held out, and there are no intervals.""",
    "delta": """
delta : float in (0, 1), default 0.05
    The probability that the share exceeds max_false_alarm, over draws of the held-out rows. By the
    order statistic of Tong, Feng, Li: Neyman-Pearson classification algorithms and NP receiver
    operating characteristics, Science Advances 2018.""",
    # All classifiers.
    "class_weight": """
class_weight : dict, "balanced" or None. Multiplies sample_weight by class; "balanced" uses the
    counts of the whole data.""",
    "probability": """
probability : "auto", bool, "sigmoid" or "isotonic", default <default>
    Whether the model has `predict_proba`. True or "sigmoid": by Platt's sigmoid, one per class, but
    shared by classes of few rows; "isotonic": by increasing steps, one per class, but shared by all
    classes of fewer than 1000 rows. They are fitted to decision values of held-out rows. VoronoiSVC
    with loss="squared_error" takes leave-one-out values: of all rows up to 2000, above that of 64
    per cell and at least 2000. Otherwise the method is fitted once more, to at most 60,000 rows of
    a few parts of space (if its model covers all of space, to 10,000 random rows); five times if
    there are fewer than 10,000. "auto": as True where that needs no second fit, else none. With
    more than two classes, the maps take decision values, or their margins over the best other
    class, whichever gives the rows the larger likelihood. Class weights do not change them.""",
    # All methods.
    "store": """
store : path or None
    Where the regrouped rows and the model are written; all workers must see it. A fit that was
    stopped goes on when called again with the same store. None: a temporary folder under Dask's
    temporary-directory, removed with the last estimator or lazy array that uses it.""",
    "client": """
client : distributed Client or None. None: the current Dask scheduler.""",
    "random_state": """
random_state : int, RandomState or None. Same seed, same model, bit for bit.""",
    "verbose": """
verbose : int. Above 0, a fit shows its progress: bars in a terminal, a picture that fills in a
    notebook.""",
    # Attributes of all methods.
    "classes_": """
classes_ : array (n_classes,)""",
    "n_features_in_": """
n_features_in_ : int. Number of features; of columns, if X was a DataFrame with y apart""",
    "feature_names_in_": """
feature_names_in_ : array (n_features_in_,) of str, only if columns have names""",
    "stage_s_": """
stage_s_ : dict. Seconds of each stage that `fit` ran.""",
}


KERNEL_TRAITS = {
    name: constants_of(place) for name, place in constant_of("kernels.kernel", "KERNELS").items()
}


def _with(trait: str) -> list[str]:
    return [name for name, traits in KERNEL_TRAITS.items() if traits[trait]]


def _least_ridges() -> str:
    least = {name: KERNEL_TRAITS[name]["least_ridge"] for name in _with("least_ridge")}
    return ", ".join(f"{json.dumps(name)}: from {ridge:g}" for name, ridge in least.items())


def _named(names: Iterable[str]) -> str:
    return ", ".join(json.dumps(name) for name in names)


def _formulas(names: Iterable[str]) -> str:
    return ", ".join(f"``{KERNEL_TRAITS[name]['formula']}``" for name in names)


# Places in entries that the registries fill.
REGISTERED = {
    "<kernels>": _named(KERNEL_TRAITS),
    "<everywhere>": _named(_with("is_everywhere")),
    "<raced>": _named(_with("is_raced")),
    "<formulas>": _formulas(KERNEL_TRAITS),
    "<plain>": _named(name for name in KERNEL_TRAITS if KERNEL_TRAITS[name]["width_power"] == 1.0),
    "<ridges>": _least_ridges(),
    "<everywhere formulas>": _formulas(_with("is_everywhere")),
    "<losses>": _named(losses_of("classes")),
    "<number losses>": _named(losses_of("numbers")),
    "<level losses>": _named(losses_of("numbers", of_levels=True)),
}


def expand(text: str, cell: str, defaults: Mapping[str, Any]) -> str:
    """Return a docstring with the entries that it names, of a class with these parameters."""

    def entry(name: str, margin: str) -> str:
        text = SHARED[name].strip().replace("<cell>", cell)
        for place, words in REGISTERED.items():
            text = text.replace(place, words)
        if "<default>" in text:
            default = defaults[text.partition(" :")[0]]
            text = text.replace("<default>", json.dumps(default).replace("null", "None"))
        return indent(text, margin)

    def entries(names: re.Match[str]) -> str:
        return "\n".join(entry(name, names[1]) for name in names[2].split(", "))

    return NAMES.sub(entries, text)


@cache
def written_docs(place: str) -> str:
    """Return the docstring of the class at ``module:class``, which is not imported."""
    definition = class_at(place)
    decorators = (node for node in definition.decorator_list if isinstance(node, ast.Call))
    cells = (ast.literal_eval(argument) for node in decorators for argument in node.args)
    return expand(ast.get_docstring(definition) or "", next(cells, "cell"), defaults_of(place))


def complete(cell: str = "cell") -> Callable[[T], T]:
    """Fill in what a signature implies: the constraints, and entries of the docstring."""

    def decorate(estimator: T) -> T:
        # Imported here as it brings scikit-learn, which help does without.
        from daskls.estimators.param import constraints_of

        if "_parameter_constraints" not in vars(estimator):
            estimator._parameter_constraints = constraints_of(estimator)
        # `python -OO` drops docstrings.
        if estimator.__doc__ is not None:
            defaults = {name: p.default for name, p in signature(estimator).parameters.items()}
            estimator.__doc__ = expand(estimator.__doc__, cell, defaults)
        return estimator

    return decorate
