"""Columns by name: names travel with the model, and rows of other names are refused."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from small import ENTRIES, small
from support import checkers, few, small_svc

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


@pytest.mark.parametrize(
    ("fitted", "asked"), [("frame", "arrow"), ("data set", "frame"), ("frame", "data set")]
)
def test_other_names_and_another_order_are_refused(fitted, asked, hold):
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


def test_names_on_one_side_only_are_a_warning(hold):
    rows = da.from_array(X, chunks=(100, 3))
    named, plain = small_svc().fit(frame(), Y), small_svc().fit(rows, Y)
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
    model = small_svc().fit(frame(), Y)
    expected = model.predict(frame())
    with pytest.raises(DataError, match="only one class"):
        model.fit(frame(["a", "b"], X[:, :2]), np.zeros(N))
    assert (model.n_features_in_, model.feature_names_in_.tolist()) == (3, NAMES)
    np.testing.assert_array_equal(model.predict(frame()), expected)


@pytest.mark.parametrize("name", few(ENTRIES, 3))
def test_every_method_keeps_names(name, hold, tmp_path):
    small(name, store=tmp_path / "m").fit(hold("data set"))
    model = daskls.load(tmp_path / "m")
    assert model.feature_names_in_.tolist() == NAMES
    with pytest.raises(DataError, match="same order"):
        model.predict(frame(OTHER_ORDER))
