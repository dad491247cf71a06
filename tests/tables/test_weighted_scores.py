"""`score` of a table weighs its rows, by an array or by a column."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
import zarr
from sklearn.metrics import accuracy_score, d2_pinball_score, r2_score

import daskls
from daskls import DataError

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(RNG.random((300, 2)), columns=["a", "b"])
ROWS["t"] = np.where(ROWS.a + RNG.normal(0, 0.2, 300) > 0.5, "over", "under")
ROWS["v"] = ROWS.a + RNG.normal(0, 0.2, 300)
# Only rows in which the answer is likely wrong count.
ROWS["w"] = (np.abs(ROWS.a - 0.5) < 0.1) * RNG.integers(1, 9, 300)
SMALL = {"cell_size": 200, "C": 1.0, "gamma": 1.0, "random_state": 0}
TABLES = {
    "csv": lambda folder: (ROWS.to_csv(folder / "r.csv", index=False), folder / "r.csv")[1],
    "parquet": lambda folder: (ROWS.to_parquet(folder / "r.parquet"), folder / "r.parquet")[1],
    "pandas": lambda _: ROWS,
    "polars": lambda _: pl.from_pandas(ROWS),
    "dask": lambda _: dd.from_pandas(ROWS, npartitions=3),
}


@pytest.fixture(scope="module")
def models():
    X = ROWS[["a", "b"]]
    return {
        "t": (daskls.VoronoiSVC(**SMALL).fit(X.assign(t=ROWS.t), "t"), accuracy_score),
        "v": (daskls.VoronoiSVR(**SMALL).fit(X.assign(v=ROWS.v), "v"), r2_score),
        "quantile": (
            daskls.VoronoiQuantileRegressor(quantile=0.3, **SMALL).fit(X.assign(v=ROWS.v), "v"),
            lambda y, own, sample_weight: d2_pinball_score(
                y, own, alpha=0.3, sample_weight=sample_weight
            ),
        ),
    }


@pytest.mark.parametrize(
    ("kind", "table"), [*(("t", table) for table in TABLES), ("v", "csv"), ("quantile", "pandas")]
)
def test_a_score_is_weighed_by_a_column_or_an_array(kind, table, models, tmp_path):
    model, measure = models[kind]
    label, rows = model.table_.label, TABLES[table](tmp_path)
    answers = np.asarray(model.predict(rows))
    wanted = measure(ROWS[label], answers, sample_weight=ROWS.w)
    assert abs(wanted - measure(ROWS[label], answers, sample_weight=None)) > 0.05
    zarr.save_array(tmp_path / "w.zarr", ROWS.w.to_numpy())
    own = ROWS.w.to_numpy()
    for weight in ("w", own, da.from_array(own, chunks=70), ROWS.w, str(tmp_path / "w.zarr")):
        assert model.score(rows, label, sample_weight=weight) == pytest.approx(wanted, abs=1e-9)
    assert model.score(rows, sample_weight="w") == pytest.approx(wanted, abs=1e-9)


def test_a_feature_may_weigh_the_rows(models):
    model, _ = models["t"]
    wanted = accuracy_score(ROWS.t, model.predict(ROWS), sample_weight=ROWS.a)
    assert model.score(ROWS, "t", "a") == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ("u", "sample_weight is 'u', which is no column of .*columns are: a, b, t, v, w"),
        ("t", "which holds the labels"),
        (np.ones(299), "X has 300 rows, sample_weight has 299. Pass one value per row"),
        (np.r_[np.ones(299), np.nan], "sample_weight is nan in row 299; weights must be finite"),
        (np.r_[-1.0, np.ones(299)], "sample_weight is -1 in row 0; weights must be finite and"),
        (np.zeros(300), "sample_weight is 0 in all rows"),
    ],
)
def test_weights_by_which_nothing_can_be_scored_are_refused(weight, words, models, tmp_path):
    for rows in (ROWS, TABLES["csv"](tmp_path)):
        with pytest.raises(DataError, match=words):
            models["t"][0].score(rows, "t", sample_weight=weight)


def test_a_column_of_weights_with_a_gap_is_refused(models):
    gaps = ROWS.assign(w=ROWS.w.where(ROWS.index != 7))
    with pytest.raises(DataError, match="sample_weight is nan in row 7"):
        models["t"][0].score(gaps, "t", "w")
