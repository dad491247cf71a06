"""Rows inside of balls against all distances, and what a draw keeps of them."""

import numpy as np
import pytest
from searches import Leaves, squared_distances
from small import tiny_tiles

from daskls.neighbors.balls import find_inside, keep_smallest, near_balls

N = 500
KINDS = {
    "normal": lambda rng: rng.normal(size=(N, 5)),
    "22 features": lambda rng: rng.normal(size=(N, 22)),
    # Whole shells of rows at exactly one distance.
    "a grid": lambda rng: rng.integers(0, 8, (N, 2)).astype(float),
    "duplicates": lambda rng: rng.normal(size=(20, 3))[rng.integers(0, 20, N)],
    "1000 to 1001": lambda rng: 1000 + rng.random((N, 3)),
}


def pairs_of(leaves, centers, radius):
    found, passed = [], 0
    for number, leaf in enumerate(leaves.leaves):
        near = near_balls(centers, radius, leaves.regions, number)
        passed += len(near) == 0
        for of_ball, row in find_inside(centers, radius, near, leaf):
            found += zip(of_ball.tolist(), leaf.numbers[row].tolist(), strict=True)
    return found, passed


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_inside_are_those_of_all_distances(kind, dtype, monkeypatch):
    tiny_tiles(monkeypatch, MARKED_PAIRS=50, TILE_BALLS=13)
    X = KINDS[kind](np.random.default_rng(0)).astype(dtype)
    centers = X[::13].astype(float)
    distances = squared_distances(centers, X)
    leaves = Leaves(X, 12, n_empty=2)
    # Radii that some row's distance is, exactly, and the next ones below it.
    for at in (0.0, np.sqrt(np.median(distances)), np.sqrt(np.quantile(distances, 0.03)), 3.0):
        for radius in (at, np.nextafter(at, 0)):
            found, _ = pairs_of(leaves, centers, radius)
            of_ball, row = np.nonzero(distances <= radius * radius)
            expected = set(zip(of_ball.tolist(), leaves.numbers[row].tolist(), strict=True))
            assert len(found) == len(set(found))
            assert set(found) == expected


def test_the_smallest_keys_of_each_ball_are_kept():
    rng = np.random.default_rng(0)
    of_ball = rng.integers(0, 9, 400)
    keys = rng.permutation(400).astype(np.uint64) + np.uint64(2**63)
    quotas = np.array([0, 1, 2, 10, 100, 400, 5, 6, 7])
    kept = keep_smallest(of_ball, keys, quotas)
    for ball in range(9):
        own = sorted(keys[of_ball == ball].tolist())
        assert keys[kept[of_ball[kept] == ball]].tolist() == own[: quotas[ball]]
    # In parts and then together, or at once: the same.
    first, second = np.arange(150), np.arange(150, 400)
    parts = np.r_[
        first[keep_smallest(of_ball[first], keys[first], quotas)],
        second[keep_smallest(of_ball[second], keys[second], quotas)],
    ]
    again = parts[keep_smallest(of_ball[parts], keys[parts], quotas)]
    assert again.tolist() == kept.tolist()
