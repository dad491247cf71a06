"""Columns by name: names travel with the model, and rows of other names are refused."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from small import ENTRIES, small
from support import checkers, small_svc

import daskls
from daskls import DataError
from daskls.store.dataset import DatasetWriter

N = 300
NAMES, OTHER_ORDER = ["width", "height", "depth"], ["height", "width", "depth"]
X, Y = checkers(N, d=3)
UNNAMED = "X does not have valid feature names, but VoronoiSVC was fitted with feature names"


def frame(names=NAMES, rows=X):
    return pd.DataFrame(rows, columns=names)


@pytest.fixture
def hold(tmp_path):
    """Return a function that holds the rows under given names."""

    def held(kind, names=NAMES):
        if kind != "data set":
            return frame(names) if kind == "frame" else pa.table(frame(names))
        path = tmp_path / f"{'-'.join(names)}.zarr"
        with DatasetWriter(path, 3, "f8", feature_names=names, overwrite=True) as writer:
            writer.append(X, Y.astype("i4"))
        return str(path)

    return held


ORDER = (
    r"should match those that were passed during fit\.\nFeature names must be in the same "
    r"order as they were in fit\.\nColumn 0 is 'height', was 'width'"
)
FOREIGN = r"unseen at fit time:\n- breadth\nFeature names seen at .* now missing:\n- width\n"


@pytest.mark.parametrize("fitted", ["frame", "data set"])
@pytest.mark.parametrize("asked", ["frame", "arrow", "data set"])
def test_other_names_and_another_order_are_refused(fitted, asked, hold, tmp_path):
    model = small_svc().fit(hold(fitted), Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(hold(asked))
        for names, message in ((OTHER_ORDER, ORDER), (["breadth", "height", "depth"], FOREIGN)):
            rows = hold(asked, names)
            for ask in (model.predict, model.decision_function, model.indecision):
                with pytest.raises(DataError, match=message):
                    ask(rows)
            with pytest.raises(DataError, match=message):
                model.score(rows, Y)
    if asked == "data set":
        with pytest.raises(DataError, match=FOREIGN):
            model.predict_to_zarr(rows, tmp_path / "out")
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("lazy", [False, True])
def test_names_on_one_side_only_are_a_warning(lazy, hold, tmp_path):
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
            answer = plain.predict(hold(kind, OTHER_ORDER))
        np.testing.assert_array_equal(np.asarray(answer), labels)


def test_a_failed_refit_leaves_the_model_as_it_was():
    model = small_svc().fit(frame(), Y)
    expected = model.predict(frame())
    with pytest.raises(DataError, match="only one class"):
        model.fit(frame(["a", "b"], X[:, :2]), np.zeros(N))
    assert (model.n_features_in_, model.feature_names_in_.tolist()) == (3, NAMES)
    np.testing.assert_array_equal(model.predict(frame()), expected)


@pytest.mark.parametrize("name", ENTRIES)
def test_every_method_keeps_names(name, hold, tmp_path):
    small(name, store=tmp_path / "m").fit(hold("data set"))
    model = daskls.load(tmp_path / "m")
    assert model.feature_names_in_.tolist() == NAMES
    with pytest.raises(DataError, match="same order"):
        model.predict(frame(OTHER_ORDER))
