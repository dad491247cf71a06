import inspect
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, truncnorm

from daskls import datasets
from daskls.datasets import GENERATORS, bayes_accuracy, best_r2, write
from daskls.datasets._base import GROUP_ROWS, SetId, structure_rng
from daskls.datasets.clusters import _ndcc_clusters
from daskls.datasets.gaussians import _directions
from daskls.errors import ParameterError, StoreError
from daskls.store.dataset import open_dataset

NAMES = sorted(GENERATORS)
OF_NUMBERS = [name for name in NAMES if GENERATORS[name].best_r2]
N = GROUP_ROWS + 500


def make(name, n_rows, **params):
    return getattr(datasets, f"make_{name}")(n_rows, **params)


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_a_prefix_of_more_rows(name):
    X, y = make(name, 2 * N, random_state=3)
    X_less, y_less = make(name, N, random_state=3)
    np.testing.assert_array_equal(X_less, X[:N])
    np.testing.assert_array_equal(y_less, y[:N])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("first", [0, 1, GROUP_ROWS - 1, GROUP_ROWS, GROUP_ROWS + 1])
def test_any_range_is_the_slice_of_the_whole(name, first):
    X, y = make(name, 2 * GROUP_ROWS + 2)
    for n_rows in (0, 1, 2, GROUP_ROWS + 1):
        X_part, y_part = GENERATORS[name].rows(first, n_rows, 0)
        np.testing.assert_array_equal(X_part, X[first : first + n_rows])
        np.testing.assert_array_equal(y_part, y[first : first + n_rows])


@pytest.mark.parametrize("name", NAMES)
def test_types_and_the_record_agree(name):
    X, y = make(name, 10)
    assert X.shape == (10, GENERATORS[name].n_features)
    assert X.flags.c_contiguous
    if name in OF_NUMBERS:
        assert (X.dtype, y.dtype) == (np.float32, np.float64)
    else:
        assert (X.dtype, y.dtype) == (np.float32, np.int32)
        assert set(y.tolist()) <= {-1, 1}
    function = getattr(datasets, f"make_{name}")
    defaults = {
        p.name: p.default
        for p in inspect.signature(function).parameters.values()
        if p.kind is p.KEYWORD_ONLY and p.name != "random_state"
    }
    assert defaults == GENERATORS[name].params
    best = GENERATORS[name].best_r2 or GENERATORS[name].bayes_accuracy
    best = inspect.signature(best).parameters
    assert {p.name: p.default for p in best.values()} == defaults


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_chooses_the_rows(name):
    X, _ = make(name, 50, random_state=1)
    other, _ = make(name, 50, random_state=2)
    assert not np.isin(X[:, 0], other[:, 0]).any()


@pytest.mark.parametrize("name", NAMES)
def test_groups_do_not_repeat(name):
    X, _ = make(name, 3 * GROUP_ROWS)
    assert len(np.unique(X, axis=0)) > 0.999 * len(X)


def test_structure_has_a_stream_of_its_own():
    shared = structure_rng(0, SetId.NDCC).random(4)
    for group in range(3):
        assert not np.isin(shared, np.random.default_rng([0, 6, group]).random(4)).any()


# Each oracle is the best rule, written down from the set's definition alone: true where +1.


def checkerboard_oracle(X, n_cells_side=4, flip=0.055):
    edges = np.linspace(0, 1, n_cells_side + 1)[1:-1]
    squares = np.searchsorted(edges, X[:, 0]) + np.searchsorted(edges, X[:, 1])
    return (squares % 2 == 0) == (flip < 0.5)


def xor_oracle(X, flip=0.0):
    return X[:, 0] * X[:, 1] > 0


def curve_density(X, curve, noise):
    total = np.zeros(len(X))
    for point in curve:
        total += np.exp(-((X - point) ** 2).sum(1) / (2 * noise**2))
    return total / (len(curve) * 2 * np.pi * noise**2)


def two_spirals_oracle(X, n_turns=3.0, noise=0.0555):
    radius = np.sqrt((np.arange(700) + 0.5) / 700)
    curve = radius * np.exp(2j * np.pi * n_turns * radius)
    arm = np.column_stack([curve.real, curve.imag])
    X = X.astype(float)
    return curve_density(X, arm, noise) > curve_density(X, -arm, noise)


def swiss_roll_oracle(X, n_turns=1.5, noise=0.02):
    angle = np.linspace(1.5 * np.pi, (1.5 + 2 * n_turns) * np.pi, 700)
    curve = 0.9 * angle / angle[-1] * np.exp(1j * angle)
    roll = np.column_stack([curve.real, curve.imag])
    cloud = np.where(np.abs(X).max(1) <= 1, 0.25, 0.0)
    return curve_density(X.astype(float), roll, noise) > cloud


def two_gaussians_logs(X, d=2):
    sd = 8**-0.5
    wide = truncnorm(-2, 2).logpdf(X).sum(1) + np.log(0.6)
    narrow = truncnorm(-2 / sd, 2 / sd, scale=sd).logpdf(X[:, 1:]).sum(1) + np.log(0.4)
    return wide, narrow + truncnorm(-3 / sd, 1 / sd, loc=1, scale=sd).logpdf(X[:, 0])


def two_gaussians_oracle(X, d=2):
    wide, narrow = two_gaussians_logs(X, d)
    return wide > narrow


def ndcc_oracle(X, **params):
    return datasets.ndcc_posterior(X, **params) > 0.5


def noisy28_oracle(X, flip=0.1, noise=0.3):
    X = X.astype(float)
    return X[:, 0] * X[:, 1] > -np.sin(2 * X[:, 2])


def rare_hidden(X):
    """Return the hidden features, found anew from directions that every row shares."""
    return X.astype(float) @ _directions(X.shape[1])


def rare_oracle(X, d=631, share=0.02, shift=1.5, noise=0.1):
    hidden = rare_hidden(X)
    moved = np.where(hidden[:, 1] * hidden[:, 2] * hidden[:, 3] > 0, 1, -1) * hidden[:, 0]
    # Two normal densities and their shares.
    logs = -((moved - shift) ** 2) / 2 + moved**2 / 2
    return logs + np.log(share / (1 - share)) > 0


CASES = [
    ("checkerboard", {}),
    ("checkerboard", {"n_cells_side": 3, "flip": 0.2}),
    ("checkerboard", {"flip": 0.9}),
    ("ndcc", {}),
    ("ndcc", {"d": 3, "n_cubes": 2, "spread": 0.5, "structure_seed": 4}),
    ("noisy28", {}),
    ("noisy28", {"flip": 0.25, "noise": 1.0}),
    ("rare", {"d": 20}),
    ("rare", {"d": 8, "share": 0.3, "shift": 1.0, "noise": 2.0}),
    ("swiss_roll", {}),
    ("swiss_roll", {"n_turns": 1.0, "noise": 0.05}),
    ("two_gaussians", {"d": 1}),
    ("two_gaussians", {}),
    ("two_gaussians", {"d": 4}),
    ("two_gaussians", {"d": 8}),
    ("two_spirals", {}),
    ("two_spirals", {"n_turns": 2.0, "noise": 0.1}),
    ("xor", {}),
    ("xor", {"flip": 0.3}),
]


@pytest.mark.parametrize(("name", "params"), CASES)
def test_the_bayes_accuracy_is_that_of_the_best_rule(name, params):
    n_rows = 20_000
    X, y = make(name, n_rows, random_state=11, **params)
    measured = (globals()[f"{name}_oracle"](X, **params) == (y > 0)).mean()
    expected = bayes_accuracy(name, **params)
    error = (expected * (1 - expected) / n_rows) ** 0.5
    assert abs(measured - expected) <= 3.5 * error + 1e-9


def test_the_best_product_of_recalls_is_that_of_the_halfway_threshold():
    X, y = make("rare", 60_000, d=12, random_state=5)
    hidden = rare_hidden(X)
    moved = np.sign(hidden[:, 1:4].prod(axis=1)) * hidden[:, 0]
    # Over all thresholds none is better, within its error.
    products = [
        np.mean(moved[y == 1] > t) * np.mean(moved[y == -1] <= t) for t in np.linspace(-1, 3, 81)
    ]
    assert max(products) == pytest.approx(datasets.rare_best_product(), abs=0.03)
    assert 0.018 < np.mean(y == 1) < 0.022


# The functions in scikit-learn's words.


def friedman1_oracle(X, d=10, noise=1.0):
    x = X.astype(float).T
    return 10 * np.sin(np.pi * x[0] * x[1]) + 20 * (x[2] - 0.5) ** 2 + 10 * x[3] + 5 * x[4]


def friedman2_oracle(X, noise=125.0):
    x = X.astype(float).T
    return (x[0] ** 2 + (x[1] * x[2] - 1 / (x[1] * x[3])) ** 2) ** 0.5


def friedman3_oracle(X, noise=0.1):
    x = X.astype(float).T
    return np.arctan((x[1] * x[2] - 1 / (x[1] * x[3])) / x[0])


@pytest.mark.parametrize(
    ("name", "params"),
    [
        *((name, {}) for name in OF_NUMBERS),
        ("friedman1", {"d": 7, "noise": 3.0}),
        ("friedman2", {"noise": 0.0}),
        ("friedman3", {"noise": 0.5}),
    ],
)
def test_the_best_r2_is_that_of_the_function(name, params):
    n_rows = 100_000
    X, y = make(name, n_rows, random_state=11, **params)
    noise = y - globals()[f"{name}_oracle"](X, **params)
    sd = params.get("noise", GENERATORS[name].params["noise"])
    assert noise.std() == pytest.approx(sd, rel=0.01, abs=1e-9)
    assert abs(noise.mean()) <= 3.5 * sd / n_rows**0.5 + 1e-9
    assert best_r2(name, **params) == pytest.approx(1 - noise.var() / y.var(), abs=2e-3)


@pytest.mark.parametrize("d", [1, 2, 3, 6, 16])
def test_the_risk_of_two_gaussians_agrees_with_its_posterior(d):
    # The mean of the smaller posterior has a far smaller error than counted mistakes.
    X, _ = make("two_gaussians", 40_000, d=d, random_state=29)
    wide, narrow = two_gaussians_logs(X.astype(float))
    smaller = 1 / (1 + np.exp(np.abs(wide - narrow)))
    error = smaller.std() / 200
    assert abs(smaller.mean() - datasets.two_gaussians_bayes_risk(d)) <= 3.5 * error


def test_the_risk_of_two_gaussians_in_the_plane_is_exact():
    # A plain two-dimensional sum over the box, with no use of the ball.
    n = 2000
    x = -2 + 4 * (np.arange(n) + 0.5) / n
    sd = 8**-0.5
    first, other = (
        truncnorm(-3 / sd, 1 / sd, 1, sd).pdf(x),
        truncnorm(-2 / sd, 2 / sd, 0, sd).pdf(x),
    )
    wide = truncnorm(-2, 2).pdf(x)
    both = np.minimum(0.6 * np.outer(wide, wide), 0.4 * np.outer(first, other))
    risk = both.sum() * (4 / n) ** 2
    assert datasets.two_gaussians_bayes_risk(2) == pytest.approx(risk, abs=2e-6)


def test_the_posterior_of_ndcc_is_that_of_its_clusters():
    clusters = _ndcc_clusters(3, 2, 0.7, 5)
    X = np.random.default_rng(0).uniform(-2, 2, (20, 3))
    densities = np.array(
        [
            multivariate_normal(center, factor @ factor.T).pdf(X)
            for center, factor in zip(clusters.centers, clusters.factors, strict=True)
        ]
    )
    expected = densities[clusters.positive].sum(0) / densities.sum(0)
    got = datasets.ndcc_posterior(X, d=3, n_cubes=2, spread=0.7, structure_seed=5)
    np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_the_clusters_of_ndcc_have_their_moments():
    clusters = _ndcc_clusters(2, 1, 0.1, 0)
    X, y = make("ndcc", 40_000, d=2, n_cubes=1, spread=0.1)
    for center, factor, positive in zip(*clusters, strict=True):
        near = np.abs(X - center).max(1) < 0.9
        np.testing.assert_allclose(np.cov(X[near].T), factor @ factor.T, atol=6e-4)
        assert set(y[near].tolist()) == {1 if positive else -1}
        assert near.mean() == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize(
    ("name", "share"), [("two_gaussians", 0.6), ("ndcc", 0.4), ("swiss_roll", 0.5)]
)
def test_class_shares(name, share):
    _, y = make(name, 40_000)
    assert (y > 0).mean() == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize(
    ("name", "paper_accuracy"),
    [("checkerboard", 0.9421), ("two_spirals", 0.8847), ("ndcc", 0.8629)],
)
def test_the_defaults_are_as_hard_as_the_papers_sets(name, paper_accuracy):
    assert 0 <= bayes_accuracy(name) - paper_accuracy < 0.015


@pytest.mark.parametrize("name", NAMES)
def test_write_gives_the_made_rows_whatever_the_chunks(tmp_path, name):
    X, y = make(name, 700, random_state=5)
    for chunk_rows in (64, 700, None):
        data = write(
            name, tmp_path / "d", 700, random_state=5, chunk_rows=chunk_rows, overwrite=True
        )
        np.testing.assert_array_equal(data.X[:], X)
        stored = data.y[:] if name in OF_NUMBERS else np.array(data.classes)[data.y[:]]
        np.testing.assert_array_equal(stored, y)


def test_write_passes_parameters_and_reports_progress(tmp_path):
    seen = []
    data = write(
        "two_gaussians",
        tmp_path / "d",
        100,
        d=5,
        chunk_rows=32,
        progress=lambda done, total: seen.append((done, total)),
    )
    np.testing.assert_array_equal(data.X[:], make("two_gaussians", 100, d=5)[0])
    assert seen == [(32, 100), (64, 100), (96, 100), (100, 100)]


def test_an_interrupted_write_leaves_nothing(tmp_path):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write("xor", tmp_path / "d", 100, chunk_rows=10, progress=stop)
    with pytest.raises(StoreError):
        open_dataset(tmp_path / "d")


def test_write_holds_one_chunk(tmp_path, monkeypatch):
    asked = []
    rows = GENERATORS["xor"].rows

    def counted(first_row, n_rows, seed, **params):
        asked.append(n_rows)
        return rows(first_row, n_rows, seed, **params)

    monkeypatch.setitem(GENERATORS, "xor", replace(GENERATORS["xor"], rows=counted))
    write("xor", tmp_path / "d", 1000, chunk_rows=128)
    assert max(asked) == 128
    assert sum(asked) == 1000


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("xor", {"flip": 1.5}, "flip must be a probability from 0 to 1, got 1.5"),
        ("checkerboard", {"n_cells_side": 0}, "n_cells_side must be at least 1"),
        ("two_spirals", {"noise": 0.0}, "noise must be at least 0.01"),
        ("swiss_roll", {"n_turns": 0}, "n_turns must be above 0"),
        ("two_gaussians", {"d": 0}, "d must be at least 1"),
        ("ndcc", {"spread": 0.0}, "spread must be above 0"),
        ("ndcc", {"d": 20}, "must be at most 65536"),
        ("noisy28", {"noise": -1.0}, "noise must be at least 0"),
        ("rare", {"d": 7}, "d must be at least 8"),
        ("rare", {"share": 1.0}, "share must be above 0 and below 1"),
        ("friedman1", {"d": 4}, "d must be at least 5"),
        ("friedman3", {"noise": -0.1}, "noise must be at least 0"),
    ],
)
def test_parameters_out_of_range(name, params, message):
    with pytest.raises(ParameterError, match=message):
        make(name, 10, **params)
    best = best_r2 if name in OF_NUMBERS else bayes_accuracy
    with pytest.raises(ParameterError, match=message):
        best(name, **params)


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, None, True])
def test_bad_seeds(seed):
    with pytest.raises(ParameterError, match="random_state must be an integer from 0"):
        make("xor", 10, random_state=seed)


def test_negative_rows(tmp_path):
    with pytest.raises(ParameterError, match="n_rows must be at least 0"):
        make("xor", -1)
    with pytest.raises(ParameterError, match="n_rows must be at least 0"):
        write("xor", tmp_path / "d", -1)


def test_unknown_names(tmp_path):
    with pytest.raises(ParameterError, match="No data set 'moons'; choose one of checkerboard"):
        bayes_accuracy("moons")
    with pytest.raises(ParameterError, match="xor has no parameter 'd'; it takes flip"):
        write("xor", tmp_path / "d", 10, d=3)
    assert not (tmp_path / "d").exists()
