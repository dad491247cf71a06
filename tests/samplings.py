"""Helpers of the tests on samples: both procedures as one slow process."""

import numpy as np
from sklearn.svm import SVC

from daskls import LocalSamplingSVC, NeighborSamplingSVC
from daskls.partition.shuffle import row_keys, shuffle_numbers


def small_local(sample_fraction=0.2, **params):
    """Return an estimator that trains in a blink."""
    small = {"n_subsamples": 4, "C": 10.0, "gamma": 20.0, "random_state": 0}
    return LocalSamplingSVC(sample_fraction, **{**small, **params})


def small_near(sample_fraction=0.1, **params):
    """Return an estimator that trains in a blink."""
    small = {"n_neighbors": 3, "C": 10.0, "gamma": 20.0, "random_state": 0}
    return NeighborSamplingSVC(sample_fraction, **{**small, **params})


def keep_parts(patch):
    """Keep what a fit removes at its end: the samples of its steps, and what was drawn."""
    patch.setattr("daskls.methods.sampling.method.Sampling.clean_up", lambda self, root: None)


class SlowSampling:
    """What both procedures begin with, in one process; rows are looked at one by one.

    The hashes are daskls's own: they are what makes draws comparable.
    """

    def __init__(self, X, y, fraction, n_subsamples, C, gamma, seed, weights=None):
        self.X, self.y, self.seed = X.astype(float), y, seed
        self.C, self.gamma = C, gamma
        self.weights = np.ones(len(X)) if weights is None else weights
        n = self.n = len(X)
        order = np.argsort(shuffle_numbers(np.arange(n), n, seed)).tolist()
        self.n_validation = min(max(n // 10, 1), 10_000)
        self.size = int(fraction * n) // n_subsamples
        self.n_sampled = self.size * n_subsamples
        self.reserved = self.n_sampled + self.n_validation
        # Rows go with the first of those that they equal: all validate, or none.
        first = {}
        for i, row in enumerate(X.tolist()):
            first.setdefault(tuple(row), i)
        drawn = set(order[self.n_sampled : self.reserved])
        self.validation = [i for i in order if first[tuple(X[i].tolist())] in drawn]
        held = set(self.validation)
        # In its place each row that does not validate; None elsewhere.
        self.order = [None if i in held else i for i in order]

    def drawn(self, start, stop):
        """Return the rows in some places of the permutation."""
        return np.array([i for i in self.order[start:stop] if i is not None], int)

    def train(self, rows):
        """Return the SVC of some rows as daskls sees them: float32 around their mean."""
        center = self.X[rows].mean(axis=0)
        svc = SVC(C=self.C, gamma=self.gamma, tol=1e-3)
        A = (self.X[rows] - center).astype(np.float32).astype(float)
        svc.fit(A, self.y[rows], self.weights[rows])
        return svc, center

    def error(self, svc, center):
        """Return the weighted error on the validation rows."""
        labels = svc.predict(self.X[self.validation] - center)
        wrong = labels != self.y[self.validation]
        return np.average(wrong, weights=self.weights[self.validation])

    def support_of_subsamples(self):
        """Return the support rows of all subsamples, steps (i) and (ii)."""
        support = []
        for start in range(0, self.n_sampled, self.size):
            rows = np.sort(self.drawn(start, start + self.size))
            if len(set(self.y[rows].tolist())) > 1:
                support += rows[self.train(rows)[0].support_].tolist()
        return sorted(support)

    def distances(self, i):
        """Return the distances of all rows to one, each summed feature by feature."""
        total = np.zeros(self.n)
        for column, own in zip(self.X.T, self.X[i], strict=True):
            total += (column - own) * (column - own)
        return np.sqrt(total)

    def sample_of_balls(self, beta):
        """Return the sample of step (v), and the quotas and counts of the balls."""
        support = self.support_of_subsamples()
        k = int(np.log(len(support)))
        rho = np.array(
            [
                np.sort(self.distances(i)[[j for j in support if j != i]])[max(k, 1) - 1]
                for i in support
            ]
        )
        rho[rho == 0] = rho[rho > 0].min()
        shares = (1 / rho) / (1 / rho).sum()
        others = self.drawn(self.n_sampled, self.n)
        sample, quotas, counts = set(support), [], []
        for i, share in zip(support, shares, strict=True):
            inside = others[self.distances(i)[others] <= beta * np.median(rho)].tolist()
            (of_ball,) = row_keys(np.array([i]), self.seed + 2**52).tolist()
            shifted = np.array([(j + of_ball) % 2**64 for j in inside], np.uint64)
            keys = row_keys(shifted, 0)
            quotas.append(int(share * (self.n - self.reserved)))
            counts.append(len(inside))
            sample |= {inside[j] for j in np.argsort(keys)[: quotas[-1]]}
        return np.array(sorted(sample)), np.array(quotas), np.array(counts)

    def rounds(self, n_neighbors, n_rounds):
        """Yield the sample of each round of procedure CGLQ, its SVC and center."""
        sample = np.sort(self.drawn(0, self.size))
        training = np.setdiff1d(np.arange(self.n), self.validation)
        at = self.reserved
        for _ in range(n_rounds):
            svc, center = self.train(sample)
            yield sample, svc, center
            enriched = set(sample[svc.support_].tolist())
            for i in sample[svc.support_].tolist():
                others = training[training != i]
                nearest = np.lexsort((others, self.distances(i)[others]))[:n_neighbors]
                enriched |= set(others[nearest].tolist())
            enriched |= set(self.drawn(at, at + self.size).tolist())
            at += self.size
            sample = np.array(sorted(enriched))
