"""Text tables: their encodings, delimiters and headers, folders and patterns of them."""

import re

import numpy as np
import pandas as pd
import pytest
from support import HERE
from support import run_cli as run

import daskls
from daskls import DataError, TableEncoder
from daskls.datasets import convert
from daskls.sources.encoding import TableEncoding

RNG = np.random.default_rng(0)
N = 80
SMALL = {"cell_size": 200, "C": 1.0, "gamma": 5.0, "random_state": 0}


def rows(names=("a", "b"), n=N):
    """Return rows whose label says which column is larger."""
    frame = pd.DataFrame(RNG.random((n, len(names))), columns=list(names))
    frame["t"] = np.where(frame[names[0]] > frame[names[1]], "over", "under")
    return frame


def fitted(frame, path, label="t", **options):
    """Return a model of a file."""
    frame.to_csv(path, **{"index": False, **options})
    return daskls.VoronoiSVC(**SMALL).fit(path, label)


# Headers of queries.

NUMBERS = ("1", "2", "3")
QUERY = rows(NUMBERS)
X = QUERY.drop(columns="t")
WRITTEN = {
    "the features": (X, {"index": False}),
    "an index of pandas": (X, {}),
    "ids first": (X.assign(id=range(N))[["id", *NUMBERS]], {"index": False}),
    "ids last": (X.assign(id=range(N)), {"index": False}),
    "another number first": (X.assign(**{"0": 7.0})[["0", *NUMBERS]], {"index": False}),
    "another number last": (X.assign(**{"4": 7.0}), {"index": False}),
    "another order": (X[["3", "1", "2"]], {"index": False}),
    "the label": (QUERY, {"index": False}),
    "semicolons": (X, {"index": False, "sep": ";"}),
}


@pytest.fixture(scope="module")
def of_numbers(tmp_path_factory):
    return fitted(rows(NUMBERS, 300), tmp_path_factory.mktemp("numbers") / "train.csv")


@pytest.mark.parametrize("how", WRITTEN)
def test_a_header_of_numbers_is_no_row_of_a_query(how, of_numbers, tmp_path):
    frame, options = WRITTEN[how]
    wanted = of_numbers.predict(X)
    assert len(set(wanted)) == 2
    frame.to_csv(tmp_path / "q.csv", **options)
    assert of_numbers.predict(tmp_path / "q.csv").tolist() == wanted.tolist()
    frame.to_csv(tmp_path / "q.csv.gz", **options)
    assert of_numbers.predict(tmp_path / "q.csv*").tolist() == [*wanted, *wanted]
    encoded = TableEncoder().fit(X).to_zarr(tmp_path / "q.csv", tmp_path / "encoded").X[:]
    np.testing.assert_array_equal(encoded, X)


def test_the_command_line_answers_each_row_once(of_numbers, tmp_path):
    of_numbers.save(tmp_path / "m")
    QUERY.to_csv(tmp_path / "q.csv")
    run("predict", tmp_path / "m", tmp_path / "q.csv", tmp_path / "out.csv", *HERE)
    assert pd.read_csv(tmp_path / "out.csv").t.tolist() == of_numbers.predict(X).tolist()


def test_a_model_of_an_array_with_names_finds_them(tmp_path):
    model = daskls.VoronoiSVC(**SMALL).fit(X, QUERY.t.to_numpy())
    X.to_csv(tmp_path / "q.csv")
    assert model.predict(tmp_path / "q.csv").tolist() == model.predict(X).tolist()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,2\n.1,.2\n", "first line of .*q.csv, 1, 2, does not name the column '3' that"),
        (".1,.2,.3\n.4,.5,.6\n", "does not name the columns '1', '2', '3' .*line of the names"),
        ("a,b,c\n.1,.2,.3\n", "has no column '1', '2', '3', which the model was trained on"),
    ],
)
def test_a_query_without_the_names_of_a_model_is_refused(text, words, of_numbers, tmp_path):
    (tmp_path / "q.csv").write_text(text)
    with pytest.raises(DataError, match=words):
        of_numbers.predict(tmp_path / "q.csv")


@pytest.mark.parametrize("first", [(1, 0), (0, 0), (1, 1)])
def test_a_model_without_names_takes_the_first_line_of_a_query_as_a_row(first, tmp_path):
    flags = pd.DataFrame(RNG.integers(0, 2, (N, 2)))
    flags.iloc[0] = 1, 1
    model = fitted(flags.assign(t=flags[0]), tmp_path / "train.csv", "2", header=False)
    assert not model.table_.has_header
    flags.iloc[0] = first
    flags.to_csv(tmp_path / "q.csv", header=False, index=False)
    model.save(tmp_path / "m")
    for own in (model, daskls.load(tmp_path / "m")):
        assert own.predict(tmp_path / "q.csv").tolist() == flags[0].tolist()


@pytest.mark.parametrize("index", [False, True])
def test_a_line_that_may_be_numbers_of_columns_or_a_row_is_refused(index, tmp_path):
    flags = pd.DataFrame(RNG.integers(0, 2, (N, 2)))
    flags.iloc[0] = 1, 1
    model = fitted(flags.assign(t=flags[0]), tmp_path / "train.csv", "2", header=False)
    flags.to_csv(tmp_path / "q.csv", index=index)
    with pytest.raises(
        DataError, match=r"first line .* 0, 1: the numbers of its columns, or a row"
    ):
        model.predict(tmp_path / "q.csv")


def test_an_encoding_says_whether_its_table_named_the_columns(tmp_path):
    frame = pd.DataFrame(RNG.random((N, 2)), columns=["0", "1"])
    named = TableEncoder().fit(frame).table_
    frame.to_csv(tmp_path / "q.csv", header=False, index=False)
    numbered = TableEncoder().fit(tmp_path / "q.csv").table_
    assert named.has_header
    assert not numbered.has_header
    for table in (named, numbered, TableEncoder().fit(rows()).table_):
        assert TableEncoding.from_json(table.to_json()) == table
    # As of a model that was saved before this was kept.
    assert "has_header" not in numbered.to_json()
    assert "has_header" not in TableEncoder().fit(rows()).table_.to_json()


# Encodings.

LARGE = "größe"
ENCODINGS = ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("what", ["name", "category", "label", "late value"])
def test_text_that_is_not_utf_8_is_refused_with_the_encoding(what, encoding, tmp_path):
    frame = rows(n=40_000 if what == "late value" else N).assign(c="x")
    if what == "name":
        frame = frame.rename(columns={"a": LARGE})
    elif what == "label":
        frame["t"] = np.where(frame.t == "over", LARGE, "no")
    else:
        frame.loc[len(frame) - 1, "c"] = LARGE
    (tmp_path / "t.csv").write_bytes(frame.to_csv(index=False).encode(encoding))
    wanted = encoding[:6] if encoding.startswith("utf") else "cp1252"
    words = rf"t\.csv is not UTF-8 .*probably {wanted}.*iconv -f {wanted} -t utf-8, or "
    for call in (
        lambda: TableEncoder("t").fit(tmp_path / "t.csv"),
        lambda: daskls.VoronoiSVC(**SMALL).fit(tmp_path / "t.csv", "t"),
        lambda: convert(tmp_path / "t.csv", tmp_path / "d", label="t"),
    ):
        with pytest.raises(DataError, match=words) as told:
            call()
        assert "�" not in str(told.value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_text_that_is_utf_8_is_read(encoding, tmp_path):
    frame = rows().rename(columns={"a": LARGE}).assign(c=[LARGE, "�"] * (N // 2))
    path = tmp_path / "t.csv"
    path.write_bytes(frame.to_csv(index=False).encode(encoding))
    names = TableEncoder("t").fit(path).get_feature_names_out().tolist()
    assert names == [LARGE, "b", f"c={LARGE}", "c=�"]


def test_queries_in_another_encoding_are_refused(tmp_path):
    frame = rows().assign(c=[LARGE, "x"] * (N // 2))
    model = fitted(frame, tmp_path / "train.csv")
    (tmp_path / "q.csv").write_bytes(frame.to_csv(index=False).encode("latin-1"))
    for call in (model.predict, model.score):
        with pytest.raises(DataError, match=r"q\.csv is not UTF-8 \(.*Row #2\), but probably cp12"):
            call(tmp_path / "q.csv")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_libsvm_in_utf_16_is_refused_with_the_encoding(encoding, tmp_path):
    (tmp_path / "t.svm").write_bytes("1 1:1\n0 1:2\n".encode(encoding))
    with pytest.raises(DataError, match=rf"is not UTF-8 .*probably {encoding[:6]}"):
        daskls.VoronoiSVC(**SMALL).fit(tmp_path / "t.svm")


def test_libsvm_and_npz_in_another_encoding_are_refused(tmp_path):
    (tmp_path / "t.libsvm").write_bytes("größe 1:1\nno 1:2\n".encode("latin-1"))
    np.savez(tmp_path / "t.npz", X=np.ones((2, 1)), y=np.array(["größe".encode("latin-1"), b"no"]))
    for name in ("t.libsvm", "t.npz"):
        with pytest.raises(DataError, match=rf"{name}.* (is|are) not UTF-8"):
            daskls.VoronoiSVC(**SMALL).fit(tmp_path / name)
        told = run("fit", tmp_path / name, tmp_path / "m", *HERE, code=1).stderr
        assert "UTF-8" in told


# European CSV, and what stands above a header.

PLAIN = rows()
BODY = PLAIN.to_csv(index=False, header=False, sep=";")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('"a, mm";"b, mm";t\n' + BODY, ["a, mm", "b, mm"]),
        ('"a;mm;x;y","b"\n', None),
        ("a, mm;b, mm;t\n" + BODY, ["a, mm", "b, mm"]),
        ("sep=;\na;b;t\n" + BODY, ["a", "b"]),
        ("\ufeffsep=;\r\n\r\na;b;t\r\n" + BODY, ["a", "b"]),
        ("# made by tool, v1\na;b;t\n" + BODY, ["a", "b"]),
        ("# a, b\n# and; t\n\na;b;t\n" + BODY, ["a", "b"]),
        (PLAIN.to_csv(index=False, sep="|"), ["a", "b"]),
        (PLAIN.rename(columns={"a": "#a"}).to_csv(index=False), ["#a", "b"]),
        (PLAIN.rename(columns={"a": "p|q|r", "b": "b|c"}).to_csv(index=False), ["p|q|r", "b|c"]),
    ],
)
def test_what_stands_above_a_header_and_between_columns_is_found(text, names, tmp_path):
    path = tmp_path / "t.csv"
    if names is None:
        text, names = '"a;mm;x;y","b",t\n' + BODY.replace(";", ","), ["a;mm;x;y", "b"]
    path.write_text(text, encoding="utf-8", newline="")
    data = convert(path, tmp_path / "d", label="t", dtype="float64")
    assert data.feature_names == names
    np.testing.assert_array_equal(data.X[:], PLAIN[["a", "b"]])
    model = daskls.VoronoiSVC(**SMALL).fit(path, "t")
    assert model.feature_names_in_.tolist() == names
    assert len(model.predict(path)) == N


COMMAS = (
    "column 'a' holds numbers with commas .*write 1,5 as 1.5 and 1,000 as 1000; pandas.read_csv"
)


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.round(1).to_csv(index=False, sep=";", decimal=","),
        PLAIN.to_csv(index=False, sep=";", decimal=","),
        (PLAIN.assign(a=PLAIN.a / 1e6)).to_csv(index=False, sep=";", decimal=","),
        re.sub(r",0;", ";", PLAIN.round(1).to_csv(index=False, sep=";", decimal=",")),
        "a;b;t\n" + "".join(f"{int(r.a * 9e5):,};{r.b};{r.t}\n" for r in PLAIN.itertuples()),
        "a;b;t\n" + "".join(f"1.{i:03},5;{i};{'xy'[i % 2]}\n" for i in range(N)),
    ],
    ids=["few", "many", "exponents", "whole ones without", "thousands", "points and commas"],
)
def test_numbers_with_commas_are_told_however_many(text, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=COMMAS) as told:
        daskls.VoronoiSVC(**SMALL).fit(path, "t")
    assert "--drop" not in str(told.value)
    with pytest.raises(DataError, match=COMMAS):
        convert(path, tmp_path / "d", label="t")
    model = daskls.VoronoiSVC(**SMALL).fit(PLAIN.assign(a=PLAIN.a), "t")
    with pytest.raises(DataError, match=COMMAS):
        model.predict(path)
    with pytest.raises(DataError, match=r"from row 0 on: the target is '.*,.*'; write 1,5 as 1.5"):
        daskls.VoronoiSVR(**SMALL).fit(path, "a")


def test_lists_of_codes_in_a_frame_are_categories():
    frame = PLAIN.assign(a=["1", "1,2"] * (N // 2))
    assert TableEncoder("t").fit(frame).table_.columns[0].categories == ("1", "1,2")


@pytest.mark.parametrize("values", [PLAIN.a, np.arange(N) % 3])
@pytest.mark.parametrize("unit", ["mm", "-"])
def test_a_line_of_units_is_told(values, unit, tmp_path):
    path = tmp_path / "t.csv"
    body = PLAIN.assign(a=values).to_csv(index=False, header=False)
    path.write_text(f"a,b,t\n{unit},mm,x\n{body}")
    words = rf"'a' holds numbers below a first row of '{unit}', .*'b'.*remove that row if it is a"
    with pytest.raises(DataError, match=words):
        daskls.VoronoiSVC(**SMALL).fit(path, "t")
    for i in (1, 2):
        (tmp_path / f"part-{i}.csv").write_text(path.read_text())
    with pytest.raises(DataError, match=words):
        daskls.VoronoiSVC(**SMALL).fit(tmp_path / "part-*.csv", "t")


def test_a_title_above_the_names_is_told(tmp_path):
    (tmp_path / "t.csv").write_text("Report of May\na;b;t\n" + BODY)
    words = "columns are: Report of May. If its first line is not that of the names, remove what"
    for call in (
        lambda: daskls.VoronoiSVC(**SMALL).fit(tmp_path / "t.csv", "t"),
        lambda: convert(tmp_path / "t.csv", tmp_path / "d", label="t"),
    ):
        with pytest.raises(DataError, match=words):
            call()


# Folders and patterns.


def dealt(folder, n_parts=11, suffix="csv"):
    """Write rows as parts of a table, in natural order."""
    folder.mkdir(parents=True)
    for i, own in enumerate(np.array_split(np.arange(N), n_parts)):
        part = PLAIN.iloc[own]
        sep = "\t" if "tsv" in suffix else ","
        part.to_csv(folder / f"part-{i}.{suffix}", index=False, sep=sep)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz"])
def test_a_folder_of_text_files_is_one_table(suffix, tmp_path):
    folder = dealt(tmp_path / "t", suffix=suffix)
    (folder / "README.txt").write_text("made by hand")
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.csv.crc").touch()
    model = daskls.VoronoiSVC(**SMALL).fit(folder, "t")
    wanted = daskls.VoronoiSVC(**SMALL).fit(PLAIN, "t")
    np.testing.assert_array_equal(model.decision_function(PLAIN), wanted.decision_function(PLAIN))
    assert model.predict(folder).tolist() == wanted.predict(PLAIN).tolist()
    assert model.score(folder) == wanted.score(PLAIN)
    data = convert(folder, tmp_path / "d", label="t", dtype="float64")
    np.testing.assert_array_equal(data.X[:], PLAIN[["a", "b"]])
    run("fit", folder, tmp_path / "m", "--label", "t", *HERE)


def test_a_folder_of_two_formats_is_refused(tmp_path):
    folder = dealt(tmp_path / "t")
    PLAIN.to_parquet(folder / "more.parquet")
    with pytest.raises(
        DataError, match=r"files of one table have one suffix.* by a pattern, as in"
    ):
        daskls.VoronoiSVC(**SMALL).fit(folder, "t")


PATTERNS = ["*/*", "*/*/*", "kind=*/*", "kind=*", "*/part-0.*", "kind=[ab]/*/*"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("pattern", ["", *PATTERNS])
def test_columns_in_the_names_of_folders_are_not_lost_by_a_pattern(pattern, suffix, tmp_path):
    for folder in ("kind=a", "kind=b", "kind=a/year=7", "kind=b/year=7"):
        path = tmp_path / "t" / folder
        path.mkdir(parents=True)
        write = PLAIN.to_csv if suffix == "csv" else PLAIN.to_parquet
        write(path / f"part-0.{suffix}", index=False)
    given = tmp_path / "t" / pattern
    with pytest.raises(DataError, match=r"in the names of its folders \(kind=.\); pass it"):
        daskls.VoronoiSVC(**SMALL).fit(given, "t")
    with pytest.raises(DataError, match=r"in the names of its folders \(kind=.\); pass it"):
        convert(given, tmp_path / "d", label="t")


def test_one_folder_of_them_is_a_table_of_its_own(tmp_path):
    folder = dealt(tmp_path / "t" / "kind=a")
    for given in (folder, folder / "*.csv", folder / "part-?.csv"):
        assert TableEncoder("t").fit(given).feature_names_in_.tolist() == ["a", "b"]
