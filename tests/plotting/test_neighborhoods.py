"""What the display of neighborhoods draws: circles, local boundaries, the joint one."""

import shutil

import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC

import daskls
from daskls.errors import ParameterError, StoreError
from daskls.plotting import NeighborhoodDisplay

K, INNER, C, GAMMA = 15, 4, 10.0, 4.0


@pytest.fixture(scope="module")
def wave():
    """Two classes above and below a wave, as many rows as in the paper's figures."""
    rng = np.random.default_rng(3)
    X = rng.random((185, 2)) * [3, 2]
    y = np.where(X[:, 1] > 1 + 0.5 * np.sin(2 * X[:, 0]), "above", "below")
    model = daskls.FalkSVC(K, n_assigned=INNER, C=C, gamma=GAMMA, random_state=0).fit(X, y)
    return model, X, y


@pytest.fixture(scope="module")
def drawn(wave):
    return NeighborhoodDisplay.from_estimator(wave[0], resolution=120)


def distances(A, B):
    return np.sqrt(((A[:, None] - B[None]) ** 2).sum(axis=2))


def vertices(boundary):
    return np.concatenate([path.vertices for path in boundary.get_paths()])


def test_radii_are_those_of_brute_force(drawn, wave):
    model, X, y = wave
    assert drawn.counts == (INNER, K)
    assert drawn.numbers.tolist() == list(range(model.n_cells_))
    between = np.sort(distances(drawn.centers, X), axis=1)
    # Each center is a row.
    assert (between[:, 0] == 0).all()
    np.testing.assert_allclose(drawn.radii, between[:, [INNER - 1, K - 1]], rtol=1e-12)
    # Every row lies in the inner circle of at least one center.
    covered = distances(X, drawn.centers) <= drawn.radii[:, 0] * (1 + 1e-9)
    assert covered.any(axis=1).all()
    own = distances(drawn.centers, X).argmin(axis=1)
    np.testing.assert_array_equal(model.classes_[drawn.center_classes], y[own])


def test_every_center_has_two_circles_in_place(drawn):
    drawn.plot()
    for circles, radii in zip((drawn.inner_, drawn.outer_), drawn.radii.T, strict=True):
        assert len(circles.get_paths()) == len(drawn.centers)
        for path, center, radius in zip(circles.get_paths(), drawn.centers, radii, strict=True):
            box = path.get_extents()
            assert (box.width, box.height) == pytest.approx((2 * radius, 2 * radius))
            assert ((box.p0 + box.p1) / 2).tolist() == pytest.approx(center.tolist())
    # Bold around k' rows, thin around k.
    assert drawn.inner_.get_linewidth()[0] > drawn.outer_.get_linewidth()[0]
    assert len(drawn.centers_.get_offsets()) == len(drawn.centers)
    assert drawn.ax_.get_aspect() == 1.0


def test_local_boundaries_are_those_of_the_neighborhoods_svms(drawn, wave):
    _, X, y = wave
    drawn.plot()
    nearest = np.argsort(distances(drawn.centers, X), axis=1)[:, :K]
    mixed = [i for i, rows in enumerate(nearest) if len(set(y[rows])) == 2]
    assert list(drawn.discs) == mixed
    assert drawn.totals == (len(drawn.centers), len(mixed), len(X))
    assert 5 < len(drawn.local_) <= len(mixed) < len(drawn.centers)
    # Of the centers whose circle the boundary crosses, in order.
    crossed = [i for i in mixed if (drawn.discs[i] > 0).any() and (drawn.discs[i] < 0).any()]
    assert len(drawn.local_) == len(crossed)
    for i, boundary in zip(crossed, drawn.local_, strict=True):
        points = vertices(boundary)
        reach = distances(points, drawn.centers[i : i + 1]).max()
        assert reach <= drawn.radii[i, 1] * (1 + 1e-9)
        svm = SVC(C=C, gamma=GAMMA, tol=1e-6).fit(X[nearest[i]], y[nearest[i]])
        assert np.abs(svm.decision_function(points)).max() < 0.05


def test_joint_boundary_and_regions_are_those_of_the_model(drawn, wave):
    model, X, _ = wave
    drawn.plot(show_regions=True)
    axes = [np.linspace(*limits, 120) for limits in drawn.limits]
    pixels = np.stack(np.meshgrid(*axes), axis=-1)
    scores = model.decision_function(pixels.reshape(-1, 2)).reshape(120, 120)
    np.testing.assert_array_equal(drawn.joint, scores)
    # The boundary runs between pixels of different answers.
    steps = [axis[1] - axis[0] for axis in axes]
    at = (vertices(drawn.joint_) - drawn.limits[:, 0]) / steps
    (left, below), (right, above) = (
        side.astype(int).T for side in (np.floor(at + 1e-6), np.ceil(at - 1e-6))
    )
    labels = model.predict(pixels.reshape(-1, 2)).reshape(120, 120)
    assert len(at) > 100
    assert (labels[below, left] != labels[above, right]).all()
    # A pixel's center is that in whose list its nearest row has the smallest rank.
    rng = np.random.default_rng(0)
    ranks = np.argsort(np.argsort(distances(drawn.centers, X), axis=1), axis=1)
    for a, b in rng.integers(0, 120, (200, 2)):
        row = distances(pixels[a, b][None], X).argmin()
        assert ranks[drawn.cells[a, b], row] == ranks[:, row].min() < INNER
    # Neighbors differ in color.
    colors = drawn.regions_.get_array()
    across = drawn.cells[:, 1:] != drawn.cells[:, :-1]
    assert (colors[:, 1:] != colors[:, :-1])[across].mean() > 0.95


def test_parts_can_be_left_out(drawn, wave):
    _, (left, right) = plt.subplots(1, 2)
    drawn.plot(
        left,
        show_rows=False,
        show_circles=False,
        show_local=False,
        show_joint=False,
        legend=False,
    )
    assert drawn.ax_ is left
    assert left.get_legend() is None
    assert (drawn.rows_, drawn.inner_, drawn.outer_, drawn.joint_) == (None, None, None, None)
    assert drawn.local_ == []
    assert len(left.collections) == 1
    drawn.plot(right)
    assert len(drawn.rows_.get_offsets()) == len(wave[1])
    assert [text.get_text() for text in right.get_legend().get_texts()] == [
        "above",
        "below",
        "center",
        "its k' = 4 nearest rows",
        "its k = 15 nearest rows",
        "local boundaries",
        "joint boundary",
    ]


def test_of_many_centers_some_are_drawn_and_the_title_says_so(wave):
    model, X, _ = wave
    n = model.n_cells_
    options = {"resolution": 20, "feature_names": ["width", "height"]}
    some = NeighborhoodDisplay.from_estimator(model, n_centers=9, n_rows=50, **options).plot()
    assert len(some.inner_.get_paths()) == len(some.outer_.get_paths()) == 9
    assert f"(drawn: 9 of the {n} centers)" in some.ax_.get_title()
    assert (some.ax_.get_xlabel(), some.ax_.get_ylabel()) == ("width", "height")
    assert len(some.rows_.get_offsets()) == 50
    assert (distances(some.rows, X).min(axis=1) == 0).all()
    again = NeighborhoodDisplay.from_estimator(model, n_centers=9, n_rows=50, **options)
    np.testing.assert_array_equal(some.numbers, again.numbers)
    np.testing.assert_array_equal(some.rows, again.rows)
    other = NeighborhoodDisplay.from_estimator(model, n_centers=9, random_state=1, **options)
    assert some.numbers.tolist() != other.numbers.tolist()
    # What is chosen is drawn as it is when all are.
    whole = NeighborhoodDisplay.from_estimator(model, **options).plot()
    np.testing.assert_array_equal(some.radii, whole.radii[some.numbers])
    assert "drawn" not in whole.ax_.get_title()


def test_of_more_than_two_hundred_centers_two_hundred_are_drawn():
    rng = np.random.default_rng(0)
    X = rng.random((900, 2))
    y = X[:, 0] > 0.5
    model = daskls.FalkSVC(6, n_assigned=3, C=1.0, gamma=1.0, random_state=0).fit(X, y)
    assert model.n_cells_ > 200
    display = NeighborhoodDisplay.from_estimator(model, resolution=10).plot()
    assert len(display.inner_.get_paths()) == 200
    assert f"(drawn: 200 of the {model.n_cells_} centers)" in display.ax_.get_title()


def test_a_window_draws_the_centers_in_it(wave):
    model, X, _ = wave
    limits = np.array([[0.5, 1.5], [0.5, 1.2]])
    display = NeighborhoodDisplay.from_estimator(model, limits=limits, resolution=20).plot()
    centers = NeighborhoodDisplay.from_estimator(model, resolution=2).centers
    inside = ((centers > limits[:, 0]) & (centers < limits[:, 1])).all(axis=1)
    assert display.numbers.tolist() == np.flatnonzero(inside).tolist()
    assert display.ax_.get_xlim() == (0.5, 1.5)
    seen = (np.abs(X - limits.mean(axis=1)) < np.diff(limits).ravel() / 2).all(axis=1)
    assert (distances(X[seen], display.rows).min(axis=1) == 0).all()
    with pytest.raises(ParameterError, match=r"none of the .* centers lies in it; widen it"):
        NeighborhoodDisplay.from_estimator(model, limits=[[9, 10], [9, 10]])


def test_the_selected_k_is_drawn():
    rng = np.random.default_rng(4)
    X = rng.random((300, 2))
    # So noisy that few neighbors mislead.
    y = (X[:, 0] > 0.5) ^ (rng.random(300) < 0.3)
    model = daskls.FalkSVC([6, 20], C=1.0, gamma=0.5, cv=3, random_state=0).fit(X, y)
    assert model.selected_["n_neighbors"] == 20
    display = NeighborhoodDisplay.from_estimator(model, resolution=5)
    assert display.counts == (10, 20)
    between = np.sort(distances(display.centers, X), axis=1)
    np.testing.assert_allclose(display.radii, between[:, [9, 19]])


def test_k_is_at_most_all_rows(wave):
    _, X, y = wave
    few = np.r_[:20, 100:120]
    model = daskls.FalkSVC(1000, C=1.0, selection=None, random_state=0).fit(X[few], y[few])
    display = NeighborhoodDisplay.from_estimator(model, resolution=5)
    assert display.counts == (20, 40)
    between = np.sort(distances(display.centers, X[few]), axis=1)
    np.testing.assert_allclose(display.radii, between[:, [19, 39]])


def test_three_classes_have_boundaries_between_winners():
    X = np.random.default_rng(0).random((400, 2))
    y = np.digitize(X[:, 0], [0.33, 0.67])
    model = daskls.FalkSVC(60, C=100.0, gamma=5.0, random_state=0).fit(X, y)
    display = NeighborhoodDisplay.from_estimator(model, resolution=200).plot()
    assert set(np.unique(display.joint)) == {0, 1, 2}
    points = vertices(display.joint_)
    points = points[(points[:, 1] > 0.1) & (points[:, 1] < 0.9)]
    apart = np.abs(points[:, :1] - [0.33, 0.67]).min(axis=1)
    assert np.median(apart) < 0.03
    near = [np.abs(vertices(local)[:, :1] - [0.33, 0.67]).min(axis=1) for local in display.local_]
    assert np.median(np.concatenate(near)) < 0.05


def test_what_cannot_be_drawn_is_refused(wave):
    model, X, y = wave

    def refused(estimator, match, error=ParameterError, **options):
        with pytest.raises(error, match=match):
            NeighborhoodDisplay.from_estimator(estimator, **options)

    refused(SVC().fit(X, y), "is a SVC; .* FalkSVC")
    refused(
        daskls.VoronoiSVC(100, loss="hinge", cv=2, C=1, gamma=1).fit(X, y),
        "VoronoiSVC, .* for a FalkSVC only",
    )
    refused(daskls.KNNSVC(5).fit(X, y), "KNNSVC, which has no centers")
    refused(daskls.FalkSVC(), "not fitted", NotFittedError)
    wide = np.column_stack([X, X[:, 0]])
    refused(daskls.FalkSVC(20, selection=None).fit(wide, y), "3 features; .* two features")
    nearest = daskls.FalkSVC(20, selection=None, assign="center").fit(X, y)
    refused(nearest, "assign='center' .* train with assign=\"point\"")
    powers = daskls.FalkSVC(20, selection=None, kernel="poly", gamma=1.0, coef0=1.0).fit(X, y)
    refused(powers, 'kernel="poly"')
    refused(model, "n_centers is 0; it must be at least 1", n_centers=0)
    refused(model, "n_rows is 0; it must be at least 1", n_rows=0)
    refused(model, "resolution is 1; it must be at least 2", resolution=1)


def test_a_store_without_its_centers_is_refused(wave, tmp_path):
    wave[0].save(tmp_path / "model")
    copy = daskls.load(tmp_path / "model")
    assert len(NeighborhoodDisplay.from_estimator(copy, resolution=5).centers) == copy.n_cells_
    shutil.rmtree(tmp_path / "model" / "centers")
    with pytest.raises(StoreError, match="lacks its centers"):
        NeighborhoodDisplay.from_estimator(copy, resolution=5)
