"""What holds a table, by its name in docs/data.md: from a DataFrame and a new folder."""

import tempfile
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import polars as pl
import pyarrow as pa
import xarray as xr
from pyarrow import feather, orc


def written(method, name, **options):
    """Return what writes a DataFrame as a file, by one of its methods."""

    def write(frame, folder):
        path = Path(tempfile.mkdtemp(dir=folder), name)
        getattr(frame, method)(path, **options)
        return path

    return write


def in_parts(method, suffix, **options):
    """Return what writes twelve files: part 10 comes after part 9."""

    def write(frame, folder):
        folder = Path(tempfile.mkdtemp(dir=folder))
        for i, rows in enumerate(np.array_split(np.arange(len(frame)), 12)):
            getattr(frame.iloc[rows], method)(folder / f"part-{i}{suffix}", **options)
        return folder

    return write


def by_arrow(write, suffix, **options):
    """Return what writes a DataFrame by a writer of pyarrow."""

    def of_frame(frame, folder):
        path = Path(tempfile.mkdtemp(dir=folder), f"rows{suffix}")
        write(pa.Table.from_pandas(frame, preserve_index=False), path, **options)
        return path

    return of_frame


def csv(name="rows.csv", **options):
    return written("to_csv", name, index=False, **options)


JSON_LINES = {"orient": "records", "lines": True, "double_precision": 15, "date_format": "iso"}
FILES = {
    "CSV": csv(),
    "CSV, columns in another order": lambda frame, folder: csv()(
        frame[frame.columns[::-1]], folder
    ),
    "CSV, packed (.gz)": csv("rows.csv.gz"),
    "CSV of semicolons": csv(sep=";"),
    "CSV of decimal commas": csv(sep=";", decimal=","),
    "CSV in UTF-16": csv(encoding="utf-16"),
    "TSV": csv("rows.tsv", sep="\t"),
    "pattern of CSV files": lambda frame, folder: (
        in_parts("to_csv", ".csv", index=False)(frame, folder) / "part-*.csv"
    ),
    "Parquet file": written("to_parquet", "rows.parquet", row_group_size=64),
    "Parquet folder": in_parts("to_parquet", ".parquet"),
    "Feather or Arrow file": by_arrow(feather.write_feather, ".feather", chunksize=64),
    "ORC": by_arrow(orc.write_table, ".orc"),
    "JSON lines": written("to_json", "rows.jsonl", **JSON_LINES),
}


def with_categories(frame):
    return frame.astype(dict.fromkeys(frame.select_dtypes(exclude=["number", "bool"]), "category"))


FRAMES = {
    "pandas": lambda frame, _: frame,
    "pandas with categories": lambda frame, _: with_categories(frame),
    "Dask DataFrame": lambda frame, _: dd.from_pandas(frame, npartitions=3),
    "Polars": lambda frame, _: pl.from_pandas(frame),
    "Polars, lazy": lambda frame, _: pl.from_pandas(frame).lazy(),
    "Arrow table": lambda frame, _: pa.Table.from_pandas(frame, preserve_index=False),
    "xarray Dataset": lambda frame, _: xr.Dataset.from_dataframe(frame).chunk({"index": 150}),
}
TABLES = {**FILES, **FRAMES}
