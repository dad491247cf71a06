"""Integers that float64 does not hold: refused as features and as numbers, kept as labels."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
import zarr

import daskls
from daskls import DataError, TableEncoder
from daskls.datasets import convert

N = 60
IDS = 2**53 + np.arange(N)
ROWS = pd.DataFrame({"a": np.arange(N) / 7, "id": IDS})
X, y = np.column_stack([np.arange(N), IDS]), np.arange(N) % 2
SMALL = {"cell_size": 100, "C": 1.0, "gamma": 1.0, "random_state": 0}
TOLD = r"9007199254740993.* row 1\b.*2\*\*53 = 9,007,199,254,740,992 become equal as float64"


def at(path, write):
    """Return a path after it is written."""
    write(path)
    return path


ARRAYS = {
    "NumPy": lambda _: X,
    "Dask": lambda _: da.from_array(X, chunks=(25, 2)),
    "Zarr": lambda folder: at(folder / "X.zarr", lambda path: zarr.save_array(path, X)),
    "Polars": lambda _: pl.from_pandas(ROWS),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_are_refused_in_training_and_in_queries(kind, tmp_path):
    rows = ARRAYS[kind](tmp_path)
    place = r".*, column ('id'|1);.*"
    words = TOLD.replace(r"\b.*", place)
    with pytest.raises(DataError, match=words):
        daskls.VoronoiSVC(**SMALL).fit(rows, y)
    small = ROWS.assign(id=y) if kind == "Polars" else X // 2**40
    model = daskls.VoronoiSVC(**SMALL).fit(small, y)
    with pytest.raises(DataError, match=words):
        np.asarray(model.predict(rows))


TABLES = {
    "pandas": lambda frame, _: frame,
    "Dask": lambda frame, _: dd.from_pandas(frame, npartitions=2),
    "CSV": lambda frame, folder: at(folder / "t.csv", lambda path: frame.to_csv(path, index=False)),
    "Parquet": lambda frame, folder: at(folder / "t.parquet", frame.to_parquet),
}


@pytest.mark.parametrize("kind", TABLES)
def test_columns_of_tables_are_refused_by_name(kind, tmp_path):
    table = TABLES[kind](ROWS.assign(t=y), tmp_path)
    with pytest.raises(DataError, match=f"column 'id' holds {TOLD}"):
        daskls.VoronoiSVC(**SMALL).fit(table, "t")
    with pytest.raises(DataError, match=f"column 'id' holds {TOLD}"):
        TableEncoder("t").fit(table)
    model = daskls.VoronoiSVC(**SMALL).fit(ROWS.assign(id=y, t=y), "t")
    # Of the parts of a lazy table, any may be the first that is read.
    told = TOLD.replace("0993.* row 1", r"\d+ in row (1|31)")
    with pytest.raises(DataError, match=f"column 'id' holds {told}"):
        np.asarray(model.predict(table))
    if kind in ("CSV", "Parquet"):
        with pytest.raises(DataError, match=f"column 'id' holds {TOLD}"):
            convert(table, tmp_path / "d", label="t", dtype="float64")


@pytest.mark.parametrize("kind", TABLES)
def test_numbers_to_predict_are_refused(kind, tmp_path):
    with pytest.raises(DataError, match=rf"(target|column) 'id'.*{TOLD.replace(' row 1', '')}"):
        daskls.VoronoiSVR(**SMALL).fit(TABLES[kind](ROWS, tmp_path), "id")
    with pytest.raises(DataError, match=f"y holds {TOLD}"):
        daskls.VoronoiSVR(**SMALL).fit(ROWS[["a"]].to_numpy(), np.column_stack([y, IDS]))
    np.savez(tmp_path / "t.npz", X=X[:, :1], y=IDS)
    with pytest.raises(DataError, match=r"target 'y' of row 1 .*9007199254740993"):
        daskls.VoronoiSVR(**SMALL).fit(tmp_path / "t.npz")


@pytest.mark.parametrize("kind", [*TABLES, "NumPy", "lazy"])
def test_labels_stay_exact(kind, tmp_path):
    labels = 2**53 + np.arange(N) % 3
    if kind in TABLES:
        table = TABLES[kind](ROWS[["a"]].assign(t=labels), tmp_path)
        given = table, "t"
    else:
        given = X[:, :1], labels if kind == "NumPy" else da.from_array(labels, chunks=20)
    daskls.VoronoiSVC(**SMALL).fit(*given).save(tmp_path / "m")
    model = daskls.load(tmp_path / "m")
    assert model.classes_.tolist() == [2**53, 2**53 + 1, 2**53 + 2]
    assert set(np.asarray(model.predict(given[0])).tolist()) <= {*labels.tolist()}
    assert model.score(*given) == np.mean(np.asarray(model.predict(given[0])) == labels)
