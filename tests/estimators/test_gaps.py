"""Missing values of arrays: medians take their place, and added features mark them."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr
from falks import small_falk
from hypothesis import given, settings
from hypothesis import strategies as st
from landmarks import small_landmarks
from samplings import small_local
from sklearn.impute import SimpleImputer
from support import small_svc

import daskls
from daskls import DataError, VoronoiSVC, VoronoiSVR

N, D = 400, 4
NAMES = list("abcd")


def rows_with_gaps(seed=0, share=0.1, n=N, dtype=np.float64, full=(3,)):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)).astype(dtype)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    gaps = rng.random((n, D)) < share
    gaps[:, list(full)] = False
    X[gaps] = np.nan
    return X, y


X, Y = rows_with_gaps()
Q, YQ = rows_with_gaps(seed=1)
# The first n rows of a container, in blocks of some rows.
KINDS = {
    "NumPy": lambda X, rows, path: X,
    "Fortran": lambda X, rows, path: np.asfortranarray(X),
    "pandas": lambda X, rows, path: pd.DataFrame(X),
    "pandas objects": lambda X, rows, path: pd.DataFrame(X.astype(object)),
    "Dask": lambda X, rows, path: da.from_array(X, chunks=(rows, 2)),
    "path": lambda X, rows, path: zarr.create_array(path, data=X, chunks=(rows, D)) and path,
}


@pytest.fixture(scope="module")
def model():
    return small_svc().fit(X, Y)


@settings(max_examples=15)
@given(st.sampled_from(sorted(KINDS)), st.sampled_from(sorted(KINDS)), st.integers(40, N))
def test_any_container_gives_one_model(tmp_path_factory, model, kind, asked, rows):
    folder = tmp_path_factory.mktemp("rows")
    same = small_svc().fit(KINDS[kind](X, rows, str(folder / "x")), Y)
    assert same.n_features_in_ == D
    answers = same.decision_function(KINDS[asked](Q, rows, str(folder / "q")))
    np.testing.assert_array_equal(np.asarray(answers), model.decision_function(Q))


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@pytest.mark.parametrize("make", [small_svc, small_falk, small_landmarks, small_local])
def test_equal_to_an_imputer_before_it(make, dtype):
    X, y = rows_with_gaps(dtype=dtype)
    imputer = SimpleImputer(strategy="median", add_indicator=True).fit(X)
    given, imputed = make().fit(X, y), make().fit(imputer.transform(X).astype(dtype), y)
    answers = given.decision_function(Q.astype(dtype))
    wanted = imputed.decision_function(imputer.transform(Q.astype(dtype)).astype(dtype))
    np.testing.assert_array_equal(answers, wanted)


def test_rows_held_out_or_reserved_are_filled_too():
    weight = np.ones(2 * N)
    X, y = rows_with_gaps(n=2 * N)
    shares = VoronoiSVC(probability=True, random_state=0).fit(X, y, weight).predict_proba(Q)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    bounded = VoronoiSVC(max_false_alarm=0.2, delta=0.2, random_state=0).fit(X, y, weight)
    assert bounded.score(Q, YQ) > 0.6
    covering = VoronoiSVR(interval=0.8, random_state=0).fit(X, X[:, 3], weight)
    ends = covering.predict_interval(Q)
    assert 0.7 < ((ends[:, 0] <= Q[:, 3]) & (Q[:, 3] <= ends[:, 1])).mean() < 0.95


def test_a_first_gap_in_a_query_is_told_and_filled(tmp_path):
    X, y = rows_with_gaps(full=range(D))
    model = small_svc(store=tmp_path / "m").fit(pd.DataFrame(X, columns=NAMES), y)
    frame = pd.DataFrame(Q, columns=NAMES)
    filled = frame.fillna(pd.Series(np.median(X, axis=0), NAMES))
    told = rf"none: {np.isnan(Q[:, 0]).sum()} in 'a', .*median of the training rows"
    for asked in (daskls.load(tmp_path / "m"), model):
        with pytest.warns(UserWarning, match=told):
            answers = asked.decision_function(frame)
        np.testing.assert_array_equal(answers, model.decision_function(filled))
    bare = small_svc().fit(X, y)
    with pytest.warns(UserWarning, match="where training rows had none"):
        bare.predict_to_zarr(da.from_array(Q, chunks=(90, D)), tmp_path / "out")
    np.testing.assert_array_equal(zarr.open(tmp_path / "out")[:], model.predict(filled))


def test_a_refusal_and_a_wrong_width(model):
    strict = small_svc().fit(rows_with_gaps(full=range(D))[0], Y, missing="refuse")
    for call in (lambda: small_svc().fit(X, Y, missing="refuse"), lambda: strict.predict(X)):
        with pytest.raises(DataError, match=r"contains NaN, first in row \d+.*missing=\"auto\""):
            call()
    with pytest.raises(DataError, match=r"has 7 features, but .* is expecting 4"):
        model.predict(np.zeros((2, model._reader.n_features)))


def test_a_killed_fit_goes_on(tmp_path, monkeypatch):
    def fails(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("daskls.pipeline.train", fails)
        with pytest.raises(KeyboardInterrupt):
            small_svc(store=tmp_path / "m").fit(X, Y)
    resumed = small_svc(store=tmp_path / "m").fit(X, Y)
    np.testing.assert_array_equal(
        resumed.decision_function(Q), small_svc().fit(X, Y).decision_function(Q)
    )
