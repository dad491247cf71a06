"""What other libraries say bare, or read oddly, is read or is one sentence of ours."""

import gzip

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import daskls
from daskls import DataError, TableEncoder
from daskls.datasets import convert

N = 240
RNG = np.random.default_rng(0)
ROWS = pd.DataFrame({"a": RNG.random(N), "b": RNG.random(N)})
ROWS["t"] = np.where(ROWS.a > 0.5, "over", "under")
SMALL = {"cell_size": 500, "C": 1.0, "gamma": 5.0, "random_state": 0}


def as_text(frame):
    return frame.assign(c=frame.c.astype(str))


def test_intervals_are_categories_in_any_frame(tmp_path):
    frame = ROWS.assign(c=pd.qcut(ROWS.b, 4))
    model = daskls.VoronoiSVC(**SMALL).fit(frame, "t")
    wanted = daskls.VoronoiSVC(**SMALL).fit(as_text(frame), "t")
    assert model.table_ == wanted.table_
    assert model.table_.columns[-1].categories == tuple(sorted(frame.c.astype(str).unique()))
    answers = wanted.predict(as_text(frame)).tolist()
    as_text(frame).to_csv(tmp_path / "q.csv", index=False)
    lazy = dd.from_pandas(frame, npartitions=3)
    assert TableEncoder("t").fit(lazy).table_ == wanted.table_
    given = frame, as_text(frame), frame.assign(c=pd.array(frame.c)), lazy, tmp_path / "q.csv"
    for query in given:
        assert np.asarray(model.predict(query)).tolist() == answers


def test_a_column_of_mixed_values_is_named():
    values = np.array([1, "x"] * (N // 2), dtype=object)
    frame = ROWS.assign(o=pd.Series(values))
    columns = {"o": ("r", values), "t": ("r", np.array(ROWS.t, dtype=object))}
    with dask.config.set({"dataframe.convert-string": False}):
        for table in (frame, xr.Dataset(columns), dd.from_pandas(frame, npartitions=2)):
            with pytest.raises(
                DataError, match=r"column 'o' that is neither numbers nor text .*astype"
            ):
                TableEncoder("t").fit(table)


def test_a_sparse_column_is_named():
    frame = ROWS.assign(o=pd.arrays.SparseArray(np.arange(N) % 2))
    with pytest.raises(DataError, match="sparse columns, but dense ones are required: 'o'"):
        TableEncoder("t").fit(frame)


def test_a_file_of_arrays_is_planned_by_its_rows(tmp_path):
    X, y, on = ROWS[["a", "b"]].to_numpy(), np.arange(N) % 3, {"workers": 1, "memory_limit": "1GiB"}
    same = daskls.VoronoiSVC(**SMALL).plan(X, y, **on)
    np.savez(tmp_path / "t.npz", X=X, y=y)
    np.save(tmp_path / "t.npy", np.column_stack([X, y]))
    for name, label in (("t.npz", None), ("t.npy", "2")):
        assert daskls.VoronoiSVC(**SMALL).plan(tmp_path / name, label, **on) == same
    assert {path.name for path in tmp_path.iterdir()} == {"t.npz", "t.npy"}


def damaged(content, start, stop):
    """Return bytes with noise between two places."""
    noise = np.random.default_rng(1).integers(0, 256, len(content[start:stop]), dtype=np.uint8)
    return b"".join([content[:start], noise.tobytes(), content[stop:] if stop else b""])


def broken_files(folder):
    """Yield names of files that no reader can read, and what is said of them."""
    ROWS.to_parquet(folder / "ok.parquet")
    ROWS.to_csv(folder / "ok.csv", index=False)
    parquet, text = ((folder / f"ok.{end}").read_bytes() for end in ("parquet", "csv"))
    packed = gzip.compress(text)
    contents = {
        "half.parquet": (parquet[: len(parquet) // 2], "is not a Parquet file: "),
        "footer.parquet": (damaged(parquet, -900, -8) + parquet[-8:], "is not a Parquet file: "),
        "half.csv.gz": (packed[: len(packed) // 2], "cannot be read: "),
        "blank.csv": (b"\n\r\n", "is empty; it must have a line of names and rows"),
        "sep.csv": (b"sep=;\n", "has no line of names and no rows"),
        "quote.csv": (b'a,b,t\n1,"2,x\n3,4,y\n', "cannot be read as a table: .*Correct or remove"),
        "long.csv": (b"x" * 200_000 + b",b,t\n1,2,x\n", "first line is too long for names"),
    }
    for name, (content, words) in contents.items():
        (folder / name).write_bytes(content)
        yield name, words
    for name in ("folder.csv", "folder.parquet", "folder.npz"):
        (folder / name).mkdir()
        yield name, "is a folder without files of tables"
    (folder / "gone.parquet").symlink_to(folder / "nowhere.parquet")
    yield "gone.parquet", "No such file"
    (folder / "parts").mkdir()
    (folder / "parts" / "p.csv").mkdir()
    yield "parts/*.csv", "No file matches '.*/parts/.*'; check the pattern"


def test_what_cannot_be_read_is_one_sentence(tmp_path):
    model = daskls.VoronoiSVC(**SMALL).fit(ROWS, "t")
    for name, words in broken_files(tmp_path):
        for call in (
            lambda path: daskls.VoronoiSVC(**SMALL).fit(path, "t"),
            lambda path: convert(path, tmp_path / "d", label="t"),
            model.predict,
            model.score,
        ):
            with pytest.raises(DataError, match=words) as told:
                call(tmp_path / name)
            assert "\n" not in str(told.value), name
