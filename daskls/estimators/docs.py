"""What estimators share in their docstrings, written once.

A line of a class's docstring that holds nothing but names in braces, such as ``{store, client}``,
stands for their entries below.
"""

import re
from collections.abc import Callable
from textwrap import indent
from typing import Any, TypeVar

__all__ = ["share_docs"]

T = TypeVar("T", bound=type[Any])
NAMES = re.compile(r"^( *)\{(\w+(?:, \w+)*)\}$", re.MULTILINE)
SHARED = {
    # One SVM a cell, cross-validated.
    "loss": """
loss : str, default "hinge"
    The loss of the local solvers; so far "hinge" alone.""",
    "cell_kernel": """
kernel : "rbf", "linear" or "poly", default "rbf"
    ``exp(-gamma |x - z|^2)``, ``x . z``, ``(gamma x . z + coef0)^degree``; for the last two, x
    and z are taken relative to the mean of the <cell>'s rows.""",
    "cell_C": """
C : float, sequence of float, or None
    Box bound of a row of weight 1; used unchanged. None: the paper's 10 values, from
    50 / m to 500 with m the rows in a <cell>'s training folds (its lambda from 0.01 to
    0.001 / m, C = 1 / (2 lambda m)).""",
    "cell_gamma": """
gamma : float, sequence of float, or None
    Factor of the squared distance (or the inner product); used unchanged. None: for "rbf" the
    paper's 10 widths from 5 r to 0.2 r m^(-1/d), gamma = 1 / width^2, r the largest distance
    of a <cell>'s rows to their mean; for the other kernels 1.""",
    "cell_cv": """
cv : int, >= 2, default 5
    Stratified folds in each <cell>; a <cell> of fewer rows is dealt as many as it has rows.""",
    "fit_intercept": """
fit_intercept : bool, default False
    Give every local SVM an offset, as scikit-learn's SVC has.""",
    "cell_tol": """
tol : float, > 0, default 1e-3
    A solver stops when its duality gap is at most tol x C x m: in the search the gap of
    decision values clipped to [-1, 1], of the models that are kept the plain one, which keeps
    decision values within sqrt(2 tol C m k(x, x)) of the SVM's, less the offset. What float32
    cannot reach is counted in ``fit_report_.n_at_limit``, with a `NonConvergenceWarning`.""",
    "search": """
search : "refine" or "full", default "refine"
    "refine": every other value of C and of gamma is trained, at 10 x tol, then the best pair of
    them and its neighbors at tol; an axis of three values or fewer is tried whole. A pair that
    is beaten beyond doubt (2 standard deviations, on the same rows) after some folds is not
    trained on the others. "full": every pair on every fold, as in the paper. ("race", which
    version 0.1 offered, is taken for "refine", with a warning.)""",
    "refit": """
refit : "folds" or "cell", default "folds"
    Answer with the mean of the selected fold models, or with one model trained on the whole
    <cell> at the selected lambda (a given C is used unchanged).""",
    # One value each: nothing is chosen.
    "kernel": """
kernel : "rbf", "linear" or "poly", default "rbf\"""",
    "C": """
C : float or None. Box bound of a row of weight 1; None: 1.""",
    "gamma": """
gamma : float or None. None: scikit-learn's "scale", of the sampled rows.""",
    "degree": """
degree : int, >= 1, default 3. Of "poly".""",
    "coef0": """
coef0 : float, >= 0, default 0. Of "poly"; 0 makes it homogeneous.""",
    "svc_tol": """
tol : float, > 0, default 1e-3. As scikit-learn's: the violation of the optimality conditions.""",
    "k_tol": """
tol : float, > 0, default 1e-3. A solver stops at a duality gap of tol x C x k.""",
    # All methods.
    "class_weight": """
class_weight : dict, "balanced" or None. Multiplies sample_weight by class; "balanced" uses the
    counts of the whole data.""",
    "store": """
store : path or None
    Where the exchange and the model go; all workers must see it. A fit that was stopped goes
    on when called again with the same store. None: a temporary folder under Dask's
    temporary-directory, removed with the last estimator or lazy array that uses it.""",
    "client": """
client : distributed Client or None. None: the current Dask scheduler, whatever it is.""",
    "random_state": """
random_state : int, RandomState or None. Same seed, same model, bit for bit.""",
    "verbose": """
verbose : int. Above 0, progress is printed.""",
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


def share_docs(cell: str = "cell") -> Callable[[T], T]:
    """Return a decorator that writes shared entries into a class's docstring.

    Parameters
    ----------
    cell : str. What the class calls the rows of one local model.
    """

    def entry(name: str, margin: str) -> str:
        return indent(SHARED[name].strip().replace("<cell>", cell), margin)

    def expand(names: re.Match[str]) -> str:
        return "\n".join(entry(name, names[1]) for name in names[2].split(", "))

    def decorate(own: T) -> T:
        # Python drops docstrings where it is asked to.
        if own.__doc__ is not None:
            own.__doc__ = NAMES.sub(expand, own.__doc__)
        return own

    return decorate
