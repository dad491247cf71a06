"""Numbers as targets: against kernel ridge and brute force, in y's units, and what is refused."""

import dask.array as da
import naive
import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from support import few, path_of

import daskls
from daskls import DataError, RandomChunkSVR, VoronoiSVC, VoronoiSVR
from daskls.datasets import convert
from daskls.records import KernelSpec
from daskls.scaling.grid import Trial, TrialCell
from daskls.solvers.squares.aims import NumberAim
from daskls.store.dataset import DatasetWriter

RNG = np.random.default_rng(0)
X = RNG.random((500, 3))
Y = 1e4 + 300 * (np.sin(6 * X[:, 0]) + X[:, 1] ** 2 + RNG.normal(0, 0.05, 500))
TWO = np.stack([Y, 1e-3 * np.cos(3 * X[:, 1])], axis=1)
Q = RNG.random((80, 3))
GIVEN = {"kernel": "rbf", "C": 50.0, "gamma": 3.0, "feature_scale": None, "random_state": 0}


@pytest.mark.parametrize("kernel", few(["rbf", "laplacian", "poly"], 2))
@pytest.mark.parametrize("y", [Y, TWO], ids=["one", "two"])
def test_a_cell_is_kernel_ridge_around_the_center(kernel, y):
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 500)
    model = VoronoiSVR(cell_size=500, **{**GIVEN, "kernel": kernel}, fit_intercept=False)
    found = model.fit(X, y, weights).predict(Q)
    center = np.average(y, axis=0, weights=weights)
    # Inner products are of rows around their mean.
    mean = X.mean(axis=0) if kernel == "poly" else 0.0
    ridge = KernelRidge(alpha=1 / 100, kernel=kernel, gamma=3.0, degree=3, coef0=0.0)
    expected = ridge.fit(X - mean, y - center, weights).predict(Q - mean) + center
    assert found.shape == expected.shape
    # Systems of inner products are solved in float32 up to larger ridges than those of distances:
    # of 24 draws, on two processors, the worst differed by 1.7e-3.
    least = 5e-3 if kernel == "poly" else 1e-4
    assert (np.abs(found - expected) <= least * y.std(axis=0)).all()


def brute(rows, y, weights, offset, keep, at):
    """Return values at rows of the model of others, by a bordered system in float64."""
    K = np.exp(-0.3 * ((rows[:, None].astype(float) - rows) ** 2).sum(axis=2))
    own = K[np.ix_(keep, keep)], y[keep], 0.1 / weights[keep]
    alpha, b = naive.bordered_ridge(*own, offset)
    return K[np.ix_(at, keep)] @ alpha + b


@pytest.mark.parametrize("offset", [False, True])
def test_a_row_is_left_out_and_its_copies_stay(offset):
    rng = np.random.default_rng(1)
    distinct = rng.normal(size=(40, 2)).astype("f4")
    rows = distinct[np.r_[np.arange(40), [3, 3, 3, 17, 17]]]
    y, weights = rng.normal(size=(45, 2)), rng.uniform(0.5, 2.0, 45)
    everyone = np.arange(45)
    expected = [brute(rows, y, weights, offset, np.delete(everyone, i), [i])[0] for i in everyone]
    cell = TrialCell(rows, y, weights, NumberAim(2))
    ((squared, wrong, weight),) = cell.errors([Trial("rbf", 0.3, 0.1, True, offset)])
    missed = ((y - np.array(expected)) ** 2).mean(axis=1)
    np.testing.assert_allclose(squared, (weights * missed).sum(), rtol=1e-4)
    assert wrong == squared
    assert weight == pytest.approx(weights.sum())


def test_the_error_of_a_cell_is_that_of_rows_left_out():
    few_rows, y = X[:60], Y[:60]
    model = VoronoiSVR(cell_size=60, **GIVEN, fit_intercept=False).fit(few_rows, y)
    entered = (y - y.mean()) / y.std()
    K = KernelRidge(alpha=1 / 100, kernel="rbf", gamma=3.0)
    everyone = np.arange(60)
    missed = []
    for i in everyone:
        others = everyone != i
        found = K.fit(few_rows[others], entered[others]).predict(few_rows[i : i + 1])
        missed.append((found[0] - entered[i]) ** 2)
    np.testing.assert_allclose(model.fit_report_.validation_error, np.mean(missed), rtol=1e-3)


@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e60])
def test_units_of_y_do_not_matter(unit):
    plain = VoronoiSVR(cell_size=200, random_state=0).fit(X, Y).predict(Q)
    found = VoronoiSVR(cell_size=200, random_state=0).fit(X, unit * Y).predict(Q)
    np.testing.assert_allclose(found, unit * plain, rtol=1e-6)


def test_columns_are_answered_as_they_are_alone():
    both = VoronoiSVR(cell_size=200, **GIVEN).fit(X, TWO)
    assert both.predict(Q).shape == (80, 2)
    for column in range(2):
        alone = VoronoiSVR(cell_size=200, **GIVEN).fit(X, TWO[:, column]).predict(Q)
        np.testing.assert_allclose(both.predict(Q)[:, column], alone, rtol=1e-9)
    assert both.score(X, TWO) > 0.95


@pytest.mark.parametrize("kind", [VoronoiSVR, RandomChunkSVR])
def test_a_constant_answers_the_constant(kind):
    model = kind(100, random_state=0).fit(X, np.full(500, 7.25))
    assert set(model.predict(Q)) == {7.25}
    # Beside a column that varies too.
    y = np.stack([np.full(500, 0.1), Y], axis=1)
    assert np.allclose(kind(100, random_state=0).fit(X, y).predict(Q)[:, 0], 0.1, rtol=1e-12)


def test_cells_of_one_number_answer_it():
    y = np.where(X[:, 0] > 0.5, 3.0, -2.0)
    model = VoronoiSVR(60, **GIVEN).fit(X, y)
    report = model.fit_report_
    assert (report.n_trained == 0).any()
    assert (report.n_classes == 0).all()
    constant = model._reader.read_cell(int(np.flatnonzero(report.n_trained == 0)[0]))
    assert constant.intercepts.shape == (1,)
    assert len(constant.rows) == 0
    assert np.median(np.abs(model.predict(X) - y)) == 0.0


def test_the_mean_of_partitions_is_not_clipped():
    models = [VoronoiSVR(100, n_partitions=n, **GIVEN).fit(X, Y) for n in (1, 3)]
    assert models[1].score(X, Y) > 0.95
    assert models[1].n_cells_ > models[0].n_cells_


def test_answers_come_in_kind(tmp_path):
    model = VoronoiSVR(200, random_state=0).fit(da.from_array(X, chunks=(100, 3)), Y)
    lazy = model.predict(da.from_array(Q, chunks=(30, 3)))
    assert isinstance(lazy, da.Array)
    assert lazy.dtype == np.float64
    assert lazy.compute().tobytes() == model.predict(Q).tobytes()
    wide = VoronoiSVR(200, **GIVEN).fit(X, da.from_array(TWO, chunks=(77, 1)))
    lazy = wide.predict(da.from_array(Q, chunks=(30, 3)))
    assert lazy.shape == (80, 2)
    assert lazy.compute().tobytes() == wide.predict(Q).tobytes()
    wide.predict_to_zarr(da.from_array(Q, chunks=(30, 3)), tmp_path / "out")
    assert da.from_zarr(str(tmp_path / "out")).compute().tobytes() == wide.predict(Q).tobytes()


def test_data_sets_and_tables_of_numbers(tmp_path):
    with DatasetWriter(tmp_path / "data", 3, "float64", y_dtype="float64") as writer:
        writer.append(X, Y)
    stored = VoronoiSVR(200, random_state=0).fit(str(tmp_path / "data"))
    plain = VoronoiSVR(200, random_state=0).fit(X, Y)
    assert stored.predict(Q).tobytes() == plain.predict(Q).tobytes()
    assert stored.score(str(tmp_path / "data")) == plain.score(X, Y)
    lines = [
        f"{a!r},{b!r},{c!r},{y!r}" for (a, b, c), y in zip(X.tolist(), Y.tolist(), strict=True)
    ]
    table = tmp_path / "rows.csv"
    table.write_text("\n".join(["a,b,c,price", *lines]))
    model = VoronoiSVR(200, random_state=0).fit(str(table), "price")
    np.testing.assert_allclose(model.predict(str(table)), plain.predict(X), rtol=1e-9)
    assert model.score(str(table)) == pytest.approx(plain.score(X, Y))
    made = convert(table, tmp_path / "made.zarr", label="price", task="regression")
    assert made.classes is None
    assert np.array_equal(da.from_zarr(made.y).compute(), Y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.where(Y.mean() < Y, "high", "low"), r"y holds <U4, but a regressor needs numbers"),
        (Y.mean() < Y, r"y holds booleans, but a regressor needs numbers.*VoronoiSVC"),
        (np.where(np.arange(500) == 9, np.nan, Y), r"NaN or infinity, first in row 9"),
        (
            np.where(np.arange(500) == 9, 1e300, Y),
            r"y holds 1e\+300 in row 9; numbers up to",
        ),
        (Y[:-1], r"500, 499|inconsistent"),
        (Y[None, :, None], r"y has shape \(1, 500, 1\)"),
        (1j * Y, r"a regressor needs numbers"),
    ],
)
def test_what_is_no_number_is_refused(y, message, tmp_path):
    store = tmp_path / "m"
    for given in (y, da.from_array(y, chunks=-1)):
        if given is not y and ("shape" in message or "inconsistent" in message):
            continue
        with pytest.raises(DataError, match=message):
            VoronoiSVR(200, store=store).fit(X, given)
    VoronoiSVR(200, store=store, **GIVEN).fit(X, Y)


def test_a_model_says_what_its_numbers_were(tmp_path):
    model = VoronoiSVR(200, store=tmp_path / "m", **GIVEN).fit(X, Y)
    other = daskls.load(tmp_path / "m")
    assert type(other) is VoronoiSVR
    assert other.predict(Q).tobytes() == model.predict(Q).tobytes()
    assert not hasattr(other, "classes_")
    assert not hasattr(other, "decision_function")
    assert not hasattr(other, "predict_proba")
    assert path_of(model) == tmp_path / "m"


def test_a_classifier_names_the_regressor():
    with pytest.raises(DataError, match=r"continuous.*VoronoiSVR"):
        VoronoiSVC().fit(X, da.from_array(Y, chunks=100))


def test_kernels_of_a_name_are_the_registry_s():
    model = VoronoiSVR(cell_size=500, random_state=0).fit(X, Y)
    chosen = model._reader.resolved.spec
    assert isinstance(model._reader.read_cell(0).kernel, KernelSpec)
    assert chosen.target == "numbers"
    assert chosen.kernel in ("rbf", "exponential", "laplacian")
