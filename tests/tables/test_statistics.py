"""Columns of many values: statistics of their targets, equal to scikit-learn's TargetEncoder."""

from itertools import pairwise

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import TargetEncoder
from small import small
from tables.containers import FRAMES

import daskls
from daskls import DataError
from daskls.sources import many_values
from daskls.sources.base import TableOptions
from daskls.sources.formats import open_source
from daskls.sources.scan import scan_table
from daskls.sources.statistics import N_FOLDS, keys_and_folds
from daskls.sources.write import encoded

N_ROWS, N_VALUES = 600, 90
KINDS = {"two": "binary", "several": "multiclass", "numbers": "continuous"}


def drawn(kind, seed=0, with_gaps=True):
    rng = np.random.default_rng(seed)
    codes = np.r_[np.arange(N_VALUES), rng.zipf(1.5, N_ROWS - N_VALUES) % N_VALUES]
    city = np.array([f"city {code}" for code in rng.permutation(codes)], object)
    score = rng.normal(size=N_VALUES)[codes] + rng.normal(size=N_ROWS)
    y = {
        "two": np.where(score > 0, "yes", "no"),
        "several": np.digitize(score, [-1, 0, 1]),
        "numbers": 1e6 + 10 * score,
    }[kind]
    # No city loses all of its rows.
    often = city == pd.Series(city).mode()[0]
    city[often & (rng.random(N_ROWS) < 0.3 * with_gaps)] = None
    return pd.DataFrame({"a": rng.normal(size=N_ROWS), "city": city, "y": y})


def scan(table, kind="two", seed=0, **options):
    targets = "numbers" if kind == "numbers" else "classes"
    source, given = open_source(table).open("y", None), TableOptions(**options)
    return scan_table(source, "y", given, kind=targets, seed=seed)


def features(table, found, *, of_training):
    cross_fit = found.cross_fit if of_training else None
    source = open_source(table).open("y", None)
    blocks = encoded(source, found.encoding, cross_fit=cross_fit).blocks()
    return np.concatenate([X for X, _, _ in blocks])


def in_parts(table, cuts):
    bounds = pairwise([0, *sorted(cuts), len(table)])
    return dd.concat([dd.from_pandas(table.iloc[a:b], npartitions=1) for a, b in bounds])


@settings(max_examples=10, deadline=None)
@given(kind=st.sampled_from(sorted(KINDS)), seed=st.integers(0, 2**31), with_gaps=st.booleans())
def test_means_are_those_of_scikit_learn(kind, seed, with_gaps):
    table = drawn(kind, seed, with_gaps)
    found = scan(table, kind, seed=seed)
    city, y = table[["city"]].to_numpy(), table.y.to_numpy()
    oracle = TargetEncoder(target_type=KINDS[kind], smooth="auto")

    def check(rows, others, of_training):
        expected = oracle.fit(city[others], y[others]).transform(city[rows])
        means = features(table, found, of_training=of_training)[rows, 1 : 1 + expected.shape[1]]
        np.testing.assert_allclose(means, expected, rtol=1e-9, atol=1e-9)

    everyone = np.ones(len(y), bool)
    check(everyone, everyone, of_training=False)
    folds = keys_and_folds(0, len(y), seed)[1]
    for fold in range(N_FOLDS):
        check(folds == fold, folds != fold, of_training=True)


def test_counts_of_training_rows_are_scaled_to_those_of_queries():
    table = drawn("two", with_gaps=False)
    found, folds = scan(table), keys_and_folds(0, N_ROWS, 0)[1]
    n_rows = table.groupby("city").city.transform("size")
    n_others = n_rows - table.groupby([table.city, folds]).city.transform("size")
    for of_training, wanted in ((False, n_rows), (True, N_FOLDS / (N_FOLDS - 1) * n_others)):
        log_of_count = features(table, found, of_training=of_training)[:, 2]
        np.testing.assert_allclose(log_of_count, np.log1p(wanted), rtol=1e-9)


@settings(max_examples=10, deadline=None)
@given(
    cuts=st.lists(st.integers(0, N_ROWS), max_size=5),
    magnitude=st.sampled_from([1e-290, 1.0, 1e290]),
    outlier=st.sampled_from([1.0, 1e9]),
)
def test_statistics_do_not_depend_on_the_parts(cuts, magnitude, outlier):
    table = drawn("numbers")
    table["y"] = magnitude * (table.y - 1e6)
    table.loc[5, "y"] *= outlier
    whole = scan(table, "numbers")
    cut = scan(in_parts(table, cuts), "numbers")
    assert cut.encoding == whole.encoding
    # Of targets of any size they are features of a usual one.
    means = np.abs(whole.encoding.columns[1].statistics)
    assert np.isfinite(means).all()
    assert outlier > 1 or means.max() < 1e3
    for name, others in whole.cross_fit.of_others.items():
        assert others.tobytes() == cut.cross_fit.of_others[name].tobytes()


@pytest.mark.parametrize("kind", [*KINDS, "many classes"])
def test_a_fit_codes_training_rows_without_their_fold_and_queries_by_all(kind, tmp_path):
    table = drawn("numbers" if kind == "many classes" else kind)
    if kind == "many classes":
        table["y"] = pd.qcut(table.y, 12, labels=False)
    name = "VoronoiSVR" if kind == "numbers" else "VoronoiSVC"
    model = small(name).fit(table, "y", drop=["a"])
    found = scan(table, "numbers" if kind == "numbers" else "two", drop=["a"])
    assert model.feature_names_in_.tolist() == found.encoding.feature_names
    same = small(name).fit(features(table, found, of_training=True), table.y.to_numpy())
    queries = drawn("two", seed=1).drop(columns="y")
    X = features(queries, found, of_training=False)
    assert model.predict(queries).tolist() == same.predict(X).tolist()
    model.save(tmp_path / "model")
    assert daskls.load(tmp_path / "model").predict(queries).tolist() == same.predict(X).tolist()


def test_an_unknown_value_has_the_mean_of_all_rows_and_is_counted():
    table = drawn("two", with_gaps=False)
    model = small("VoronoiSVC").fit(table, "y")
    queries = table.drop(columns="y").iloc[:3].assign(city=["Atlantis", None, "city 1"])
    found = scan(table)
    with (
        pytest.warns(UserWarning, match=r"1 in 'city' \('Atlantis' in row 0"),
        pytest.warns(UserWarning, match="1 in 'city'. Numbers count"),
    ):
        model.predict(queries)
    with pytest.warns(UserWarning, match="no training row had"):
        X = features(queries[:1], found, of_training=False)
    assert X[0, 1:].tolist() == [(table.y == "yes").mean(), 0.0]
    strict = small("VoronoiSVC").fit(table, "y", unknown="error", missing="refuse")
    for row, words in enumerate(("holds 'Atlantis' in row 0", "has a missing value in row 0")):
        with pytest.raises(DataError, match=f"'city' {words}"):
            strict.predict(queries[row : row + 1])


def test_long_values_that_begin_alike_are_apart():
    short, found = (drawn("two") for _ in range(2))
    found["city"] = 60 * "Llanfair" + found.city
    wanted, found = (features(own, scan(own), of_training=True) for own in (short, found))
    np.testing.assert_array_equal(found, wanted)


def test_rows_of_weight_0_do_not_count():
    table = drawn("numbers").assign(w=1.0)
    table.loc[table.index % 3 == 0, "w"] = 0.0
    found = scan(table, "numbers", weight="w")
    statistics_of = [own.statistics for own in found.encoding.columns]
    others = table.assign(y=table.y.where(table.w > 0, -5.0))
    again = scan(others, "numbers", weight="w")
    np.testing.assert_allclose(statistics_of[1], again.encoding.columns[1].statistics, rtol=1e-9)


def test_a_name_of_each_row_is_left_out_and_said_and_so_are_statistics_with_a_bound():
    table = drawn("two").assign(id=[f"row {i}" for i in range(N_ROWS)])
    with pytest.warns(UserWarning, match="left out 'id': most rows have a value of their own"):
        model = small("VoronoiSVC").fit(table, "y")
    assert not any("id" in name for name in model.feature_names_in_)
    model.predict(table.drop(columns=["y", "id"]))
    left_out = pytest.warns(UserWarning, match="left out 'id'")
    with left_out, pytest.raises(DataError, match="no feature columns besides the label 'y'"):
        small("VoronoiSVC").fit(table[["id", "y"]], "y")
    with pytest.warns(UserWarning, match=r"left out 'city': max_false_alarm allows no statistics"):
        model = small("VoronoiSVC", max_false_alarm=0.3).fit(table.drop(columns="id"), "y")
    assert model.feature_names_in_.tolist() == ["a"]


@pytest.mark.parametrize("library", ["pandas", "Dask DataFrame"])
def test_the_encoder_fits_and_transforms_as_a_fit_does(library, tmp_path):
    table, encoder = drawn("numbers"), daskls.TableEncoder("y")
    given, X = (FRAMES[library](own, None) for own in (table, table[["a", "city"]]))
    found = scan(table, "numbers")
    coded = features(table, found, of_training=True)
    np.testing.assert_array_equal(np.asarray(encoder.fit_transform(given)), coded)
    queries = features(table, found, of_training=False)
    np.testing.assert_array_equal(np.asarray(encoder.transform(given)), queries)
    apart = daskls.TableEncoder().fit_transform(X, table.y)
    np.testing.assert_array_equal(np.asarray(apart), coded)
    with pytest.raises(DataError, match="has 600 rows, but y has 599; pass as many"):
        daskls.TableEncoder().fit(X, table.y[1:])
    with pytest.raises(DataError, match="with a label they would become its statistics"):
        daskls.TableEncoder(drop=["y"]).fit(table)
    with pytest.warns(UserWarning, match="contain the labels of the rows that fit has read"):
        encoder.to_zarr(table, tmp_path / "rows")


LEVELS = ("Senior", "Junior", "Chief", "Deputy")
TRADES = ("Accountant", "Engineer", "Librarian", "Inspector", "Nurse", "Architect", "Planner")
UNITS = (
    *("Health", "Transport", "Finance", "Parks", "Police", "Housing", "Energy", "Water"),
    *("Schools", "Courts", "Taxes", "Harbors", "Forests", "Archives", "Traffic", "Weather"),
)


def titles(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    pieces = [rng.integers(0, len(own), n_rows) for own in (LEVELS, TRADES, UNITS)]
    worth = sum(np.cos(3 * own + place) for place, own in enumerate(pieces))
    title = [f"{LEVELS[i]} {TRADES[j]} of {UNITS[k]}" for i, j, k in zip(*pieces, strict=True)]
    return pd.DataFrame({"title": title, "y": worth + 0.1 * rng.normal(size=n_rows)})


@pytest.mark.filterwarnings("ignore:Values that no training row had")
def test_text_that_shares_pieces_becomes_letters_and_new_values_have_a_place():
    table = titles(2000)
    held = table.title.isin(table.title.unique()[::4])
    (column,) = scan(table[~held], "numbers").encoding.columns
    assert column.letters
    model = daskls.VoronoiSVR(random_state=0).fit(table[~held], "y")
    assert model.score(table[held], "y") > 0.5
    assert len(column.feature_names) == len(column.parts) + 15


@settings(max_examples=5, deadline=None)
@given(cuts=st.lists(st.integers(1, 1999), max_size=4), seed=st.integers(0, 99))
def test_letters_do_not_depend_on_the_parts(cuts, seed):
    table = titles(2000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(many_values, "SAMPLED_ROWS", 500)
        whole, cut = (scan(own, "numbers", seed=seed) for own in (table, in_parts(table, cuts)))
    assert cut.encoding == whole.encoding
    queries = table[::20]
    X = features(queries, whole, of_training=False)
    one_by_one = [features(queries[i : i + 1], whole, of_training=False) for i in range(100)]
    np.testing.assert_array_equal(X, np.concatenate(one_by_one))


def test_a_noise_filter_codes_training_rows_without_their_fold():
    table = drawn("two", with_gaps=False)
    X, y = table[["a", "city"]], table.y
    found = scan(table)
    coded = features(table, found, of_training=True)
    noise, same = (
        daskls.FalkNoiseFilter(n_neighbors=20, random_state=0).fit(*rows)
        for rows in ((X, y), (coded, y.to_numpy()))
    )
    np.testing.assert_array_equal(noise.keep_, same.keep_)


def with_gains(seed=0, n=N_ROWS, as_text=False):
    """Return a table of which some gains tell the label, and most rows have none."""
    rng = np.random.default_rng(seed)
    gains = rng.choice(40 * np.arange(1, 81) + 0.5, n)
    gain = np.where(rng.random(n) < 0.6, 0.0, gains)
    is_high = np.isin(gain, 40 * np.arange(0, 81, 2) + 0.5) ^ (rng.random(n) < 0.05)
    gain[rng.random(n) < 0.02] = np.nan
    y = np.where(is_high, "yes", "no")
    table = pd.DataFrame({"a": rng.normal(size=n), "gain": gain, "y": y})
    text = table.gain.map("{:g}".format).where(table.gain.notna(), None)
    return table.assign(gain=text + "x") if as_text else table


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 99), ending=st.sampled_from(["csv", "parquet", "frame", "parts"]))
def test_a_number_of_few_common_values_gets_their_statistics_besides(
    seed, ending, tmp_path_factory
):
    table, given = with_gains(seed), with_gains(seed)
    if ending == "parts":
        given = dd.from_pandas(table, npartitions=3)
    elif ending != "frame":
        given = tmp_path_factory.mktemp("gains") / f"rows.{ending}"
        getattr(table, f"to_{ending}")(given, index=False)
    found = scan(given)
    names = ["a", "gain", "gain: share of yes", "gain: log of count", "gain is missing"]
    assert found.encoding.feature_names == names
    n, told = table.gain.nunique(), found.encoding.columns[1].describe()
    assert told.startswith(f"a number, and of {n} values: share of yes, log of count of each")
    # They are those of the same values as text.
    of_text = with_gains(seed, as_text=True)
    found_text = scan(of_text)
    told = found_text.encoding.columns[1].describe()
    assert "missing values become a value of their own, flagged by an added column" in told
    for of_training in (False, True):
        own = features(given, found, of_training=of_training)
        text = features(of_text, found_text, of_training=of_training)
        np.testing.assert_array_equal(own[:, 2:4], text[:, -3:-1])
        np.testing.assert_array_equal(own[:, 0], table.a)
