"""Columns by name: names travel with the model, and rows of other names are refused."""

import pickle
import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from small import ENTRIES, small
from support import checkers, small_svc

import daskls
from daskls import DataError, FalkNoiseFilter
from daskls.store.dataset import DatasetWriter

N = 300
NAMES = ["width", "height", "depth"]
OTHER_ORDER = ["height", "width", "depth"]
X, Y = checkers(N, d=3)
UNNAMED = "X does not have valid feature names, but VoronoiSVC was fitted with feature names"


def frame(names=NAMES, rows=X):
    return pd.DataFrame(rows, columns=names)


def write_dataset(path, names, rows=X, y=Y):
    options = {"feature_names": names, "chunk_rows": 90, "overwrite": True}
    with DatasetWriter(path, rows.shape[1], "f8", **options) as writer:
        writer.append(rows, y.astype("i4"))
    return str(path)


@pytest.fixture
def named_rows(tmp_path):
    """Return a function that holds rows in a DataFrame, or in a data set, under given names."""

    def hold(kind, names, rows=X):
        if kind == "frame":
            return frame(names, rows)
        if kind == "arrow":
            return pa.table(frame(names, rows))
        return write_dataset(tmp_path / f"{'-'.join(names)}.zarr", names, rows)

    return hold


@pytest.mark.parametrize("kind", ["frame", "arrow", "data set"])
def test_names_are_kept_with_the_model(kind, named_rows, tmp_path):
    model = small_svc().fit(named_rows(kind, NAMES), Y)
    model.save(tmp_path / "m")
    for other in (model, daskls.load(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        assert other.feature_names_in_.tolist() == NAMES
        assert other.feature_names_in_.dtype == object
    # Named or not, the model is the same one.
    plain = small_svc().fit(X, Y)
    with pytest.warns(UserWarning, match=UNNAMED):
        np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))


@pytest.mark.parametrize("fitted", ["frame", "data set"])
@pytest.mark.parametrize("asked", ["frame", "arrow", "data set"])
def test_other_names_and_another_order_are_refused(fitted, asked, named_rows, tmp_path):
    small_svc(store=tmp_path / "m").fit(named_rows(fitted, NAMES), Y)
    model = daskls.load(tmp_path / "m")
    same = named_rows(asked, NAMES)
    order = (
        r"should match those that were passed during fit\.\nFeature names must be in the same "
        r"order as they were in fit\.\nColumn 0 is 'height', was 'width'"
    )
    foreign = r"unseen at fit time:\n- breadth\nFeature names seen at .* now missing:\n- width\n"
    cases = [(OTHER_ORDER, order), (["breadth", "height", "depth"], foreign)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = np.asarray(model.predict(same))
        for names, message in cases:
            rows = named_rows(asked, names)
            for ask in (model.predict, model.decision_function, model.indecision):
                with pytest.raises(DataError, match=message):
                    ask(rows)
            with pytest.raises(DataError, match=message):
                model.score(rows, Y)
    np.testing.assert_array_equal(expected, small_svc().fit(X, Y).predict(X))


def test_a_difference_names_a_few_columns_of_many():
    rows, names = np.tile(X, 3), [f"c{i}" for i in range(9)]
    model = small_svc().fit(frame(names, rows), Y)
    with pytest.raises(DataError, match=r"(?s)- d4\n- \.\.\.\n.*- c4\n- \.\.\.\n") as error:
        model.predict(frame([f"d{i}" for i in range(9)], rows))
    assert "d5" not in str(error.value)
    with pytest.raises(DataError, match=r"X has 2 \(int\) among them.*astype\(str\)"):
        model.score(frame(["a", "b", 2]), Y)


@pytest.mark.parametrize("lazy", [False, True])
def test_names_on_one_side_only_are_a_warning(lazy, named_rows, tmp_path):
    rows = da.from_array(X, chunks=(100, 3)) if lazy else X
    named, plain = small_svc().fit(frame(), Y), small_svc().fit(rows, Y)
    with pytest.warns(UserWarning, match=UNNAMED) as caught:
        labels = np.asarray(named.predict(rows))
    with pytest.warns(UserWarning, match=UNNAMED) as of_writing:
        named.predict_to_zarr(da.from_array(X, chunks=(100, 3)), tmp_path / "labels")
    assert [warning.filename for warning in (*caught, *of_writing)] == [__file__] * 2
    assert not hasattr(plain, "feature_names_in_")
    for kind in ("frame", "data set"):
        message = "X has feature names, but VoronoiSVC was fitted without feature names"
        with pytest.warns(UserWarning, match=message):
            answer = plain.predict(named_rows(kind, OTHER_ORDER))
        np.testing.assert_array_equal(np.asarray(answer), labels)


def test_a_failed_refit_leaves_the_model_as_it_was():
    model = small_svc().fit(frame(), Y)
    expected = model.predict(frame())
    with pytest.raises(DataError, match="only one class"):
        model.fit(frame(["a", "b"], X[:, :2]), np.zeros(N))
    assert (model.n_features_in_, model.feature_names_in_.tolist()) == (3, NAMES)
    np.testing.assert_array_equal(model.predict(frame()), expected)


@pytest.mark.parametrize("name", ENTRIES)
def test_every_classifier_keeps_names(name, tmp_path):
    path = write_dataset(tmp_path / "data.zarr", NAMES)
    small(name, store=tmp_path / "m").fit(path)
    model = daskls.load(tmp_path / "m")
    assert model.feature_names_in_.tolist() == NAMES
    with pytest.raises(DataError, match="same order"):
        model.predict(frame(OTHER_ORDER))


@pytest.mark.parametrize("kind", ["frame", "data set"])
def test_noise_filters(kind, named_rows, tmp_path):
    noise = FalkNoiseFilter(30, C=1.0, gamma=1.0, random_state=0)
    y = Y if kind == "frame" else None
    noise.fit(named_rows(kind, NAMES), y)
    assert noise.feature_names_in_.tolist() == NAMES
    cleaned = noise.clean_dataset(named_rows("data set", NAMES), str(tmp_path / "clean.zarr"))
    assert cleaned.feature_names == NAMES
    with pytest.raises(DataError, match="Column 0 is 'height', was 'width'"):
        noise.clean_dataset(named_rows("data set", OTHER_ORDER), str(tmp_path / "other.zarr"))
    assert not (tmp_path / "other.zarr").exists()
