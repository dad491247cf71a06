"""Weights of the rows of a table, in `fit` and in `score`: an array, or a column."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr
from sklearn.metrics import accuracy_score, r2_score
from support import PAPERS
from tables.containers import TABLES

import daskls
from daskls import DataError, VoronoiSVC

RNG = np.random.default_rng(0)
N = 300
ROWS = pd.DataFrame(RNG.random((N, 2)), columns=["a", "b"])
ROWS["t"] = np.where(ROWS.a + RNG.normal(0, 0.2, N) > 0.5, "over", "under")
ROWS["v"] = ROWS.a + RNG.normal(0, 0.2, N)
# Only rows in which the answer is likely wrong count.
ROWS["w"] = (np.abs(ROWS.a - 0.5) < 0.1) * RNG.integers(1, 9, N)
WEIGHED = ROWS[["a", "b", "t"]].assign(w=RNG.integers(0, 3, N) / 2)
SMALL = {"cell_size": 200, "C": 1.0, "gamma": 1.0, "random_state": 0}
PARAMS = {**SMALL, **PAPERS}


def fitted(*given):
    return VoronoiSVC(**PARAMS).fit(*given)


@pytest.mark.parametrize("container", ["CSV", "Parquet file", "pandas", "Dask DataFrame", "Polars"])
def test_weights_are_those_of_the_numpy_route(container, tmp_path):
    X, y, w = WEIGHED[["a", "b"]].to_numpy(), WEIGHED.t.to_numpy(), WEIGHED.w.to_numpy()
    values = fitted(X, y, w).decision_function(X)
    assert (values != fitted(X, y).decision_function(X)).any()
    model = fitted(TABLES[container](WEIGHED, tmp_path), "t", "w")
    assert model.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(model.decision_function(ROWS), values)
    assert "weights: w" in model.table_.describe()
    # Beside the table.
    model = fitted(TABLES[container](WEIGHED.drop(columns="w"), tmp_path), "t", w)
    np.testing.assert_array_equal(model.decision_function(ROWS), values)


@pytest.fixture(scope="module")
def models():
    X, params = ROWS[["a", "b"]], SMALL
    return {
        "t": (VoronoiSVC(**params).fit(X.assign(t=ROWS.t), "t"), accuracy_score),
        "v": (daskls.VoronoiSVR(**params).fit(X.assign(v=ROWS.v), "v"), r2_score),
    }


@pytest.mark.parametrize(
    ("kind", "container"),
    [
        *(("t", name) for name in ("CSV", "pandas", "Dask DataFrame")),
        ("v", "CSV"),
    ],
)
def test_a_score_is_weighed_by_a_column_or_an_array(kind, container, models, tmp_path):
    model, measure = models[kind]
    label, rows = model.table_.label, TABLES[container](ROWS, tmp_path)
    answers = np.asarray(model.predict(rows))
    wanted = measure(ROWS[label], answers, sample_weight=ROWS.w)
    assert abs(wanted - measure(ROWS[label], answers)) > 0.05
    zarr.save_array(tmp_path / "w.zarr", ROWS.w.to_numpy())
    own = ROWS.w.to_numpy()
    for weight in ("w", own, da.from_array(own, chunks=70), ROWS.w, str(tmp_path / "w.zarr")):
        assert model.score(rows, label, sample_weight=weight) == pytest.approx(wanted, abs=1e-9)


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
    rows = ROWS.assign(gaps=ROWS.w.where(ROWS.index != 7))
    for table in (rows, TABLES["CSV"](rows, tmp_path)):
        for weight, words in WRONG:
            with pytest.raises(DataError, match=words):
                models["t"][0].score(table, "t", sample_weight=weight)
