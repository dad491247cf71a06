"""Synthetic sets that only benchmarks use, drawn like those of `daskls.datasets`."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from daskls.datasets import make_checkerboard
from daskls.datasets._base import Generator
from daskls.datasets.registry import GENERATORS

SampledRows = tuple[np.ndarray, np.ndarray]
# The smallest possible error on two Gaussians, by d: quadrature over the ball in which -1 is more
# likely, with an error below 1e-6.
RISKS = {4: 0.0733300, 8: 0.0235700, 16: 0.0029715}


def structure(set_id: int) -> np.random.Generator:
    """Return the generator of what all rows share."""
    return np.random.default_rng((0, set_id, 0, 1))


def make_xor(n_rows: int, random_state: int = 0) -> SampledRows:
    """Draw X uniform on [-1, 1]^2, +1 where the signs agree (L3-SVMs, figure 1)."""
    X, y = make_checkerboard(n_rows, n_cells_side=2, flip=0.0, random_state=random_state)
    return 2 * X - 1, y


@dataclass(frozen=True)
class TwoGaussians(Generator):
    """The toy example of the spatial decomposition paper, section 4, on the box [-2, 2]^d.

    +1, with probability 0.6: around the origin, variance 1; -1: around (1, 0, .., 0), variance 1/8.
    """

    set_id = 5
    d: int

    def _draw(self, rng: np.random.Generator, m: int) -> SampledRows:
        positive, u = rng.random(m) < 0.6, rng.random((m, self.d))
        mean, sd = np.zeros((m, self.d)), np.where(positive, 1.0, 8**-0.5)[:, None]
        mean[~positive, 0] = 1.0
        low, high = ndtr((-2 - mean) / sd), ndtr((2 - mean) / sd)
        return np.clip(mean + sd * ndtri(low + u * (high - low)), -2, 2), positive

    def bayes_accuracy(self) -> float:
        return 1 - RISKS[self.d]


@dataclass(frozen=True)
class Ndcc(Generator):
    """Normal clusters on the vertices of three nested cubes, after FaLK-SVM's ndcc (section 5.2).

    Each cluster has its own covariance, and is +1 if its center is above its cube's random plane.
    """

    set_id = 6

    def _draw(self, rng: np.random.Generator, m: int) -> SampledRows:
        centers, factors, positive = ndcc_clusters()
        chosen = rng.integers(len(centers), size=m)
        normal = rng.standard_normal((m, 5, 1))
        return centers[chosen] + (factors[chosen] @ normal)[:, :, 0], positive[chosen]

    def bayes_accuracy(self) -> float:
        """Return the mean larger posterior of 131,072 rows; its standard error is below 0.0005."""
        return 0.8745


@lru_cache
def ndcc_clusters() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return centers (k, 5), factors (k, 5, 5) of standard normals, and which clusters are +1."""
    rng = structure(6)
    vertices = 1.0 - 2.0 * ((np.arange(32)[:, None] >> np.arange(5)) & 1)
    centers = np.concatenate([side * vertices for side in (1, 2, 3)])
    axes = np.linalg.qr(rng.standard_normal((96, 5, 5))).Q
    factors = axes * (0.95 * rng.uniform(0.5, 1.5, (96, 1, 5)))
    normals = rng.standard_normal((3, 5))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    # Planes beside the origin: some 39 % of the vertices are above one, as in the paper.
    return centers, factors, np.concatenate([vertices @ normal > 0.28 for normal in normals])


@dataclass(frozen=True)
class Rare(Generator):
    """A rare class of the size of ECBDL'14: `share` of the rows, in `d` features.

    Along eight orthonormal directions the features hold hidden ones, normal with deviation 1; along
    the others noise. In a positive row the first hidden feature is moved by 1.5: upwards where the
    product of the next three is positive, else downwards.
    """

    set_id = 11
    d: int = 631
    share: float = 0.02

    def _draw(self, rng: np.random.Generator, m: int) -> SampledRows:
        directions = rare_directions(self.d)
        positive = rng.random(m) < self.share
        hidden = rng.standard_normal((m, 8))
        hidden[:, 0] += 1.5 * positive * np.sign(hidden[:, 1:4].prod(axis=1))
        X = 0.1 * rng.standard_normal((m, self.d))
        X += (hidden - X @ directions) @ directions.T
        return X, positive

    def bayes_accuracy(self) -> float:
        """Return that of a threshold on the moved feature."""
        odds, share = (1 - self.share) / self.share, self.share
        threshold = 0.75 + np.log(odds) / 1.5
        return float((1 - share) * ndtr(threshold) + share * ndtr(1.5 - threshold))


# The best TPR x TNR on `Rare`: by Neyman and Pearson a threshold on the moved feature, halfway.
RARE_BEST_PRODUCT = float(ndtr(0.75) ** 2)


@lru_cache
def rare_directions(d: int) -> np.ndarray:
    return np.linalg.qr(structure(11).standard_normal((d, 8)))[0]


# So that they can be written to disk by name.
GENERATORS["rare"] = Rare
