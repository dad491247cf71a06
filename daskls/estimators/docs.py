"""Parts of docstrings that estimators share, written once.

A line of a class's docstring that holds nothing but names in braces, such as ``{store, client}``,
stands for their entries below. ``<default>`` is that of the class's own signature.
"""

import json
import re
from collections.abc import Callable, Iterable
from inspect import signature
from textwrap import indent
from typing import Any, TypeVar

from daskls.kernels.kernel import KERNELS, find_kernel, kernels_with
from daskls.solvers.registry import losses_of

T = TypeVar("T", bound=type[Any])
NAMES = re.compile(r"^( *)\{(\w+(?:, \w+)*)\}$", re.MULTILINE)
SHARED = {
    # One SVM a cell, cross-validated.
    "loss": """
loss : <losses>, default <default>
    Loss of the local models. "hinge": SVMs, each with C and gamma of its own by cross-validation.
    "squared_error": least squares of targets of +-1, one class against the rest, one linear system
    a <cell> with a ridge of 1 / (2 C): many times faster. Kernel, width and C are chosen once for
    all, by squared errors of rows that models did not see; cv, search, refit and tol have no effect
    and are refused. ``decision_function`` is then the value of each class, or of the second of
    two; ``fit_report_.validation_error`` is by leave-one-out, of some 64 rows of each <cell>.""",
    "cell_kernel": """
kernel : <kernels> or "auto", default <default>
    <formulas>;
    x and z are taken relative to the mean of the <cell>'s rows. Those of inner products need
    feature_scale=None, and one C with loss="squared_error". "auto": on rows that were held out the
    best of <raced>; of loss="hinge" the first.""",
    "cell_C": """
C : float, sequence of float, or None
    Box bound of a row of weight 1; used unchanged. None: the paper's 10 values, from
    50 / m to 500 with m the rows in a <cell>'s training folds (its lambda from 0.01 to
    0.001 / m, C = 1 / (2 lambda m)). With loss="squared_error": of ridges from 1e-4 to 10
    (<ridges>).""",
    "cell_gamma": """
gamma : float, sequence of float, or None
    Factor in the kernel; used unchanged. None: for kernels of distances the paper's 10 widths from
    5 r to 0.2 r m^(-1/d), gamma = 1 / width^2, r the largest distance of a <cell>'s rows to their
    mean (gamma = 1 / width for <plain>; distances are the kernel's own); for the other kernels 1.
    With loss="squared_error": of widths from 1/16 to 32 times a <cell>'s median distance.""",
    "n_grid": """
n_grid : int, (int, int), or None
    Values of a <cell>'s own grid: of C, and of gamma; one number for both. They lie between the
    same ends, which are scaled to each <cell> as C and gamma say: 20 takes steps half as wide as
    the usual 10. None: 10 of each. A C or a gamma that is given has its own values.""",
    "cell_cv": """
cv : int, >= 2, default 5
    Stratified folds in each <cell>; a <cell> of fewer rows has as many folds as rows.""",
    "scoring": """
scoring : None or "tpr_x_tnr", default None
    What a <cell>'s choice of C and gamma maximizes over its held-out rows, all folds together.
    None: the accuracy. "tpr_x_tnr": of two classes the true positive rate times the true negative
    rate, as `daskls score` prints it, of more the product of all recalls; for classes of which
    one is rare. Rows count by their weights; class weights cancel in a recall, and change the SVMs
    alone. ``fit_report_.validation_error`` is then 1 less the product. A <cell> of one class has
    nothing to choose, and predicts it; what all candidates score 0 at goes to the widest kernel
    and the smallest C.""",
    "fit_intercept": """
fit_intercept : bool, default False
    Give every local SVM an offset, as scikit-learn's SVC has.""",
    "cell_tol": """
tol : float, > 0, default 1e-3
    A solver stops when its duality gap is at most tol x C x m: in the search the gap of
    decision values clipped to [-1, 1], of the models that are kept the plain one, which keeps
    decision values within sqrt(2 tol C m k(x, x)) of the SVM's, less the offset. What float32
    cannot reach is counted in ``fit_report_.n_at_limit``, with a `NonConvergenceWarning`.""",
    "number_loss": """
loss : <number losses>, default <default>
    "squared_error": least squares of y around its center (kernel ridge). Kernel, width and C are
    chosen once for all, by squared errors of rows that models did not see; epsilon, cv and tol have
    no effect and are refused. "epsilon_insensitive": support vector regression, which outliers
    move little; kernel and width are chosen as for squared errors, C by folds in each <cell>.""",
    "level_loss": """
loss : <level losses>, default <default>
    "pinball": absolute errors, those above counted by the level and those below by 1 less the
    level, whose least mean is at a quantile. "expectile": squared errors counted so, whose least
    mean is at an expectile, of level 1/2 the mean; cv and tol have no effect and are refused.
    Coding, scale, kernel and width are chosen as of `VoronoiSVR`, by squared errors, once for all
    levels; C by each <cell> and level, on the loss itself.""",
    "quantile": """
quantile : float or sequence of float, in (0, 1), default 0.5
    The level that is answered: 0.9 is exceeded by a tenth of y. Of a sequence every level, in its
    order, a column each, and no column crosses another.""",
    "level_C": """
C : float, sequence of float, or None
    Of loss="pinball" scikit-learn's C of SVMs, in the units of y; of loss="expectile" 1 / (2
    ridge), for rows of weight 1. Of several values each <cell> takes, level by level, the one of
    the least held-out loss. None: of a grid.""",
    "level_cv": """
cv : int, >= 2, default 5
    Folds in each <cell> of loss="pinball", where C is to be chosen.""",
    "level_tol": """
tol : float, > 0, default 1e-3
    Of loss="pinball": the violation of the optimality conditions, in units of y's deviation. C is
    chosen at ten times as much.""",
    "number_C": """
C : float, sequence of float, or None
    Of squared errors 1 / (2 ridge), for rows of weight 1; else scikit-learn's C, in the units of y.
    Of several values the one of the least held-out error is taken, for all <cell>s or by each.
    None: of a grid.""",
    "epsilon": """
epsilon : float, >= 0, or None
    Of loss="epsilon_insensitive": what an answer may be off at no cost, in the units of y. None: a
    tenth of y's deviation.""",
    "number_cv": """
cv : int, >= 2, default 5
    Folds in each <cell> of loss="epsilon_insensitive", where C is to be chosen.""",
    "number_intercept": """
fit_intercept : bool, default True
    Give every local model an offset, as scikit-learn's SVR has; KernelRidge has none.""",
    "tube_tol": """
tol : float, > 0, default 1e-3
    Of loss="epsilon_insensitive", scikit-learn's: the violation of the optimality conditions, in
    units of y's deviation.""",
    "search": """
search : "refine" or "full", default "refine"
    How combinations are tried. "refine": every other value of C and of gamma is trained, at 10 x
    tol, then the best pair of them and its neighbors at tol; an axis of three values or fewer
    is tried whole. A pair that is beaten beyond doubt (2 standard deviations, on the same
    rows) after some folds is not trained on the others. "full": every pair on every fold, as
    in the paper. ("race", which version 0.1 offered, is taken for "refine", with a warning.)""",
    "refit": """
refit : "folds" or "cell", default "folds"
    Answer with the mean of the selected fold models, or with one model trained on the whole
    <cell> at the selected lambda (a given C is used unchanged).""",
    "cache_size": """
cache_size : float, > 0, or None
    MiB of kernel values that the training of a <cell> may hold, of loss="hinge" without offset, as
    of scikit-learn's SVC. A <cell> whose two matrices of rows^2 float32 values are larger computes
    rows of them when they are needed, and keeps the last used: the same SVM within tol, in less
    memory and more time. None: all are held.""",
    # One value each: nothing is chosen.
    "kernel": """
kernel : <everywhere>, default "rbf\"""",
    "searched_kernel": """
kernel : <everywhere>, default "rbf"
    <everywhere formulas>. For "poly" rows are
    near each other in the kernel's feature space, and every search reads all rows.""",
    "gamma": """
gamma : float or None
    Factor of the squared distance (or the inner product). None: scikit-learn's "scale", of the
    sampled rows.""",
    # Selected for the whole model, unless they are given.
    "selected_C": """
C : float, sequence of float, or None
    Box bound of a row of weight 1. Of several values, one is selected on rows that are held out.
    None: where gamma is None or has several values, of the papers' 1, 4, 16, 64; else 1.""",
    "selected_gamma": """
gamma : float, sequence of float (not of KNNSVC's "poly"), or None
    Factor of the squared distance (or the inner product). None: where C is None or has several
    values, and the kernel is "rbf", of 1 / q^2 with q the percentiles 1, 10, 50, 90 of the
    distances of the rows that it is selected on; else scikit-learn's "scale", of the sampled
    rows.""",
    "degree": """
degree : int, >= 1, default 3. Power of "poly".""",
    "coef0": """
coef0 : float, >= 0, default 0. Constant of "poly"; 0 makes it homogeneous.""",
    "svc_tol": """
tol : float, > 0, default 1e-3. As scikit-learn's: the violation of the optimality conditions.""",
    "k_tol": """
tol : float, > 0, default 1e-3. A solver stops at a duality gap of tol x C x k.""",
    # Kernels of distances.
    "feature_coding": """
feature_coding : "auto", "none", "ranks", "indicators" or "both", default <default>
    What numbers become that are thresholds, orders or categories. "none": themselves. "ranks": a
    feature of more than 20 values becomes its rank among the sampled rows, in [0, 1]. "indicators":
    a feature of 3 to 20 values becomes one feature a value, 1/2 where a row has it; no feature does
    where they would be too many (256 MiB of rows, or twice the features). "both". "auto": where
    kernel, width and C are chosen once for all, the best of these, together with them; else, or
    where gamma is given, "none". A value that no training row had is 0 in all indicators of its
    feature. Cells are cut in coded features.""",
    "feature_scale": """
feature_scale : None or "none", "spread", "learned" or array (d,), default <default>
    Factor of each feature, in every distance: of cells, of neighbors and of kernels. None: rows
    as they are. "spread": one over the feature's range from the 5th to the 95th percentile (else
    3.29 standard deviations), so that units do not matter. "learned": least squares learns on
    some rows how much decisions move along each feature; rows as they are, their spread and the
    learned scale are then compared on rows that were held out, and the learned one is taken where
    its squared errors are lower by 4 standard errors (of fewer than 3000 rows, each left out, by
    one). Of rows whose spreads differ by more than 1000, the spread stands for rows as they are.
    Of more rows than a sample holds, X is read once more for it. An array: these factors, >= 0; 0
    leaves a feature out. Refused with kernels of inner products.""",
    # All methods.
    "coded_features_": """
coded_features_ : list of str. The features that distances are of: those of X, ``rank(name)``, or
    ``name=value``.""",
    "false_alarm_": """
false_alarm_ : record, only with max_false_alarm. ``threshold``, its ``rank`` among the scores of
    ``n_negatives`` rows that were held out, ``n_positives``, ``rate``, and the ``delta`` that the
    rank comes to.""",
    "interval_": """
interval_ : record, only with interval. ``half_widths``, one a column, where residuals are of the
    usual size, their ``rank`` among ``n_rows`` rows that were held out, and ``coverage``.""",
    "feature_scale_": """
feature_scale_ : float array (n_features_in_,). The factor of each feature; 1 of rows as they are.
feature_importances_ : float array (n_features_in_,). Factor times spread, summing to 1; absent
    where rows stay as they are.""",
    "class_weight": """
class_weight : dict, "balanced" or None. Multiplies sample_weight by class; "balanced" uses the
    counts of the whole data.""",
    "probability": """
probability : "auto", bool, "sigmoid" or "isotonic", default <default>
    Whether `predict_proba` is there. "auto": where the fit knows the values of rows without them,
    which is that of VoronoiSVC with loss="squared_error". Platt's sigmoids are fitted to those of
    all rows, of more than 5000 to those of 64 a cell, 1000 at least, without a second fit. Else,
    and of False, it is not. True or "sigmoid": Platt's sigmoid, one a class; "isotonic": steps that
    rise, one map for all classes of fewer than 1000 rows. These are fitted to some 10,000 rows that
    were held out: the method is fitted once more to at most 60,000 rows of a few parts of space,
    five times where there are fewer than 10,000 (or to 10,000 random rows, by methods whose models
    are of all of space). Of more classes than two maps are of decision values, or of how far each
    is above the best other, whichever makes the rows likelier. Weights of classes do not change how
    probable a class is.""",
    "max_false_alarm": """
max_false_alarm : float in (0, 1), or None
    Of two classes: the share of the rows of ``classes_[0]`` that may be predicted as
    ``classes_[1]``. Held out of everything, drawn by their numbers, are a fifth of the rows of
    ``classes_[0]`` (20,000 at the most; up to half where a fifth is few) and a tenth of those of
    ``classes_[1]`` (5000 at the most). Of the final model's scores of the former one is the
    threshold, which is subtracted from decision values; the latter are for the ROC curve. Too few
    rows of ``classes_[0]`` are an error with the number needed, 598 for 0.01 with a delta of 0.05.
    Probabilities stay what they are. None: a threshold of 0, and no row is held out.""",
    "interval": """
interval : float in (0, 1), or None
    The probability with which y of a row lies in what `predict_interval` answers: over draws of
    that row and of the rows that are held out, together; not for each x. Held out of everything,
    drawn by their numbers, are a fifth of the rows (20,000 at the most; up to half where a fifth
    is few): what the final model misses of them, over the size of what training rows of the
    <cell> were missed by, has the half width at one rank. Too few rows are an error with the
    number needed, 18 for 0.9. None: no row is held out, and there are no intervals.""",
    "delta": """
delta : float in (0, 1), default 0.05
    The probability that more than max_false_alarm are, over the draws of the rows that are held
    out. By the order statistic of Tong, Feng, Li: Neyman-Pearson classification algorithms and NP
    receiver operating characteristics, Science Advances 2018.""",
    "store": """
store : path or None
    Where the exchange and the model go; all workers must see it. A fit that was stopped goes
    on when called again with the same store. None: a temporary folder under Dask's
    temporary-directory, removed with the last estimator or lazy array that uses it.""",
    "client": """
client : distributed Client or None. None: the current Dask scheduler.""",
    "random_state": """
random_state : int, RandomState or None. Same seed, same model, bit for bit.""",
    "verbose": """
verbose : int. Above 0, a fit is shown while it runs: by bars in a terminal, by a picture that fills
    in a notebook.""",
    # Attributes.
    "classes_": """
classes_ : array (n_classes,)""",
    "n_features_in_": """
n_features_in_ : int""",
    "feature_names_in_": """
feature_names_in_ : array (n_features_in_,) of str, only of named columns""",
    "stage_s_": """
stage_s_ : dict. Seconds of each stage that `fit` ran.""",
}


def _least_ridges() -> str:
    """Return from which ridge on kernels are tried that do not take them all."""
    least = {name: find_kernel(name).least_ridge for name in kernels_with("least_ridge")}
    return ", ".join(f"{json.dumps(name)}: from {ridge:g}" for name, ridge in least.items())


def _named(names: Iterable[str]) -> str:
    """Return names in quotes, joined by commas."""
    return ", ".join(json.dumps(name) for name in names)


def _formulas(names: Iterable[str]) -> str:
    """Return kernels' formulas as code, joined by commas."""
    return ", ".join(f"``{find_kernel(name).formula}``" for name in names)


# What registries say.
REGISTERED = {
    "<kernels>": _named(KERNELS),
    "<everywhere>": _named(kernels_with("is_everywhere")),
    "<raced>": _named(kernels_with("is_raced")),
    "<formulas>": _formulas(KERNELS),
    "<plain>": _named(name for name in KERNELS if find_kernel(name).width_power == 1.0),
    "<ridges>": _least_ridges(),
    "<everywhere formulas>": _formulas(kernels_with("is_everywhere")),
    "<losses>": _named(losses_of("classes")),
    "<number losses>": _named(losses_of("numbers")),
    "<level losses>": _named(losses_of("numbers", of_levels=True)),
}


def share_docs(cell: str = "cell") -> Callable[[T], T]:
    """Return a decorator that writes shared entries into a class's docstring.

    Parameters
    ----------
    cell : str. What the class calls the rows of one local model.
    """

    def entry(own: T, name: str, margin: str) -> str:
        text = SHARED[name].strip().replace("<cell>", cell)
        for place, words in REGISTERED.items():
            text = text.replace(place, words)
        if "<default>" in text:
            default = signature(own).parameters[text.partition(" :")[0]].default
            text = text.replace("<default>", json.dumps(default).replace("null", "None"))
        return indent(text, margin)

    def decorate(own: T) -> T:
        def expand(names: re.Match[str]) -> str:
            return "\n".join(entry(own, name, names[1]) for name in names[2].split(", "))

        # Python drops docstrings where it is asked to.
        if own.__doc__ is not None:
            own.__doc__ = NAMES.sub(expand, own.__doc__)
        return own

    return decorate
