"""Helpers of the tests on neighborhoods: FaLK-SVM as one slow process."""

import numpy as np
from sklearn.svm import SVC

from daskls import FalkSVC
from daskls.partition.cover import farthest_first, n_ranked_rows
from daskls.partition.shuffle import row_keys


def small_falk(n_neighbors=60, **params):
    """Return an estimator that trains in a blink."""
    return FalkSVC(
        n_neighbors, **{"C": 10.0, "gamma": 20.0, "selection": None, "random_state": 0, **params}
    )


def nearest_rows(X, query, k):
    """Return the numbers of the k nearest rows, by (distance summed in feature order, number)."""
    distances = np.zeros(len(X))
    for j in range(X.shape[1]):
        distances += (X[:, j].astype(float) - float(query[j])) ** 2
    return np.lexsort((np.arange(len(X)), distances))[:k]


class SlowFalk:
    """FaLK-SVM in one process, from equations 12, 14 and 15 and the order that we state."""

    def __init__(self, X, y, k, inner, C, gamma, seed):
        self.X, self.y, self.k, self.inner = X, y, k, inner
        self.C, self.gamma = C, gamma
        n = len(X)
        numbers = np.arange(n)
        by_key = numbers[np.argsort(row_keys(numbers, seed), kind="stable")]
        ranked = by_key[: n_ranked_rows(n, inner)]
        first = ranked[farthest_first(X[ranked])]
        order = [*first.tolist(), *(i for i in by_key.tolist() if i not in set(first))]
        self.order = order
        self._cover()

    def _cover(self):
        covered = np.zeros(len(self.X), bool)
        best, follows = {}, {}
        self.centers = []
        for row in self.order:
            if covered[row]:
                continue
            near = nearest_rows(self.X, self.X[row], self.inner).tolist()
            if row not in near:
                follows[row] = near[0]
                continue
            self.centers.append(row)
            covered[near] = True
            for rank, other in enumerate(near):
                best[other] = min(best.get(other, (np.inf, 0)), (rank, row))
        first = [follows.get(row, row) for row in range(len(self.X))]
        self.owner = np.array([best[row][1] for row in first])

    def decide(self, query):
        """Return the decision value of equation 15."""
        center = self.owner[nearest_rows(self.X, query, 1)[0]]
        near = nearest_rows(self.X, self.X[center], self.k)
        labels = self.y[near]
        if len(set(labels.tolist())) == 1:
            return 1.0 if labels[0] else -1.0
        svm = SVC(C=self.C, gamma=self.gamma, tol=1e-6).fit(self.X[near], labels)
        return svm.decision_function(query[None])[0]
