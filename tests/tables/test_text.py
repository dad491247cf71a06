"""Text tables: their encodings, delimiters and headers, folders and patterns of them."""

import gzip
import re
import tempfile
import warnings
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import daskls
from daskls import DataError, TableEncoder
from daskls.datasets import convert
from daskls.sources.files import open_text
from daskls.sources.formats import open_source
from daskls.sources.header import TableHints

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

LETTERS = "aäßé, \n\"'x"
RNG = np.random.default_rng(0)
N = 80
SMALL = {"cell_size": 200, "C": 1.0, "gamma": 5.0, "random_state": 0}


def rows(names=("a", "b"), n=N):
    frame = pd.DataFrame(RNG.random((n, len(names))), columns=list(names))
    frame["t"] = np.where(frame[names[0]] > frame[names[1]], "over", "under")
    return frame


def fitted(frame, path, label="t", **options):
    frame.to_csv(path, **{"index": False, **options})
    return daskls.VoronoiSVC(**SMALL).fit(path, label)


NUMBERS = ("1", "2", "3")
QUERY = rows(NUMBERS)
X = QUERY.drop(columns="t")
WRITTEN = {
    "the features": (X, {"index": False}),
    "an index of pandas": (X, {}),
    "ids first": (X.assign(id=range(N))[["id", *NUMBERS]], {"index": False}),
    "another number last": (X.assign(**{"4": 7.0}), {"index": False}),
    "another order": (X[["3", "1", "2"]], {"index": False}),
}


def test_a_header_of_numbers_is_no_row_of_a_query(tmp_path):
    of_numbers = fitted(rows(NUMBERS, 300), tmp_path / "train.csv")
    wanted = of_numbers.predict(X)
    assert len(set(wanted)) == 2
    for how, (frame, options) in WRITTEN.items():
        frame.to_csv(tmp_path / "q.csv", **options)
        assert of_numbers.predict(tmp_path / "q.csv").tolist() == wanted.tolist(), how
        frame.to_csv(tmp_path / "q.csv.gz", **options)
        assert of_numbers.predict(tmp_path / "q.csv*").tolist() == [*wanted, *wanted]
        encoded = TableEncoder().fit(X).to_zarr(tmp_path / "q.csv", tmp_path / how).X[:]
        np.testing.assert_array_equal(encoded, X)
    for text, words in (
        (".1,.2,.3\n.4,.5,.6\n", "does not name the columns '1', '2', '3' .*line of the names"),
        ("a,b,c\n.1,.2,.3\n", "has no column '1', '2', '3', which the model was trained on"),
    ):
        (tmp_path / "q.csv").write_text(text)
        with pytest.raises(DataError, match=words):
            of_numbers.predict(tmp_path / "q.csv")


def test_a_model_without_names_takes_the_first_line_of_a_query_as_a_row(tmp_path):
    flags = pd.DataFrame(RNG.integers(0, 2, (N, 2)))
    flags.iloc[0] = 1, 1
    model = fitted(flags.assign(t=flags[0]), tmp_path / "train.csv", "2", header=False)
    # Unless it may be the numbers of the columns as well.
    flags.to_csv(tmp_path / "q.csv", index=False)
    with pytest.raises(DataError, match=r"first line .* 0, 1, which may be the numbers of its"):
        model.predict(tmp_path / "q.csv")
    flags.to_csv(tmp_path / "q.csv", header=False, index=False)
    model.save(tmp_path / "m")
    for own in (model, daskls.load(tmp_path / "m")):
        assert own.predict(tmp_path / "q.csv").tolist() == flags[0].tolist()


LARGE = "größe"
UNICODE = ["utf-8-sig", "utf-16", "utf-16-be", "utf-32"]
OF_BYTES = ["latin-1", "cp1252"]
NOT_UNICODE = r"\.csv(\.gz)? is not UTF-8: .*taken for cp1252 .*iconv -f ENCODING -t utf-8"


def told(call, *, is_unicode):
    """Return what a call returns, and see that it warns once of text that is not Unicode."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        answer = call()
    assert [bool(re.search(NOT_UNICODE, str(own.message))) for own in found] == [True] * (
        not is_unicode
    )
    return answer


@pytest.mark.parametrize("encoding", UNICODE + OF_BYTES)
@pytest.mark.parametrize("what", ["name", "category", "label", "late value"])
def test_text_of_any_encoding_is_the_same_text(what, encoding, tmp_path, monkeypatch):
    # As of larger files: what is late is in no part that was looked at before.
    monkeypatch.setattr("daskls.sources.files.TEXT_BLOCK_NBYTES", 1 << 14)
    monkeypatch.setattr("daskls.sources.header.HEAD_NBYTES", 1 << 14)
    frame = rows(n=2000 if what == "late value" else N).assign(c="x")
    label = "€ über" if encoding == "cp1252" else LARGE
    if what == "name":
        frame = frame.rename(columns={"a": label})
    elif what == "label":
        frame["t"] = np.where(frame.t == "over", label, "no")
    else:
        frame.loc[len(frame) - 1, "c"] = label
    wanted = TableEncoder("t").fit(frame)
    for path in (tmp_path / "t.csv", tmp_path / "t.csv.gz"):
        pack = gzip.compress if path.suffix == ".gz" else bytes
        path.write_bytes(pack(frame.to_csv(index=False).encode(encoding)))
        is_unicode = encoding in UNICODE
        encoder = told(lambda path=path: TableEncoder("t").fit(path), is_unicode=is_unicode)
        names = encoder.get_feature_names_out().tolist()
        assert names == wanted.get_feature_names_out().tolist()
        data = told(
            lambda path=path: convert(path, f"{path}.zarr", label="t"), is_unicode=is_unicode
        )
        assert data.classes == sorted(frame.t.unique())


@hypothesis.settings(max_examples=100, deadline=None, derandomize=True, database=None)
@hypothesis.given(
    st.lists(st.text(LETTERS, max_size=5).map("{}ö".format), min_size=1, max_size=9), st.data()
)
def test_each_value_is_read_in_its_own_encoding(texts, data):
    encodings = [data.draw(st.sampled_from(["utf-8", "latin-1"])) for _ in texts]
    lines = [f'1,"{text.replace(chr(34), chr(34) * 2)}"\n' for text in texts]
    content = [line.encode(own) for line, own in zip(lines, encodings, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        path.write_bytes(b"".join([b"a,c\n", *content]))
        found = told(lambda: table_at(path, "c"), is_unicode="latin-1" not in encodings)
    assert found == texts


def table_at(path, name):
    batches = open_text([path], TableHints(), "t").batches([name])
    return [value for batch in batches for value in batch.column(name).to_pylist()]


def test_what_is_no_text_is_told(tmp_path):
    path = tmp_path / "t.csv"
    for content, words in (
        (b"PK\x03\x04\x14\x00,\x00\x00x\n1,2\n", r"t\.csv is no text: it has zero bytes"),
        ("a,t\n1,x\n2,y\n".encode("utf-16")[:-1], r"t\.csv cannot be read as a table: .*truncated"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=words):
            TableEncoder("t").fit(path)


def test_libsvm_of_any_encoding_is_read_but_labels_of_other_bytes(tmp_path):
    for encoding in ("utf-16", "utf-16-le", "latin-1"):
        (tmp_path / "t.libsvm").write_bytes("größe 1:1\nno 1:2\n".encode(encoding))
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            model = daskls.VoronoiSVC(**SMALL).fit(tmp_path / "t.libsvm")
        assert model.classes_.tolist() == ["größe", "no"]
        assert bool(found) == (encoding == "latin-1")
    np.savez(tmp_path / "t.npz", X=np.ones((2, 1)), y=np.array(["größe".encode("latin-1"), b"no"]))
    with pytest.raises(DataError, match=r"t\.npz.* are not UTF-8"):
        daskls.VoronoiSVC(**SMALL).fit(tmp_path / "t.npz")


# European CSV, and what stands above a header.

PLAIN = rows()
BODY = PLAIN.to_csv(index=False, header=False, sep=";")


HEADERS = (
    ('"a, mm";"b, mm";t\n' + BODY, ["a, mm", "b, mm"]),
    ("sep=;\na;b;t\n" + BODY, ["a", "b"]),
    ("\ufeffsep=;\r\n\r\na;b;t\r\n" + BODY, ["a", "b"]),
    ("# a, b\n# and; t\n\na;b;t\n" + BODY, ["a", "b"]),
    (PLAIN.to_csv(index=False, sep="|"), ["a", "b"]),
    (PLAIN.rename(columns={"a": "#a"}).to_csv(index=False), ["#a", "b"]),
    (PLAIN.rename(columns={"a": "p|q|r", "b": "b|c"}).to_csv(index=False), ["p|q|r", "b|c"]),
)


def test_what_stands_above_a_header_and_between_columns_is_found(tmp_path):
    path = tmp_path / "t.csv"
    for i, (text, names) in enumerate(HEADERS):
        path.write_text(text, encoding="utf-8", newline="")
        data = convert(path, tmp_path / f"{i}", label="t", dtype="float64")
        assert data.feature_names == names
        np.testing.assert_array_equal(data.X[:], PLAIN[["a", "b"]])
        model = daskls.VoronoiSVC(**SMALL).fit(path, "t")
        assert model.feature_names_in_.tolist() == names
        assert len(model.predict(path)) == N


def test_targets_and_queries_with_decimal_commas(tmp_path):
    paths = tmp_path / "points.csv", tmp_path / "commas.csv"
    PLAIN.to_csv(paths[0], index=False)
    PLAIN.to_csv(paths[1], index=False, sep=";", decimal=",")
    points, commas = (daskls.VoronoiSVR(**SMALL).fit(path, "a") for path in paths)
    np.testing.assert_array_equal(points.predict(paths[0]), commas.predict(paths[1]))
    # Queries are written as training rows were.
    points, commas = (TableEncoder("t").fit(path) for path in paths)
    for encoder, path, words in (
        (commas, paths[0], r"'a' holds '0\..* table has numbers with decimal commas\."),
        (points, paths[1], r"'a' holds '0,.* training table has numbers\. Write it in"),
    ):
        with pytest.raises(DataError, match=words):
            encoder.to_zarr(path, tmp_path / "d")


def test_commas_and_points_that_may_be_of_thousands_are_told(tmp_path):
    path, told = tmp_path / "t.csv", "'a' holds numbers as 1.234, beside columns with decimal com"
    path.write_text("a;b;t\n1.234;0,5;x\n2.345;1,25;y\n")
    with pytest.raises(DataError, match=told):
        TableEncoder("t").fit(path)
    with pytest.raises(DataError, match=told):
        daskls.VoronoiSVR().fit(path, "a")
    path.write_text("a;t\n1,000;x\n5;y\n")
    with pytest.raises(DataError, match=r"row 0 on: the target is '1,000'; write 1,5 as 1\.5"):
        daskls.VoronoiSVR().fit(path, "a")


def test_a_line_of_units_is_told(tmp_path):
    words = r"'a' holds numbers below a first row of 'mm', .*'b'.*remove that row if it is a"
    for i, values in enumerate((PLAIN.a, np.arange(N) % 3)):
        body = PLAIN.assign(a=values).to_csv(index=False, header=False)
        (tmp_path / f"part-{i}.csv").write_text(f"a,b,t\nmm,mm,x\n{body}")
        for own in (f"part-{i}.csv", "part-*.csv"):
            with pytest.raises(DataError, match=words):
                TableEncoder("t").fit(tmp_path / own)


# What other libraries say bare, or read oddly, is read or is one sentence of ours


def as_text(frame):
    return frame.assign(c=frame.c.astype(str))


def test_intervals_are_categories_in_any_frame(tmp_path):
    frame = PLAIN.assign(c=pd.qcut(PLAIN.b, 4))
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
    frame = PLAIN.assign(o=pd.Series(values))
    columns = {"o": ("r", values), "t": ("r", np.array(PLAIN.t, dtype=object))}
    with dask.config.set({"dataframe.convert-string": False}):
        for table in (frame, xr.Dataset(columns), dd.from_pandas(frame, npartitions=2)):
            with pytest.raises(DataError, match=r"'o' that is neither numbers nor text .*astype"):
                TableEncoder("t").fit(table)
    frame["o"] = pd.arrays.SparseArray(np.arange(N) % 2)
    with pytest.raises(DataError, match="sparse columns, but dense ones are required: 'o'"):
        TableEncoder("t").fit(frame)


def test_a_file_of_arrays_is_planned_by_its_rows(tmp_path):
    X, y, on = (
        PLAIN[["a", "b"]].to_numpy(),
        np.arange(N) % 3,
        {"workers": 1, "memory_limit": "1GiB"},
    )
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
    PLAIN.to_parquet(folder / "ok.parquet")
    PLAIN.to_csv(folder / "ok.csv", index=False)
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
    model = daskls.VoronoiSVC(**SMALL).fit(PLAIN, "t")
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
    source = open_source(tmp_path / "ok.parquet").open("t", tmp_path)
    (tmp_path / "ok.parquet").write_bytes(b"")
    with pytest.raises(DataError, match=r"ok\.parquet cannot be read: .*changed; write it again"):
        list(source.batches(["a"]))
