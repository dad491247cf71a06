"""Frames with text, categories, dates and gaps, and labels beside them: scikit-learn's tools."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from small import small

import daskls
from daskls import DataError, StoreError, TableEncoder
from daskls.plotting import FeatureDisplay

N = 200


def make_frame(seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, N).astype(float),
            "color": rng.choice(["red", "green", "blue"], N),
            "city": pd.Categorical(rng.choice(["Bern", "Oslo"], N)),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 500, N), "D"),
            "member": pd.array(rng.random(N) < 0.5, dtype="boolean"),
        }
    )
    for name in ("age", "city", "since", "member"):
        frame.loc[rng.random(N) < 0.1, name] = None
    return frame


X, Q = make_frame(), make_frame(1)
Y = np.where((X.color == "red") ^ (X.age > 50), "buys", "looks")
COLUMNS = X.columns.tolist()


def svc(**params):
    return small("VoronoiSVC", feature_scale="spread", **params)


def by_grid(model):
    grid = {name: [1.0, 10.0] for name in model.get_params() if name in ("C", "svc__C")}
    found = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, Y)
    return found, [*found.cv_results_["mean_test_score"], *found.predict(Q)]


def by_columns(model):
    scaled = make_column_transformer(
        (StandardScaler(), ["age"]), remainder="passthrough", verbose_feature_names_out=False
    )
    found = Pipeline([("columns", scaled.set_output(transform="pandas")), ("model", model)])
    return found.fit(X, Y), found.decision_function(Q)


def by_calibration(model):
    found = CalibratedClassifierCV(model, cv=2).fit(X, Y)
    return found, found.predict_proba(Q)


@pytest.mark.parametrize("tool", [by_grid, by_columns, by_calibration])
def test_tools_of_scikit_learn_take_the_frame_as_the_encoder_does(tool):
    found, answers = tool(svc())
    # A transformer encodes the rows of each fit.
    same = Pipeline([("encode", TableEncoder()), ("svc", svc())])
    np.testing.assert_array_equal(answers, tool(same)[1])
    assert list(found.feature_names_in_) == COLUMNS


def test_names_are_those_of_the_columns(tmp_path):
    model = svc().fit(X, Y)
    model.save(tmp_path / "m")
    for own in (model, daskls.load(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        assert own.feature_names_in_.tolist() == COLUMNS
        assert own.coded_features_ == own.table_.feature_names
    # Rows that are encoded already: an array, or a data set with their names.
    encoder = TableEncoder().fit(X)
    want = model.decision_function(Q)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(model.decision_function(encoder.transform(Q)), want)
    lazy = model.decision_function(encoder.to_zarr(Q, tmp_path / "q").path)
    np.testing.assert_array_equal(lazy.compute(), want)
    # A frame of numbers has no table any more.
    plain = X[["age"]].fillna(0.0).assign(zero=0.0)
    assert not hasattr(model.fit(plain, Y), "table_")
    assert model.feature_names_in_.tolist() == ["age", "zero"]


def test_importances_are_summed_over_the_features_of_a_column():
    factors = np.linspace(1.0, 2.0, len(svc().fit(X, Y).table_.feature_names))
    shown, named = (
        small("VoronoiSVC", feature_scale=list(factors)).fit(*given)
        for given in ((X, Y), (X.assign(t=Y), "t"))
    )
    assert set(FeatureDisplay.from_estimator(shown).names) == set(COLUMNS)
    assert shown.feature_importances_.sum() == pytest.approx(1)
    rest = named.feature_importances_.tolist()
    for column, share in zip(shown.table_.columns, shown.feature_importances_, strict=True):
        own = [rest.pop(0) for _ in column.feature_names]
        assert share == pytest.approx(sum(own))


def test_weights_and_numbers():
    weights = np.random.default_rng(3).integers(0, 3, N) / 2
    model, named = svc().fit(X, Y, weights), svc().fit(X.assign(t=Y, w=weights), "t", "w")
    want, column = named.decision_function(Q), svc().fit(X.assign(w=weights), Y, "w")
    for own in (model, column):
        np.testing.assert_array_equal(own.decision_function(Q), want)
    assert column.feature_names_in_.tolist() == COLUMNS
    assert model.score(Q, Y, weights) == named.score(Q.assign(t=Y), sample_weight=weights)
    with pytest.raises(DataError, match="inconsistent"):
        svc().fit(X, Y, weights[1:])
    y, frame = X.age.fillna(30.0).to_numpy() / 7, X.drop(columns="since")
    for given in (y, np.column_stack([y, -y])):
        encoder, one = TableEncoder().fit(frame), small("VoronoiSVR").fit(frame, given)
        same = small("VoronoiSVR").fit(encoder.transform(frame), given)
        np.testing.assert_array_equal(one.predict(Q), same.predict(encoder.transform(Q)))
        assert one.score(Q, given) == same.score(encoder.transform(Q), given)


GAPS, NANS = (np.where(np.arange(N) == 5, gap, own) for gap, own in ((None, Y), (np.nan, 1.0)))
BAD = (
    ((X, Y[1:]), "inconsistent numbers of samples"),
    ((X, GAPS), "y holds None .* in row 5"),
    ((X, NANS), "NaN.* row 5"),
    ((X, None), "no usual name for a column of labels"),
    ((X, np.ones(N)), "only one class"),
    ((X, np.column_stack([Y, Y])), "1d array"),
    ((X.set_axis([*"aabcd"], axis=1), Y), "more than one column 'a'"),
    ((X[:1], Y[:1]), "Found 1 row"),
    ((X.assign(age=1j * np.arange(N)), Y), "neither numbers nor text nor"),
    ((X.assign(age=[1, "a"] * (N // 2)), Y), "neither numbers nor text"),
    ((X.assign(age=[[i] for i in range(N)]), Y), "neither numbers, text, categories nor"),
)


def test_what_cannot_be_trained_on_is_refused_and_leaves_nothing(tmp_path):
    for given, words in BAD:
        with pytest.raises(DataError, match=words):
            svc(store=tmp_path / "m").fit(*given)
        assert not (tmp_path / "m").exists()


def test_queries():
    model = svc().fit(X, Y)
    assert model.predict(Q[3:4]).tolist() == model.predict(Q)[3:4].tolist()
    for call, words in (
        (lambda: model.predict(Q.drop(columns="color")), "no column 'color', which the model was"),
        (lambda: model.predict(Q[:0]), r"0 sample\(s\)"),
        (lambda: model.score(Q, Y[1:]), "inconsistent numbers of samples"),
        (lambda: model.score(Q.assign(t=Y)), "known label column"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    assert model.score(Q.assign(t=Y), "t") == model.score(Q, Y)


def test_another_table_is_another_fit(tmp_path):
    model = svc(store=tmp_path / "m").fit(X, Y)
    again = svc(store=tmp_path / "m").fit(X, Y)
    np.testing.assert_array_equal(again.decision_function(Q), model.decision_function(Q))
    with pytest.raises(StoreError, match="another fit"):
        svc(store=tmp_path / "m").fit(X, Y, drop="age")
