"""LandmarkSVC sees the same rows in any unit, and says where its own choices end."""

import numpy as np
import pytest
from support import checkers, few

from daskls import GridEdgeWarning, LandmarkSVC
from daskls.methods.landmarks.plan import count_clusters, pick_cost

N = 1200
TRAIN = slice(0, 800)
KINDS = [(p, z) for p in ("linear", "rbf") for z in ("random", "pca")]
# A grid may end where the best C lies; what is said then has tests of its own.
pytestmark = pytest.mark.filterwarnings("ignore::daskls.GridEdgeWarning")


def noisy_rows():
    """Return rows around 0.5 of three features, one of them small and without a meaning; labels."""
    X, y = checkers(N, noise=0.1)
    return np.column_stack([X, 0.2 * np.random.default_rng(5).random(N)]), y


def chosen(model):
    """Return the place of the chosen C among the candidates."""
    return model.selected_["candidates"].index(model.selected_["C"])


def fit(X, y, n_cells=8, **params):
    return LandmarkSVC(n_cells, cv=3, random_state=0, **params).fit(X[TRAIN], y[TRAIN])


@pytest.mark.slow
@pytest.mark.parametrize(("projection", "landmarks"), few(KINDS))
@pytest.mark.parametrize("dtype", few(["f8", "f4"]))
def test_powers_of_two_leave_every_bit_of_the_answers(projection, landmarks, dtype):
    X, y = noisy_rows()
    X = X.astype(dtype)
    kind = {"projection": projection, "landmarks": landmarks}
    model = fit(X, y, **kind)
    scores = model.decision_function(X)
    for power in (-30, -3, 1, 17):
        unit = X.dtype.type(2.0**power)
        other = fit(X * unit, y, **kind)
        assert other.decision_function(X * unit).tobytes() == scores.tobytes()
        assert other.selected_["errors"] == model.selected_["errors"]
        assert chosen(other) == chosen(model)
        assert (other.center_ == model.center_ * 2.0**power).all()
        assert (other.cluster_centers_ == model.cluster_centers_ * 2.0**power).all()


@pytest.mark.parametrize(("projection", "landmarks"), KINDS)
def test_the_candidates_follow_the_projections(projection, landmarks):
    X, y = noisy_rows()
    model = fit(X, y, projection=projection, landmarks=landmarks, n_landmarks=3)
    rows, center, landmarks_ = X[TRAIN], X[TRAIN].mean(axis=0), model.landmarks_
    if projection == "rbf":
        gamma = 1 / (3 * rows.var())
        seen = np.exp(-gamma * ((rows[:, None] - landmarks_) ** 2).sum(axis=2))
    else:
        vectors = landmarks_ if landmarks == "pca" else landmarks_ - center
        seen = (rows - center) @ vectors.T
    shares = np.array(model.selected_["candidates"]) * (seen**2).sum(axis=1).mean()
    np.testing.assert_allclose(shares, [0.03, 0.3, 3, 30, 300, 3e3, 3e4, 3e5], rtol=1e-9)
    np.testing.assert_allclose(model.center_, center, rtol=1e-12)


def test_the_lower_edge_is_said_too():
    # Labels without a pattern but for their mean: what bends least errs least.
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(600, 20)), (rng.random(600) < 0.25).astype(int)
    with pytest.warns(GridEdgeWarning, match="give smaller ones"):
        LandmarkSVC(5, C=[1e-7, 10.0, 100.0], cv=3, random_state=0).fit(X, y)


def test_clusters_grow_with_the_rows_that_count():
    counts = [count_clusters(n) for n in (2, 500, 634, 1600, 3000, 8000, 8617, 8618, 10**9)]
    assert counts == [2, 2, 2, 8, 20, 89, 99, 100, 100]


TIES = [
    # Of equal errors the smallest C inside the grid that tells rows apart.
    ([0.3, 0.2, 0.1, 0.1, 0.4], [], [1, 1, 1, 1, 1], 2),
    ([0.5, 0.5, 0.5, 0.5, 0.6], [], [0, 0, 1, 1, 1], 2),
    # On the edge where it is better, or nothing inside is as good.
    ([0.4, 0.3, 0.3, 0.2, 0.1], [], [1, 1, 1, 1, 1], 4),
    # Better is better, whatever it tells.
    ([0.4, 0.5, 0.6, 0.6, 0.6], [], [0, 1, 1, 1, 1], 0),
    # What was not solved says nothing, unless nothing was.
    ([0.3, 0.2, 0.1, 0.1, 0.1], [2, 3, 4], [1, 1, 1, 1, 1], 1),
    ([0.3, 0.2, 0.1, 0.1, 0.1], [0, 1, 2, 3, 4], [1, 1, 1, 1, 1], 2),
]


def test_ties():
    for errors, unsolved, told, best in TIES:
        is_open = np.isin(np.arange(5), unsolved)
        assert pick_cost(errors, is_open, np.array(told, bool)) == best
