"""The covering in rounds against one row after the other, as in equations 12 and 14."""

import numpy as np
import pytest
from small import tiny_tiles

from daskls.partition.cover import Cover, farthest_first, order_rows
from daskls.partition.shuffle import row_keys

FIRST_NUMBER = 2**33


def nearest_positions(X, numbers, k):
    """Return the positions of each row's k nearest rows, by (squared distance, row number)."""
    lists = []
    for row in X:
        distances = ((X - row) ** 2).sum(axis=1)
        lists.append(np.lexsort((numbers, distances))[:k])
    return np.array(lists)


def cover_in_turn(order, numbers, lists):
    """Take one row after the other; return the centers and, for each position, the owner.

    Equation 12: the next row of the order that no center's list holds becomes a center. Equation
    14: a row belongs to the center in whose list it ranks first, then to the smaller row number.
    A row that its own list does not hold becomes no center: it goes where that list's first goes.
    """
    covered, centers = set(), []
    for position in order.tolist():
        own = lists[position].tolist()
        if position not in covered and position in own:
            centers.append(position)
            covered.update(own)
    claims = {position: [] for position in range(len(order))}
    for center, position in enumerate(centers):
        for rank, row in enumerate(lists[position].tolist()):
            claims[row].append((rank, numbers[position], center))
    owner = []
    for position in range(len(order)):
        while not claims[position]:
            position = lists[position][0]
        owner.append(min(claims[position])[2])
    return centers, owner


def cover_in_rounds(order, numbers, lists, most=None):
    state, sizes = Cover(order, lists.shape[1]), []
    while len(positions := state.next_round()[:most]):
        assert (state.owner[positions] == -1).all(), "covered rows need no search"
        assert len(sizes) < len(order), "a round decides one row at least"
        sizes.append(len(positions))
        state.take_round(positions, numbers[positions], lists[positions])
    assert (state.n_rounds, state.n_searched) == (len(sizes), sum(sizes))
    assert state.n_covered == len(order)
    return state, sizes


def check_cover(order, numbers, lists, most=None):
    """Same centers in the same order, and the same owners, as one row after the other."""
    state, sizes = cover_in_rounds(order, numbers, lists, most)
    centers, owner = cover_in_turn(order, numbers, lists)
    assert state.centers == centers
    np.testing.assert_array_equal(state.resolved_owner(), owner)
    return state, sizes


def random_numbers(rng, n):
    return FIRST_NUMBER + rng.permutation(n)


# A grid: many rows rank the same in several lists. Thirty rows, some repeated more often than a
# list is long.
ROWS = {
    "spread": lambda rng: rng.random((500, 2)),
    "tied": lambda _: np.indices((22, 22)).reshape(2, -1).T.astype(float),
    "repeated": lambda rng: rng.random((30, 2))[(30 * rng.random(500) ** 2).astype(int)],
}


def problem(kind, n_assigned, seed=0):
    rng = np.random.default_rng(seed)
    X = ROWS[kind](rng)
    numbers = random_numbers(rng, len(X))
    by_number = np.argsort(numbers)
    order = order_rows(numbers, seed, numbers[by_number], X[by_number], 40)
    return order, numbers, nearest_positions(X, numbers, n_assigned)


@pytest.mark.parametrize("first_round", [1, 2, 64, 1000])
@pytest.mark.parametrize("n_assigned", [1, 2, 10, 60])
@pytest.mark.parametrize("kind", ROWS)
def test_rounds_give_what_one_row_after_the_other_gives(kind, n_assigned, first_round, monkeypatch):
    tiny_tiles(monkeypatch, FIRST_ROUND=first_round)
    order, numbers, lists = problem(kind, n_assigned)
    state, sizes = check_cover(order, numbers, lists)
    assert sizes[0] == min(first_round, len(order))
    assert all(position in lists[position] for position in state.centers)
    n_different = 30 if kind == "repeated" else len(order)
    assert n_different / n_assigned <= len(state.centers) <= n_different


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_rows_that_go_where_rows_go_that_go_elsewhere(order):
    """A rounded metric knows rows at 0 from their neighbors, but not from those rows' neighbors."""
    lists = np.array([[0], [0], [1], [2]])
    state, _ = check_cover(np.array(order), np.arange(4), lists)
    assert state.resolved_owner().tolist() == [0] * 4


@pytest.mark.parametrize("seed", range(6))
def test_any_lists_over_many_rows(seed, monkeypatch):
    """Orders of which a round looks at pieces; lists that no geometry has made."""
    rng = np.random.default_rng(seed)
    n, k = 12_000, (3, 20)[seed % 2]
    tiny_tiles(monkeypatch, FIRST_ROUND=(1, 16, 500)[seed % 3], MAX_ROUND=700)
    if seed < 3:
        steps = np.r_[0, rng.choice(np.arange(1, 400), k - 1, replace=False)]
        lists = (np.arange(n)[:, None] + steps) % n
    else:
        lists = np.array([rng.choice(n, k, replace=False) for _ in range(n)], np.int32)
        lists[:, 0] = np.where((lists == np.arange(n)[:, None]).any(axis=1), lists[:, 0], range(n))
    # One half of the rows comes after the other.
    order = np.argsort(np.arange(n) // 6000 + 0.5 * rng.random(n), kind="stable")
    _, sizes = check_cover(order, random_numbers(rng, n), lists)
    assert len(set(sizes)) > 1
    assert max(sizes) <= 700


def sampled_rows(seed=0, n=700, s=300, d=3):
    """Return (numbers of all positions, numbers of sampled rows, their features)."""
    rng = np.random.default_rng(seed)
    numbers = random_numbers(rng, n)
    sampled = np.sort(rng.choice(numbers, s, replace=False))
    return numbers, sampled, rng.normal(size=(s, d))


def farthest_first_by_all_distances(X):
    rows = X.astype(np.float64)
    nearest, order, current = np.full(len(rows), np.inf), [], 0
    for _ in range(len(rows)):
        order.append(current)
        steps = rows - rows[current]
        nearest = np.minimum(nearest, np.einsum("ij,ij->i", steps, steps))
        nearest[order] = -1.0
        current = int(nearest.argmax())
    return order


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-30, 1.0, 1e30, 1e170])
@pytest.mark.parametrize("d", [1, 3, 54])
@pytest.mark.parametrize("kind", ["drawn", "far", "copies", "whole", "equal", "outlier", "near"])
def test_farthest_first_is_that_of_all_distances(kind, d, scale):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(150, d))
    X = {
        "drawn": X,
        "far": X + 1e6,
        "copies": X[rng.integers(0, 30, 150)],
        "whole": rng.integers(0, 3, (150, d)).astype(float),
        "equal": np.full((150, d), 0.1),
        "outlier": np.r_[[np.full(d, -1.0)], 1 / 3 + 1e-9 * X[1:]],
        "near": X[rng.integers(0, 30, 150)] + 1e-8 * X,
    }[kind]
    assert farthest_first(scale * X).tolist() == farthest_first_by_all_distances(scale * X)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_ranked", [1, 50, 300])
def test_the_order_is_farthest_first_of_the_smallest_keys_and_then_by_keys(n_ranked, seed):
    numbers, sampled, X = sampled_rows(seed)
    whole = numbers[order_rows(numbers, 3, sampled, X, n_ranked)]
    first, keys = whole[:n_ranked], row_keys(whole[n_ranked:], 3)
    by_key = sampled[np.argsort(row_keys(sampled, 3))]
    assert first[0] == by_key[0]
    assert set(first) == set(by_key[:n_ranked])
    rows = X[np.searchsorted(sampled, first)]
    for i in range(1, n_ranked):
        steps = rows[i:, None] - rows[None, :i]
        assert np.linalg.norm(steps, axis=2).min(axis=1).argmax() == 0
    assert (keys[1:] > keys[:-1]).all()
    # It does not depend on the positions.
    moved = np.random.default_rng(seed + 10).permutation(numbers)
    np.testing.assert_array_equal(moved[order_rows(moved, 3, sampled, X, n_ranked)], whole)


def test_keys_are_those_of_splitmix64():
    """The generator's first numbers from the state 0, as its authors print them."""
    expected = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert row_keys(np.array([1, 2, 3]), 0).tolist() == expected
    assert row_keys(np.array([0, 1, 2]), 1).tolist() == expected
