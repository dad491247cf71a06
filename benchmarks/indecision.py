"""The share of undecided rows of a linear SVM on ijcnn1, as table 11 of the sampling paper.

Subsamples of growing size, the linear SVM of each (`LandmarkSVC` with one cluster on an orthonormal
basis, C = 5), and the share of its training rows whose decision value is nearer to 0 than eps:
equation 17; eps = 1 is added, since the paper's shares turn out to be those of ten times its eps.
The paper's table has means of 100 repetitions, ours of ten (all rows: one); features as they are,
and of standard deviation 1.
"""

import numpy as np

from benchmarks.suite import Experiment, Journal, Record, Run, grid, page
from benchmarks.suite.real import load_real
from daskls import LandmarkSVC

SIZES = (5000, 10_000, 20_000, 30_000, 40_000, 49_990)
FEATURES = ("as they are", "standard deviation 1")
EPS = (1.0, 0.1, 0.01, 0.001)
PAPER = {
    0.1: (0.15623, 0.15611, 0.15675, 0.15673, 0.15655, 0.1565),
    0.01: (0.01147, 0.01141, 0.01148, 0.01144, 0.01141, 0.01142),
    0.001: (0.00086, 0.00082, 0.00085, 0.00086, 0.00085, 0.00086),
}
N_REPEATED = 10


def measure(run: Run, features: str, rows: int) -> Record:
    """Return the mean share for each eps over subsamples."""
    data = load_real("ijcnn1")
    X, y = np.asarray(data.X, float), data.y
    if features != FEATURES[0]:
        X = X / X.std(axis=0)
    found = []
    for seed in range(N_REPEATED if rows < len(X) else 1):
        drawn = np.random.default_rng(seed).permutation(len(X))[:rows]
        model = LandmarkSVC(1, landmarks="pca", C=5.0, random_state=seed).fit(X[drawn], y[drawn])
        found.append(model.indecision(X[drawn], EPS))
    return {"shares": np.mean(found, axis=0).tolist()}


def rows(journal: Journal) -> list[Record]:
    """Return a row of the table a kind of features and eps, with the share of each size."""
    found: list[Record] = []
    for features in FEATURES:
        own = {r["rows"]: r["shares"] for r in journal.where(features=features)}
        for i, eps in enumerate(EPS):
            shares = {n: each[i] for n, each in own.items()}
            found.append({"features": features, "eps": eps, "shares": shares})
    for eps, each in PAPER.items():
        shares = dict(zip(SIZES, each, strict=True))
        found.append({"features": "the paper", "eps": eps, "shares": shares})
    return found


TEXT = (
    "`benchmarks/indecision.py`, {machine}. C = 5; share of training rows with |decision value| < "
    "eps, means of ten subsamples (all rows: one). The paper's shares are those of ten times its "
    "eps: 0.156 at its 0.1 is ours at 1."
)
COLUMNS = "features = features | eps = eps | "
COLUMNS += " | ".join(f"n = {n} = shares[{n}]:.5f" for n in SIZES)
EXPERIMENT = Experiment(
    grid(features=FEATURES, rows=SIZES),
    measure,
    page("Indecision of a linear SVM on ijcnn1", TEXT, COLUMNS, rows),
)
