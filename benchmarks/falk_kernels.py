"""Table 2 of the 2009 paper: SVC, kNNSVM and FaLK-SVM with three kernels on small sets.

Accuracy of 10-fold cross-validation. In each fold C, the width and k are chosen by 3 inner folds:
those of SVC and FaLK-SVM by scikit-learn's grid search, and kNNSVM has the latter's.
The grids are smaller than the paper's, and the polynomial kernel is of degree 2. Sets of the
paper's sizes: it drew rows where a set has more, and here others are drawn.
"""

import itertools
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range, wilcoxon
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from benchmarks.suite import Experiment, Journal, Record, Run, cpu_of, table
from benchmarks.suite.data import to_unit
from benchmarks.suite.real import load_real
from daskls import KNNSVC, FalkSVC

KERNELS = ("linear", "rbf", "poly")
METHODS = ("SVC", "KNNSVC", "FalkSVC")
COLUMNS = [(method, kernel) for method in METHODS for kernel in KERNELS]
# The paper's accuracies, in the order of the columns.
PAPER = {
    "heart": (84.81, 82.22, 84.81, 84.81, 81.11, 84.81, 83.70, 81.85, 83.70),
    "mushrooms": (97.99, 98.33, 98.32, 98.67, 98.33, 98.6, 99.00, 99.00, 99.00),
    "haberman": (73.20, 73.20, 72.89, 75.82, 75.16, 74.18, 73.25, 73.20, 73.87),
    "liver": (68.71, 74.24, 71.90, 73.64, 73.96, 73.94, 70.73, 71.92, 71.92),
    "ionosphere": (88.04, 93.72, 88.88, 93.75, 94.59, 93.75, 86.91, 94.01, 89.18),
    "vote": (94.95, 96.32, 94.95, 96.32, 96.33, 96.32, 94.94, 96.32, 94.94),
    "musk1": (86.55, 94.54, 93.07, 89.44, 94.96, 91.17, 87.18, 93.90, 92.43),
    "hill-valley": (63.70, 66.00, 63.70, 64.86, 65.18, 64.86, 65.17, 64.03, 65.00),
    "breast": (96.78, 96.78, 96.78, 96.49, 96.49, 96.35, 96.19, 96.49, 96.19),
    "australian": (85.50, 84.78, 84.20, 84.78, 85.50, 84.92, 85.07, 85.07, 84.78),
    "transfusion": (76.21, 77.40, 76.47, 79.81, 78.74, 79.81, 79.67, 78.87, 79.94),
    "diabetes": (76.54, 76.54, 76.68, 76.81, 78.24, 77.07, 75.90, 76.68, 75.12),
    "tic-tac-toe": (98.33, 99.68, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0),
    "german.numer": (77.00, 75.90, 76.50, 76.30, 75.70, 76.00, 76.70, 74.70, 75.90),
    "splice": (80.41, 86.70, 86.60, 80.41, 86.30, 86.60, 78.30, 86.20, 86.60),
    "spambase": (89.80, 90.60, 89.80, 90.60, 90.50, 90.60, 90.70, 90.60, 90.70),
    "cmc": (59.26, 65.45, 64.16, 62.46, 67.72, 63.61, 63.61, 65.31, 64.36),
    "ijcnn1": (85.53, 93.94, 92.73, 93.93, 93.47, 93.60, 92.80, 94.47, 93.20),
    "a1a": (83.43, 81.94, 83.43, 82.87, 82.06, 82.87, 82.87, 82.06, 82.87),
    "chess": (96.57, 98.45, 98.03, 97.84, 98.50, 98.08, 97.32, 98.45, 98.08),
    "svmguide1": (95.34, 96.73, 96.89, 96.96, 96.92, 97.05, 96.96, 96.67, 96.86),
}
# Rows that the paper has drawn; of ijcnn1 with another balance.
SIZES = {
    "mushrooms": 300,
    "hill-valley": 606,
    "splice": 1000,
    "spambase": 1000,
    "ijcnn1": 1500,
    "chess": 2130,
}
# Of more classes, the one that is told from all others: its share is the paper's.
FIRST = {"splice": 2, "cmc": 0}
COSTS, GAMMAS = [0.25, 4.0, 64.0], [0.03, 0.5, 8.0]
GRIDS: dict[str, dict[str, Any]] = {
    "linear": {"C": COSTS},
    "rbf": {"C": COSTS, "gamma": GAMMAS},
    "poly": {"C": COSTS},
}
FIXED: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "rbf": {"kernel": "rbf"},
    "poly": {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 0.0},
}
KEYS = [{"set": name, "kernel": kernel} for name in PAPER for kernel in KERNELS]


@cache
def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a set in [0, 1] and labels of two classes."""
    data = load_real(name)
    X, y = np.asarray(data.X, float), np.asarray(data.y)
    y = y == FIRST[name] if name in FIRST else y == np.unique(y)[1]
    if name in SIZES:
        rng, n = np.random.default_rng(0), SIZES[name]
        share = 0.32 if name == "ijcnn1" else y.mean()
        own = [rng.permutation(np.flatnonzero(y == c)) for c in (False, True)]
        n_true = round(n * share)
        rows = np.sort(np.r_[own[0][: n - n_true], own[1][:n_true]])
        X, y = X[rows], y[rows]
    X, _ = to_unit(X, X)
    return X, y


def measure(run: Run, set: str, kernel: str) -> Record:
    """Return accuracies and seconds of the three methods, by fold."""
    X, y = rows_of(set)
    found: dict[str, list[tuple[float, float]]] = {method: [] for method in METHODS}
    for train, test in StratifiedKFold(10, shuffle=True, random_state=0).split(X, y):
        svc = GridSearchCV(SVC(**FIXED[kernel]), GRIDS[kernel], cv=3)
        found["SVC"].append(score(svc, X, y, train, test))
        candidates = [8, 32, 128, len(train)]
        falk = GridSearchCV(
            FalkSVC(selection=None, random_state=0, **FIXED[kernel]),
            {"n_neighbors": candidates, **GRIDS[kernel]},
            cv=3,
        )
        found["FalkSVC"].append(score(falk, X, y, train, test))
        knn = KNNSVC(random_state=0, **FIXED[kernel], **falk.best_params_)
        found["KNNSVC"].append(score(knn, X, y, train, test))
    return {
        "rows": len(X),
        **{method: [accuracy for accuracy, _ in own] for method, own in found.items()},
        "cpu_s": {method: sum(s for _, s in own) for method, own in found.items()},
    }


def score(model: Any, X: Any, y: Any, train: Any, test: Any) -> tuple[float, float]:
    """Return the accuracy of one fold, and the CPU seconds of it."""
    return cpu_of(lambda: model.fit(X[train], y[train]).score(X[test], y[test]))


def means(journal: Journal) -> dict[str, list[float]]:
    """Return the mean accuracy in % of each column, for sets that have them all."""
    found = {}
    for name in PAPER:
        own = {r["kernel"]: r for r in journal.ordered("kernel", set=name)}
        if len(own) == len(KERNELS):
            found[name] = [100 * float(np.mean(own[k][method])) for method, k in COLUMNS]
    return found


def ranks(values: list[Any]) -> np.ndarray:
    """Return the mean rank of each column; 1 is the best."""
    return np.asarray(np.mean([rankdata(-np.round(row, 6)) for row in values], axis=0))


def report(journal: Journal) -> str:
    found = means(journal)
    lines = [
        {"set": name, **{f"c{i}": f"{v:.2f} ({PAPER[name][i]:.2f})" for i, v in enumerate(own)}}
        for name, own in found.items()
    ]
    ours, papers = ranks(list(found.values())), ranks([PAPER[name] for name in found])
    both = zip(ours, papers, strict=True)
    mean = {f"c{i}": f"{a:.2f} ({b:.2f})" for i, (a, b) in enumerate(both)}
    apart = np.mean(list(found.values()), axis=0) - np.mean([PAPER[n] for n in found], axis=0)
    lines.append({"set": "mean difference", **{f"c{i}": f"{d:+.2f}" for i, d in enumerate(apart)}})
    lines.append({"set": "mean rank", **mean})
    headers = [f"{method}, {kernel} = c{i}" for i, (method, kernel) in enumerate(COLUMNS)]
    return (
        "# Table 2 of FaLK-SVM's paper\n\n"
        f"`benchmarks/falk_kernels.py`; {journal.machine}. Accuracy in % of 10-fold "
        "cross-validation, the paper's in brackets; C and the width of smaller grids than the "
        "paper's, polynomials of degree 2, other folds, and other rows where it drew some. Mean "
        f"ranks among the nine columns on these {len(found)} sets.\n\n"
        + table(" | ".join(["set = set", *headers]), lines)
        + "\nWilcoxon's signed rank test of two methods with one kernel, p (sets on which the "
        "first is better, worse):\n\n"
        + table(
            "kernel = kernel | " + " | ".join(f"{a} and {b} = {a}_{b}" for a, b in PAIRS),
            [tested(found, kernel) for kernel in KERNELS],
        )
        + f"\n{friedman('Ours', list(found.values()))} "
        f"{friedman('The paper, these sets', [PAPER[name] for name in found])}\n"
    )


def friedman(who: str, values: list[Any]) -> str:
    """Return what Friedman's test of all columns says, and Nemenyi's of pairs of them."""
    own, n_columns = ranks(values), len(COLUMNS)
    p = friedmanchisquare(*np.round(np.array(values).T, 6)).pvalue
    # Demsar, Statistical comparisons of classifiers over multiple data sets, JMLR 2006, 3.2.2.
    quantile = studentized_range.ppf(0.95, n_columns, np.inf) / np.sqrt(2)
    apart = quantile * np.sqrt(n_columns * (n_columns + 1) / (6 * len(values)))
    names = [f"{method}, {kernel}" for method, kernel in COLUMNS]
    pairs = [
        f"{names[a]} before {names[b]}"
        for a, b in itertools.permutations(range(n_columns), 2)
        if own[b] - own[a] > apart
    ]
    return (
        f"{who}: Friedman's test of nine columns, p = {p:.2g}; by Nemenyi's, at 5 %, mean ranks "
        f"differ from {apart:.2f} on: {'; '.join(pairs) or 'none'}."
    )


PAIRS = (("KNNSVC", "SVC"), ("FalkSVC", "SVC"), ("KNNSVC", "FalkSVC"))


def tested(found: dict[str, list[float]], kernel: str) -> Record:
    """Return what Wilcoxon's test says of pairs of methods."""
    line: Record = {"kernel": kernel}
    values = np.array(list(found.values()))
    for a, b in PAIRS:
        gained = values[:, COLUMNS.index((a, kernel))] - values[:, COLUMNS.index((b, kernel))]
        p = wilcoxon(gained).pvalue if np.any(gained) else 1.0
        line[f"{a}_{b}"] = f"{p:.3f} ({(gained > 0).sum()}, {(gained < 0).sum()})"
    return line


EXPERIMENT = Experiment(KEYS, measure, report)
