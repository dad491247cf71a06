"""Labels of any kind, and weights of rows and classes: taken or refused alike."""

import datetime

import dask.array as da
import numpy as np
import pytest
import zarr
from small import CLASSIFIERS, small
from support import assert_same_model, checkers, model_bits, small_svc

import daskls
from daskls import DataError
from daskls.store.dataset import DatasetWriter

N = 300
X, Y = checkers(N)


def all_but_fingerprint(model):
    return {name: bits for name, bits in model_bits(model).items() if name != "fingerprint"}


@pytest.mark.parametrize("n_classes", [2, 3])
def test_balanced_is_the_dict_of_its_weights(n_classes):
    X, y = checkers(N, n_classes=n_classes)
    keep = (y > 0) | (np.arange(N) % 5 == 0)
    X, y = X[keep], y[keep]
    counts = np.bincount(y)
    weights = {c: len(y) / (n_classes * counts[c]) for c in range(n_classes)}
    balanced = small_svc(class_weight="balanced").fit(X, y)
    given = small_svc(class_weight=weights).fit(X, y)
    by_row = small_svc().fit(X, y, np.array([weights[c] for c in y]))
    plain = small_svc().fit(X, y)
    a, b, c, d = map(all_but_fingerprint, (balanced, given, by_row, plain))
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


def hold(kind, y, tmp_path):
    if kind == "dask":
        return da.from_array(y, chunks=90)
    if kind == "zarr":
        return zarr.create_array(tmp_path / "y", data=y, chunks=(90,))
    return list(y) if kind == "list" else y


@pytest.fixture(scope="module")
def plain():
    """Return a model of the same rows, whose labels are 0 and 1."""
    return small_svc().fit(X, Y)


@pytest.mark.parametrize("y", TAKEN.values(), ids=TAKEN)
def test_taken_alike_and_kept(y, plain, tmp_path):
    expected = small_svc().fit(X, y)
    assert expected.classes_.tolist() == np.unique(y).tolist()
    np.testing.assert_array_equal(expected.decision_function(X), plain.decision_function(X))
    assert expected.predict(X).tolist() == expected.classes_[plain.predict(X)].tolist()
    lazy = small_svc(store=tmp_path / "m").fit(X, hold("dask", y, tmp_path))
    assert_same_model(lazy, expected)
    loaded = daskls.load(tmp_path / "m")
    for model in (lazy, loaded):
        assert model.classes_.dtype == expected.classes_.dtype
        assert model.predict(X).tolist() == expected.predict(X).tolist()
        for kind in ("numpy", "dask", "list"):
            assert model.score(X, hold(kind, y, tmp_path)) == expected.score(X, y)


# A list of numbers, or of rows, is something else.
HELD = [
    (name, kind)
    for name in REFUSED
    for kind in ("numpy", "dask", "list")
    if kind != "list" or name != "numbers as objects"
]


@pytest.mark.parametrize(("name", "kind"), HELD)
def test_refused_alike(name, kind, plain, tmp_path):
    y, message = REFUSED[name]
    if kind == "list" and y.dtype.kind in "Mm":
        message = r"y holds (np\.)?(datetime64|timedelta64).*|y holds (dates|durations)"
    message = message.replace("ROW", str(FIRST))
    with pytest.raises(DataError, match=message):
        small_svc().fit(X, hold(kind, y, tmp_path))
    with pytest.raises(DataError, match=message):
        plain.score(X, hold(kind, y, tmp_path))


WEIGHTS = {
    "number": (2.0, r"sample_weight is 2\.0, a single value; give one number per row"),
    "text": (np.full(N, "1"), "sample_weight has dtype <U1, but weights are numbers"),
    "lazy text": (da.full(N, "1", chunks=90), "sample_weight has dtype <U1, but weights"),
    "lazy number": (da.asarray(2.0), r"sample_weight must have 1 dimension, got shape \(\)"),
}


@pytest.mark.always
@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_that_are_none(name, plain):
    weights, message = WEIGHTS[name]
    for call in (small_svc().fit, plain.score):
        with pytest.raises(DataError, match=message):
            call(X, Y, weights)


def masked(values):
    return np.ma.MaskedArray(values, mask=np.zeros(values.shape, bool))


@pytest.mark.parametrize("name", ["X", "y", "sample_weight"])
def test_masked_arrays_are_refused(name, plain):
    given = {"X": X, "y": Y, "sample_weight": np.ones(N)}
    given[name] = masked(given[name])
    message = rf"{name} is a masked array.*\.filled\(value\)"
    for call in (small_svc().fit, plain.score):
        with pytest.raises(DataError, match=message):
            call(**given)


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
