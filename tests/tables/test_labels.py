"""Labels, weights and indexes of tables: which column they are, and marks of missing values."""

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import zarr
from sklearn.metrics import accuracy_score, r2_score
from support import HERE, as_options
from support import run_cli as run
from tables.containers import TABLES, written

import daskls
from daskls import DataError, TableEncoder, VoronoiSVC

RNG = np.random.default_rng(0)
N = 240
ROWS = pd.DataFrame({"age": RNG.integers(18, 80, N), "member": RNG.random(N) > 0.5})
ROWS["income"] = RNG.random(N) * 10
ROWS["kind"] = np.where(ROWS.member ^ (ROWS.income > 5), "buys", "looks")
PARAMS = {"cell_size": 300, "C": 1.0, "gamma": 1.0, "random_state": 0}
SMALL = as_options(**PARAMS)


def fitted(*given, **options):
    return VoronoiSVC(**PARAMS).fit(*given, **options)


def write(frame, path):
    frame.to_csv(path, index=False)
    return path


def test_marks_of_missing_values_among_numbers_are_told(tmp_path):
    """By the number of other values and the number of rows."""
    for marks, values, words in (
        (["?"], 20 + np.arange(400) % 200, r"holds .*where '\?' stands for a missing"),
        (["?", "-"], np.arange(400) % 30, r"holds .* '-', '\?'; where '-' stands for a missing"),
    ):
        # Above all others they would be a line of units.
        ages = [*map(str, values), *marks]
        frame = pd.DataFrame({"age": ages, "kind": np.arange(len(ages)) % 2})
        with pytest.raises(DataError, match=f"'age' {words}"):
            TableEncoder("kind").fit(write(frame, tmp_path / "rows.csv"))
        # A frame tells numbers from text, so that text is meant as categories.
        (age,) = TableEncoder("kind").fit(frame).table_.columns
        assert age.kind == "statistics" if marks == ["?"] else len(age.categories) == len({*ages})


# On the command line a warning is a line, not an error as elsewhere in the tests.
@pytest.mark.filterwarnings("default:No label column")
def test_the_label_is_taken_by_its_usual_names_and_said(tmp_path):
    for name in ("y", "label", "target", "class"):
        frame = ROWS[["income", "member", "kind"]].rename(columns={"kind": name})
        with pytest.warns(UserWarning, match=f"No label column was named; it is '{name}'"):
            model = fitted(frame)
        assert model.classes_.tolist() == ["buys", "looks"]
        assert model.table_.label == name
    result = run("fit", write(frame, tmp_path / "a.csv"), tmp_path / "a", *SMALL, *HERE)
    assert "No label column was named; it is 'class'" in result.stderr


def test_a_label_that_is_not_named_is_an_error_that_lists_the_columns(tmp_path):
    path = write(ROWS, tmp_path / "train.csv")
    # No cluster is started for it: this address leads to none.
    nowhere = ("--scheduler", "tcp://127.0.0.1:1", "--quiet")
    told = run("fit", path, tmp_path / "m", *nowhere, code=1).stderr
    assert "age, member, income, kind" in told
    assert "--label NAME" in told
    with pytest.raises(DataError, match=r"several usual names \(y, label\)"):
        fitted(ROWS.assign(y=1, label=2))
    with pytest.raises(DataError, match=r"no column 'sort'; its 4 columns are: age"):
        fitted(path, "sort")


# Weights, in `fit` and in `score`: an array, or a column

SCORED = pd.DataFrame(RNG.random((300, 2)), columns=["a", "b"])
SCORED["t"] = np.where(SCORED.a + RNG.normal(0, 0.2, 300) > 0.5, "over", "under")
SCORED["v"] = SCORED.a + RNG.normal(0, 0.2, 300)
# Only rows in which the answer is likely wrong count.
SCORED["w"] = (np.abs(SCORED.a - 0.5) < 0.1) * RNG.integers(1, 9, 300)
WEIGHTED = SCORED[["a", "b", "t"]].assign(w=RNG.integers(0, 3, 300) / 2)


@pytest.mark.parametrize("container", ["CSV", "Parquet file", "pandas", "Dask DataFrame", "Polars"])
def test_weights_are_those_of_the_numpy_route(container, tmp_path):
    X, y, w = WEIGHTED[["a", "b"]].to_numpy(), WEIGHTED.t.to_numpy(), WEIGHTED.w.to_numpy()
    values = fitted(X, y, w).decision_function(X)
    assert (values != fitted(X, y).decision_function(X)).any()
    model = fitted(TABLES[container](WEIGHTED, tmp_path), "t", "w")
    assert model.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(model.decision_function(SCORED), values)
    assert "weights: w" in model.table_.describe()
    # Beside the table.
    model = fitted(TABLES[container](WEIGHTED.drop(columns="w"), tmp_path), "t", w)
    np.testing.assert_array_equal(model.decision_function(SCORED), values)


@pytest.fixture(scope="module")
def models():
    X, svr = SCORED[["a", "b"]], daskls.VoronoiSVR(**PARAMS)
    return {
        "t": (fitted(X.assign(t=SCORED.t), "t"), accuracy_score),
        "v": (svr.fit(X.assign(v=SCORED.v), "v"), r2_score),
    }


@pytest.mark.parametrize("container", ["CSV", "pandas", "Dask DataFrame"])
def test_a_score_is_weighed_by_a_column_or_an_array(container, models, tmp_path):
    own, rows = SCORED.w.to_numpy(), TABLES[container](SCORED, tmp_path)
    zarr.save_array(tmp_path / "w.zarr", own)
    for label, (model, measure) in models.items():
        answers = np.asarray(model.predict(rows))
        wanted = measure(SCORED[label], answers, sample_weight=SCORED.w)
        assert abs(wanted - measure(SCORED[label], answers)) > 0.05
        for weight in ("w", own, da.from_array(own, chunks=70), SCORED.w, str(tmp_path / "w.zarr")):
            score = model.score(rows, label, sample_weight=weight)
            assert score == pytest.approx(wanted, abs=1e-9)


WRONG = [
    ("u", "sample_weight is 'u', which is no column of .*columns are: a, b, t, v, w"),
    ("t", "which holds the labels"),
    ("gaps", "sample_weight is nan in row 7"),
    (np.ones(299), "X has 300 rows, sample_weight has 299. Pass one value per row"),
    (np.r_[np.ones(299), np.nan], "sample_weight is nan in row 299; weights must be finite"),
    (np.r_[-1.0, np.ones(299)], "sample_weight is -1 in row 0; weights must be finite and"),
    (np.zeros(300), "sample_weight is 0 in all rows"),
]


def test_weights_by_which_nothing_can_be_scored_are_refused(models, tmp_path):
    rows = SCORED.assign(gaps=SCORED.w.where(SCORED.index != 7))
    for table in (rows, TABLES["CSV"](rows, tmp_path)):
        for weight, words in WRONG:
            with pytest.raises(DataError, match=words):
                models["t"][0].score(table, "t", sample_weight=weight)


# An index that pandas wrote: no feature, but read where it is asked for

INDEXED = pd.DataFrame({"age": RNG.integers(18, 80, N) * 1.0, "income": RNG.random(N) * 10})
INDEXED["kind"] = np.where((INDEXED.age > 50) ^ (INDEXED.income > 5), "buys", "looks")
KINDS = {
    "Parquet": written("to_parquet", "rows.parquet"),
    "Arrow": lambda frame, _: pa.Table.from_pandas(frame),
}


def assert_same(model, wanted):
    values = (own.decision_function(INDEXED) for own in (model, wanted))
    np.testing.assert_array_equal(*values)


def test_an_index_that_pandas_wrote_is_no_feature(tmp_path):
    frame = INDEXED.sort_values("kind")
    wanted = fitted(frame, "kind")
    assert wanted.table_.column_names == ["age", "income"]
    for write in KINDS.values():
        assert_same(fitted(write(frame, tmp_path), "kind"), wanted)
    # Files with and without one are one table.
    frame[:100].to_csv(tmp_path / "1.csv")
    frame[100:].to_csv(tmp_path / "2.csv", index=False)
    with pytest.warns(UserWarning, match="first column of .*csv has no name: it is taken for an"):
        assert_same(fitted(tmp_path / "*.csv", "kind"), wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_is_read_where_it_is_asked_for(kind, tmp_path):
    rows = INDEXED.assign(w=np.arange(N) % 3 + 1.0)
    wanted = fitted(rows, "kind", "w")
    # As labels and as weights.
    frame = KINDS[kind](rows.set_index(["kind", "w"]), tmp_path)
    assert_same(fitted(frame, "kind", "w"), wanted)
    # As a feature of a trained model; only then is it one.
    named = KINDS[kind](rows.set_index("age"), tmp_path)
    np.testing.assert_array_equal(
        wanted.decision_function(named), wanted.decision_function(INDEXED)
    )
    with pytest.warns(UserWarning, match=r"The index of .* is left out: age\. Write the DataFrame"):
        assert fitted(named, "kind", "w").table_.column_names == ["income"]
