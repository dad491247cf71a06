"""Names and scales of features; labels of any kind, weights of rows and classes."""

import datetime
import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import zarr
from small import CLASSIFIERS, ENTRIES, small
from support import assert_same_model, checkers, few, model_bits, small_svc

import daskls
from daskls import DataError
from daskls.store.dataset import DatasetWriter

N = 300
NAMES, OTHER_ORDER = ["width", "height", "depth"], ["height", "width", "depth"]
NAMED, OF_NAMED = checkers(N, d=3)
UNNAMED = "X does not have valid feature names, but VoronoiSVC was fitted with feature names"


def frame(names=NAMES, rows=NAMED):
    return pd.DataFrame(rows, columns=names)


@pytest.fixture
def hold(tmp_path):
    """Return a function that holds the rows under given names."""

    def held(kind, names=NAMES):
        if kind != "data set":
            return frame(names) if kind == "frame" else pa.table(frame(names))
        path = tmp_path / f"{'-'.join(names)}.zarr"
        with DatasetWriter(path, 3, "f8", feature_names=names, overwrite=True) as writer:
            writer.append(NAMED, OF_NAMED.astype("i4"))
        return str(path)

    return held


ORDER = (
    r"should match .*\nFeature names must be in the same order as .*\nColumn 0 is 'height', was 'wi"
)
FOREIGN = r"unseen at fit time:\n- breadth\nFeature names seen at .* now missing:\n- width\n"


@pytest.mark.parametrize(
    ("fitted", "asked"), [("frame", "arrow"), ("data set", "frame"), ("frame", "data set")]
)
def test_other_names_and_another_order_are_refused(fitted, asked, hold):
    model = small_svc().fit(hold(fitted), OF_NAMED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(hold(asked))
        for names, message in ((OTHER_ORDER, ORDER), (["breadth", "height", "depth"], FOREIGN)):
            rows = hold(asked, names)
            for ask in (model.predict, model.decision_function, model.indecision):
                with pytest.raises(DataError, match=message):
                    ask(rows)
            with pytest.raises(DataError, match=message):
                model.score(rows, OF_NAMED)


def test_names_on_one_side_only_are_a_warning(hold):
    rows = da.from_array(NAMED, chunks=(100, 3))
    named, plain = small_svc().fit(frame(), OF_NAMED), small_svc().fit(rows, OF_NAMED)
    with pytest.warns(UserWarning, match=UNNAMED) as caught:
        labels = np.asarray(named.predict(rows))
    assert [warning.filename for warning in caught] == [__file__]
    assert not hasattr(plain, "feature_names_in_")
    for kind in ("frame", "data set"):
        message = "X has feature names, but VoronoiSVC was fitted without feature names"
        with pytest.warns(UserWarning, match=message):
            answer = plain.predict(hold(kind, OTHER_ORDER))
        np.testing.assert_array_equal(np.asarray(answer), labels)


def test_a_failed_refit_leaves_the_model_as_it_was():
    model = small_svc().fit(frame(), OF_NAMED)
    expected = model.predict(frame())
    with pytest.raises(DataError, match="only one class"):
        model.fit(frame(["a", "b"], NAMED[:, :2]), np.zeros(N))
    assert (model.n_features_in_, model.feature_names_in_.tolist()) == (3, NAMES)
    np.testing.assert_array_equal(model.predict(frame()), expected)


@pytest.mark.parametrize("name", few(ENTRIES, 3))
def test_every_method_keeps_names(name, hold, tmp_path):
    small(name, store=tmp_path / "m").fit(hold("data set"))
    model = daskls.load(tmp_path / "m")
    assert model.feature_names_in_.tolist() == NAMES
    with pytest.raises(DataError, match="same order"):
        model.predict(frame(OTHER_ORDER))


THREE, OF_THREE = checkers(600, n_classes=3)
UNITS = np.array([1e3, 1e-3])
SCALED = ["VoronoiSVC", "RandomChunkSVC", "FalkSVC", "KNNSVC", "KernelKNNClassifier"]
Q = np.random.default_rng(5).random((300, 2))


def scaled(name, scale, rows=THREE):
    return small(name, feature_scale=scale).fit(rows, OF_THREE)


@pytest.mark.parametrize("name", SCALED)
def test_a_scale_is_that_of_rows_scaled_beforehand(name):
    model, other = scaled(name, "spread"), scaled(name, "spread", THREE * UNITS)
    assert model.predict(Q).tolist() == other.predict(Q * UNITS).tolist()
    np.testing.assert_allclose(other.feature_scale_ * UNITS, model.feature_scale_, rtol=1e-12)
    factors = [0.5, 4.0]
    model, beforehand = scaled(name, factors), scaled(name, None, THREE * factors)
    assert (model.predict(Q) == beforehand.predict(Q * factors)).mean() > 0.99
    np.testing.assert_array_equal(model.feature_scale_, factors)
    np.testing.assert_array_equal(beforehand.feature_scale_, [1.0, 1.0])
    # A feature of factor 0 is as if it were not there.
    noise = np.random.default_rng(0).normal(size=len(THREE)) * 100
    model = scaled(name, [1, 0, 1], np.insert(THREE, 1, noise, axis=1))
    found = model.decision_function(np.insert(Q, 1, 1e17, axis=1))
    np.testing.assert_array_equal(found, scaled(name, [1, 1]).decision_function(Q))


def test_rare_values_and_a_constant_have_a_spread():
    # An indicator in another unit, and a count that is 0 in nearly all rows.
    rare, count = np.zeros((2, len(THREE)))
    rare[::300] = 5
    count[::300], count[1::300] = 1, 2
    rows = np.c_[THREE, rare, count, np.full(len(THREE), 9)]
    model = scaled("VoronoiSVC", "spread", rows)
    expected = [1 / 5, 1 / (3.29 * count.std()), 1.0]
    np.testing.assert_allclose(model.feature_scale_[2:], expected)
    plain = scaled("VoronoiSVC", "spread")
    queries = np.c_[Q, np.zeros((len(Q), 2)), np.full(len(Q), 9)]
    assert (model.predict(queries) == plain.predict(Q)).mean() > 0.97
    # Offsets are taken off before rows become float32.
    model = scaled("VoronoiSVC", "spread", THREE + 1e7)
    assert (model.predict(Q + 1e7) == plain.predict(Q)).mean() > 0.99
    # Queries far away are answered.
    assert np.isfinite(model.decision_function([[1e17, 0.5], [-1e17, 0.5]])).all()


X, Y = checkers(N)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_balanced_is_the_dict_of_its_weights(n_classes):
    X, y = checkers(N, n_classes=n_classes)
    keep = (y > 0) | (np.arange(N) % 5 == 0)
    X, y = X[keep], y[keep]
    weights = {c: len(y) / (n_classes * n) for c, n in enumerate(np.bincount(y))}
    by_row = np.array([weights[c] for c in y])
    a, b, c, d = (
        {name: bits for name, bits in model_bits(own).items() if name != "fingerprint"}
        for own in (
            *(small_svc(class_weight=own).fit(X, y) for own in ("balanced", weights)),
            *(small_svc().fit(X, y, own) for own in (by_row, None)),
        )
    )
    assert_same_model(a, b)
    assert_same_model(a, c)
    assert any(a[name] != d[name] for name in a)


def test_a_class_of_the_data_set_that_has_no_row(tmp_path):
    X, Y = checkers(N, n_classes=3)
    with DatasetWriter(tmp_path / "d", 2, "f8", classes=["a", "b", "c", "d"]) as writer:
        writer.append(X, np.array([0, 2, 3])[Y])
    model = small_svc().fit(tmp_path / "d")
    assert model.classes_.tolist() == ["a", "c", "d"]
    np.testing.assert_array_equal(
        model.predict(X), np.array(["a", "c", "d"])[small_svc().fit(X, Y).predict(X)]
    )


def two(first, second, dtype=None):
    """Return labels of two classes; by default as objects."""
    values = np.empty(2, object)
    values[:] = first, second
    return (values if dtype is None else values.astype(dtype))[Y]


TAKEN = {
    "int64": Y,
    "beyond int64": Y.astype("u8") + np.uint64(2**63),
    "bool": Y.astype(bool),
    "float64": Y.astype(float),
    "numbers out of order": two(-1, 10, "i8"),
    "text": two("left", "right", "U5"),
    "text of NumPy 2": two("left", "right", np.dtypes.StringDType()),
}
# Labels, and what an error says of them: by the kind of the array, or by its first such row.
REFUSED = {
    "bytes": (two(b"l", b"r", "S1"), r"y holds bytes \(\|S1\); .*np\.char\.decode"),
    "dates": (
        two("2020-01-01", "2020-01-02", "M8[D]"),
        r"y holds dates \(datetime64\[D\]\); .*astype\(str\)",
    ),
    "complex": (Y * 1j, r"y holds complex numbers \(complex128\); .*np\.unique"),
    "date objects": (two(datetime.date(2020, 1, 1), 0), r"y holds .*\(date\) in row ROW; labels"),
    "None": (two(None, "right"), r"y holds None \(NoneType\) in row ROW; labels are .*Remove"),
    "mixed": (two(7, "right"), r"y holds 7 \(int\) in row ROW; labels are .*all of one kind"),
    "numbers as objects": (two(3, 4), r"y holds \d \(int\) in row 0; .*astype\(int\)"),
}
FIRST = int(np.flatnonzero(Y == 0)[0])


def held(y):
    return {"numpy": y, "dask": da.from_array(y, chunks=90), "list": list(y)}


@pytest.fixture(scope="module")
def plain():
    """Return a model of the same rows, whose labels are 0 and 1."""
    return small_svc().fit(X, Y)


@pytest.mark.always
@pytest.mark.parametrize("y", TAKEN.values(), ids=TAKEN)
def test_taken_alike_and_kept(y, plain, tmp_path):
    expected = small_svc().fit(X, y)
    assert expected.classes_.tolist() == np.unique(y).tolist()
    np.testing.assert_array_equal(expected.decision_function(X), plain.decision_function(X))
    assert expected.predict(X).tolist() == expected.classes_[plain.predict(X)].tolist()
    lazy = small_svc(store=tmp_path / "m").fit(X, held(y)["dask"])
    assert_same_model(lazy, expected)
    loaded = daskls.load(tmp_path / "m")
    for model in (lazy, loaded):
        assert model.classes_.dtype == expected.classes_.dtype
        assert model.predict(X).tolist() == expected.predict(X).tolist()
        assert {model.score(X, own) for own in held(y).values()} == {expected.score(X, y)}


@pytest.mark.always
@pytest.mark.parametrize("name", REFUSED)
def test_refused_alike(name, plain):
    y, message = REFUSED[name]
    message = message.replace("ROW", str(FIRST))
    for kind, own in held(y).items():
        # A list of numbers is something else.
        if (name, kind) == ("numbers as objects", "list"):
            continue
        if kind == "list" and y.dtype.kind == "M":
            message = r"y holds (np\.)?datetime64.*|y holds dates"
        for call in (small_svc().fit, plain.score):
            with pytest.raises(DataError, match=message):
                call(X, own)


GIVEN = {"X": X, "y": Y, "sample_weight": np.ones(N)}
BAD = [
    ("sample_weight", 2.0, r"sample_weight is 2\.0, a single value; give one number per row"),
    ("sample_weight", np.full(N, "1"), "sample_weight has dtype <U1, but weights are numbers"),
    ("sample_weight", da.full(N, "1", chunks=90), "sample_weight has dtype <U1, but weights"),
    ("sample_weight", da.asarray(2.0), r"sample_weight must have 1 dimension, got shape \(\)"),
    *((name, np.ma.MaskedArray(own, np.zeros(own.shape, bool)), rf"{name} is a masked.*\.filled\(v")
      for name, own in GIVEN.items()),
]  # fmt: skip


@pytest.mark.always
@pytest.mark.parametrize(("name", "value", "message"), BAD, ids=str)
def test_weights_and_masked_arrays_that_are_refused(name, value, message, plain):
    for call in (small_svc().fit, plain.score):
        with pytest.raises(DataError, match=message):
            call(**{**GIVEN, name: value})


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_predictions_of_no_rows(name, tmp_path):
    rows, y = checkers(N, n_classes=3)
    model = small(name).fit(rows, np.array(["a", "b", "c"])[y])
    with pytest.raises(DataError, match=r"Found array with 0 sample\(s\) \(shape=\(0, 2\)\)"):
        model.predict(rows[:0])
    some = np.asarray(model.decision_function(rows[:1]))
    none = zarr.create_array(tmp_path / "X", shape=(0, 2), chunks=(1, 2), dtype="f8")
    labels, scores = model.predict(none), model.decision_function(none)
    assert labels.shape == labels.compute().shape == (0,)
    assert labels.dtype == labels.compute().dtype == model.classes_.dtype
    assert scores.shape == scores.compute().shape == (0, *some.shape[1:])
    assert scores.dtype == scores.compute().dtype == np.float64
    model.predict_to_zarr(none, tmp_path / "out")
    assert zarr.open_array(tmp_path / "out").shape == (0,)
