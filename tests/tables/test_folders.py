"""Folders and patterns of files, and the columns that the names of folders hold."""

import tempfile
from pathlib import Path
from urllib.parse import quote

import hypothesis
import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

from daskls import DataError, TableEncoder
from daskls.datasets import convert
from daskls.sources.formats import open_source

RNG = np.random.default_rng(0)
N = 80
PLAIN = pd.DataFrame(RNG.random((N, 2)), columns=["a", "b"])
PLAIN["t"] = np.where(PLAIN.a > PLAIN.b, "over", "under")


def test_a_folder_of_text_files_is_one_table(tmp_path):
    for suffix, sep in (("csv", ","), ("tsv", "\t"), ("csv.gz", ",")):
        folder = tmp_path / suffix
        folder.mkdir()
        for i, own in enumerate(np.array_split(np.arange(N), 11)):
            PLAIN.iloc[own].to_csv(folder / f"part-{i}.{suffix}", index=False, sep=sep)
        for name in ("README.txt", "_SUCCESS", ".part-0.csv.crc"):
            (folder / name).write_text("made by hand")
        data = convert(folder, tmp_path / f"{suffix}.zarr", label="t", dtype="float64")
        np.testing.assert_array_equal(data.X[:], PLAIN[["a", "b"]])
    PLAIN.to_parquet(tmp_path / "csv" / "more.parquet")
    with pytest.raises(DataError, match=r"files of one table have one suffix.* by a pattern, as"):
        TableEncoder("t").fit(tmp_path / "csv")


def by_value(folder, suffix, frame=PLAIN):
    years, kinds = 2000 + np.arange(N) % 2 * 10, np.array(["b c", "a"])[np.arange(N) // 40]
    # In the order of the files.
    order = list(frame.assign(year=years, kind=kinds).groupby(["year", "kind"]))
    for (year, kind), own in order:
        path = folder / f"year={year}" / f"kind={quote(kind)}"
        path.mkdir(parents=True)
        rest = own.drop(columns=["year", "kind"])
        if suffix == "csv":
            rest.to_csv(path / "part-0.csv", index=False)
        else:
            rest.to_parquet(path / "part-0.parquet")
    return pd.concat([own for _, own in order], ignore_index=True)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_folders_named_by_values_hold_columns(suffix, tmp_path):
    frame = by_value(tmp_path / "t", suffix)
    wanted = TableEncoder("t").fit(frame)
    for i, pattern in enumerate(["", "*", "*/*", "year=20?0/kind=*/part-0.*"]):
        given = tmp_path / "t" / pattern
        encoder = TableEncoder("t").fit(given)
        assert encoder.feature_names_in_.tolist() == ["a", "b", "year", "kind"]
        assert encoder.table_.feature_names == wanted.table_.feature_names
        data = encoder.to_zarr(given, tmp_path / f"d{i}")
        np.testing.assert_array_equal(data.X[:], wanted.transform(frame))
        for label in ("kind", "year"):
            made = convert(given, tmp_path / f"{label}{i}", label=label)
            np.testing.assert_array_equal(np.array(made.classes)[made.y[:]], frame[label])


@hypothesis.settings(max_examples=60, deadline=None, derandomize=True, database=None)
@hypothesis.given(st.lists(st.text("aä /=%+&.5", min_size=1, max_size=4), min_size=1, max_size=6))
def test_values_in_the_names_of_folders_are_those_written(texts):
    frame = pd.DataFrame({"a": range(len(texts)), "c": [f"{text}x" for text in texts]})
    with tempfile.TemporaryDirectory() as folder:
        frame.to_parquet(f"{folder}/t", partition_cols=["c"])
        table = open_source(f"{folder}/t").open(None, Path(folder))
        read = pd.concat([batch.to_pandas() for batch in table.batches(["c", "a"])])
    found = read.sort_values("a").c.tolist()
    assert found == frame.c.tolist()
    assert table.names == ["a", "c"]


def test_values_of_folders_are_read_as_columns_are(tmp_path):
    frame = PLAIN.assign(year=[2000, None] * (N // 2)).astype({"year": "Int64"})
    frame.to_parquet(tmp_path / "t", partition_cols=["year"])
    (column,) = TableEncoder("t").fit(tmp_path / "t").table_.columns[2:]
    assert (column.name, column.kind, column.fill) == ("year", "number", 2000)
    # Numbers keep their spelling.
    PLAIN.assign(kind=["01", "1e3"] * (N // 2)).to_parquet(tmp_path / "u", partition_cols=["kind"])
    assert TableEncoder("t").fit(tmp_path / "u").table_.columns[2].categories == ("01", "1e3")
    # One of them is a table of its own.
    assert TableEncoder("t").fit(tmp_path / "u" / "kind=01").table_.feature_names == ["a", "b"]


def test_files_in_folders_of_other_columns_are_refused(tmp_path):
    by_value(tmp_path / "t", "csv")
    PLAIN.to_csv(tmp_path / "t" / "more.csv", index=False)
    words = r"in the names of its folders .*, and .* has .*\. Files of one table have the same"
    with pytest.raises(DataError, match=words):
        TableEncoder("t").fit(tmp_path / "t")
    by_value(tmp_path / "u", "csv", PLAIN.rename(columns={"b": "c"}))
    for path in (tmp_path / "u").rglob("*.csv"):
        path.write_text(path.read_text().replace("c,", "year,", 1))
    with pytest.raises(DataError, match=r"holds '.*' in column 'year', and its folder is year=20"):
        TableEncoder("t").fit(tmp_path / "u")
