"""Text tables: their encodings, delimiters and headers, folders and patterns of them."""

import gzip
import re
import tempfile
import warnings
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest
from support import HERE
from support import run_cli as run

import daskls
from daskls import DataError, TableEncoder
from daskls.datasets import convert
from daskls.sources.encoding import TableEncoding
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
        DataError, match=r"first line .* 0, 1, which may be the numbers of its columns"
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
UNICODE = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
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
def test_text_of_any_encoding_is_the_same_text(what, encoding, tmp_path):
    frame = rows(n=40_000 if what == "late value" else N).assign(c="x")
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
        made = tmp_path / f"{path.name}.zarr"
        data = told(
            lambda path=path, made=made: convert(path, made, label="t"), is_unicode=is_unicode
        )
        assert data.classes == sorted(frame.t.unique())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_text_that_is_utf_8_is_read(encoding, tmp_path):
    frame = rows().rename(columns={"a": LARGE}).assign(c=[LARGE, "�"] * (N // 2))
    path = tmp_path / "t.csv"
    path.write_bytes(frame.to_csv(index=False).encode(encoding))
    names = TableEncoder("t").fit(path).get_feature_names_out().tolist()
    assert names == [LARGE, "b", f"c={LARGE}", "c=�"]


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
    """Return the values of a column of a file."""
    batches = open_text([path], TableHints(), "t").batches([name])
    return [value for batch in batches for value in batch.column(name).to_pylist()]


def test_parts_and_queries_may_be_in_other_encodings(tmp_path):
    frame = rows().assign(c=[LARGE, "x"] * (N // 2))
    model = fitted(frame, tmp_path / "train.csv")
    answers = model.predict(frame).tolist()
    for encoding in ("latin-1", "utf-16"):
        (tmp_path / f"q-{encoding}.csv").write_bytes(frame.to_csv(index=False).encode(encoding))
    for pattern, n in (("q-l*.csv", 1), ("q-u*.csv", 1), ("q-*.csv", 2)):
        for call in (model.predict, model.score):
            told(
                lambda call=call, pattern=pattern: call(tmp_path / pattern),
                is_unicode="u" in pattern,
            )
        found = told(lambda p=pattern: model.predict(tmp_path / p), is_unicode="u" in pattern)
        assert found.tolist() == answers * n


def test_what_is_no_text_is_told(tmp_path):
    path = tmp_path / "t.csv"
    for content, words in (
        (b"PK\x03\x04\x14\x00,\x00\x00x\n1,2\n", r"t\.csv is no text: it has zero bytes"),
        ("a,t\n1,x\n2,y\n".encode("utf-16")[:-1], r"t\.csv cannot be read as a table: .*truncated"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=words):
            TableEncoder("t").fit(path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "latin-1"])
def test_libsvm_of_any_encoding_is_read(encoding, tmp_path):
    (tmp_path / "t.libsvm").write_bytes("größe 1:1\nno 1:2\n".encode(encoding))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model = daskls.VoronoiSVC(**SMALL).fit(tmp_path / "t.libsvm")
    assert model.classes_.tolist() == ["größe", "no"]
    assert bool(found) == (encoding == "latin-1")


def test_labels_of_bytes_that_are_not_utf_8_are_refused(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.ones((2, 1)), y=np.array(["größe".encode("latin-1"), b"no"]))
    with pytest.raises(DataError, match=r"t\.npz.* are not UTF-8"):
        daskls.VoronoiSVC(**SMALL).fit(tmp_path / "t.npz")
    assert "UTF-8" in run("fit", tmp_path / "t.npz", tmp_path / "m", *HERE, code=1).stderr


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


def european(numbers, digits=2):
    """Return numbers as written with decimal commas, and points between thousands."""
    swap = str.maketrans(",.", ".,")
    return [f"{number:,.{digits}f}".translate(swap) for number in numbers]


LARGER = PLAIN.assign(a=PLAIN.a * 9e5).round(2)
WRITTEN_SO = {
    "few digits": (PLAIN.round(1), {"sep": ";", "decimal": ","}),
    "many digits": (PLAIN, {"sep": ";", "decimal": ","}),
    "tabs": (PLAIN, {"sep": "\t", "decimal": ","}),
    "quoted": (PLAIN, {"decimal": ","}),
    "exponents": (PLAIN.assign(a=PLAIN.a / 1e6), {"sep": ";", "decimal": ","}),
    "thousands": (LARGER, {"sep": ";"}),
    "spaces": (LARGER, {"sep": ";"}),
    "euros": (LARGER, {"sep": ";"}),
}


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("how", WRITTEN_SO)
def test_numbers_with_decimal_commas_are_numbers(how, header, tmp_path):
    frame, options = WRITTEN_SO[how]
    frame, given = frame.assign(w=1 + np.arange(N) % 5 / 4), frame
    if "decimal" not in options:
        spelled = {name: european(frame[name]) for name in ("a", "b", "w")}
        if how != "thousands":
            spelled["a"] = [
                text.replace(".", "\u00a0") if how == "spaces" else f"{text} €"
                for text in spelled["a"]
            ]
        given = frame.assign(**spelled)
    else:
        given = frame
    paths = tmp_path / "points.csv", tmp_path / "commas.csv"
    frame.to_csv(paths[0], index=False, header=header)
    given.to_csv(paths[1], index=False, header=header, **options)
    a, _, t, w = frame.columns if header else "0123"
    points, commas = (daskls.VoronoiSVC(**SMALL).fit(path, t, w) for path in paths)
    wanted = points.decision_function(paths[0])
    np.testing.assert_array_equal(commas.decision_function(paths[1]), wanted)
    sign = " and €" * (how == "euros")
    assert f"{a}: a number, written with decimal commas{sign}" in commas.table_.describe()
    assert points.score(paths[0], sample_weight=w) == commas.score(paths[1], sample_weight=w)
    made = [
        convert(path, f"{path}.zarr", label=a, task="regression", dtype="float64") for path in paths
    ]
    np.testing.assert_array_equal(made[0].y[:], made[1].y[:])
    np.testing.assert_array_equal(made[0].X[:], made[1].X[:])
    if header:
        # Of a table whose numbers are such, as of a frame.
        np.testing.assert_array_equal(commas.decision_function(frame), wanted)


def test_a_target_with_decimal_commas_is_that_with_points(tmp_path):
    paths = tmp_path / "points.csv", tmp_path / "commas.csv"
    PLAIN.to_csv(paths[0], index=False)
    PLAIN.to_csv(paths[1], index=False, sep=";", decimal=",")
    points, commas = (daskls.VoronoiSVR(**SMALL).fit(path, "a") for path in paths)
    np.testing.assert_array_equal(points.predict(paths[0]), commas.predict(paths[1]))
    assert points.score(paths[0]) == commas.score(paths[1])
    assert TableEncoder("a").fit(paths[1]).table_.label == "a"
    told = run("fit", paths[1], tmp_path / "m", "--label", "a", *HERE).stdout
    assert "a: it holds fractions, so they are taken as numbers, a regression" in told


def test_queries_with_points_are_refused_where_training_rows_had_commas(tmp_path):
    paths = tmp_path / "points.csv", tmp_path / "commas.csv"
    PLAIN.to_csv(paths[0], index=False)
    PLAIN.to_csv(paths[1], index=False, sep=";", decimal=",")
    points, commas = (daskls.VoronoiSVC(**SMALL).fit(path, "t") for path in paths)
    with pytest.raises(
        DataError, match=r"'a' holds '0\..* table has numbers with decimal commas\."
    ):
        commas.predict(paths[0])
    with pytest.raises(
        DataError, match=r"'a' holds '0,.* training table has numbers\. Write it in"
    ):
        points.predict(paths[1])


UNCERTAIN = "column 'a' holds numbers with commas .*write 1,5 as 1.5 and 1,000 as 1000, where it"


@pytest.mark.parametrize(
    "values", [["1,000", "2,000"], ["1,000", "5"], ["1,5", "1,234.5"]], ids=["all", "some", "both"]
)
def test_numbers_with_commas_that_are_not_certain_are_told(values, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;t\n" + "".join(f"{values[i % 2]};{'xy'[i % 2]}\n" for i in range(N)))
    with pytest.raises(DataError, match=UNCERTAIN) as told:
        daskls.VoronoiSVC(**SMALL).fit(path, "t")
    assert "--drop a, or fit(..., drop=['a'])" in str(told.value)
    with pytest.raises(DataError, match=UNCERTAIN):
        convert(path, tmp_path / "d", label="t")
    with pytest.raises(DataError, match=r"from row 0 on: the target is '1,.*; write 1,5 as 1.5"):
        daskls.VoronoiSVR(**SMALL).fit(path, "a")


def test_points_beside_decimal_commas_are_told_where_they_may_be_of_thousands(tmp_path):
    path = tmp_path / "t.csv"
    for number, is_told in (("1.234", True), ("1.5", False), ("7", False), ("0.234", False)):
        path.write_text(f"a;b;t\n{number};0,5;x\n2.345;1,25;y\n")
        if is_told:
            words = "'a' holds numbers as 1.234, beside columns with decimal commas; write 1.234 as"
            with pytest.raises(DataError, match=words):
                TableEncoder("t").fit(path)
        path.write_text(f"a;b;t\n{number};0,5;x\n2;1,25;y\n")
        if not is_told:
            data = convert(path, tmp_path / number, label="t")
            np.testing.assert_array_equal(data.X[:], [[float(number), 0.5], [2, 1.25]])


@pytest.mark.parametrize("kind", ["column", "label"])
def test_a_first_comma_in_row_100_000_counts_for_all(kind, tmp_path):
    n = 100_001
    frame = pd.DataFrame({"a": np.arange(n) % 1000 * 1000.0, "b": np.arange(n) % 7})
    frame.loc[n - 1, "a"] = 0.25
    text = frame.assign(a=[f"{x:,.0f}".replace(",", ".") for x in frame.a])
    text.loc[n - 1, "a"] = "0,25"
    frame.to_csv(tmp_path / "points.csv", index=False)
    text.to_csv(tmp_path / "commas.csv", index=False, sep=";")
    options = {"task": "regression", "label": "a" if kind == "label" else "b", "dtype": "float64"}
    points, commas = (
        convert(tmp_path / f"{own}.csv", tmp_path / own, **options) for own in ("points", "commas")
    )
    np.testing.assert_array_equal(points.X[:], commas.X[:])
    np.testing.assert_array_equal(points.y[:], commas.y[:])


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


def by_value(folder, suffix, frame=PLAIN):
    """Write rows in folders named by two columns; return them in the order of the files."""
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


PATTERNS = ["", "*", "year=*", "*/*", "*/*/*", "year=20?0/kind=*/part-0.*"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_folders_named_by_values_hold_columns(pattern, suffix, tmp_path):
    frame = by_value(tmp_path / "t", suffix)
    given = tmp_path / "t" / pattern
    encoder = TableEncoder("t").fit(given)
    assert encoder.feature_names_in_.tolist() == ["a", "b", "year", "kind"]
    wanted = TableEncoder("t").fit(frame)
    assert encoder.table_.feature_names == wanted.table_.feature_names
    data = encoder.to_zarr(given, tmp_path / "d")
    np.testing.assert_array_equal(data.X[:], wanted.transform(frame))
    for label in ("kind", "year"):
        made = convert(given, tmp_path / label, label=label)
        np.testing.assert_array_equal(np.array(made.classes)[made.y[:]], frame[label])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_models_of_folders_named_by_values(suffix, tmp_path):
    frame = by_value(tmp_path / "t", suffix)
    model = daskls.VoronoiSVC(**SMALL).fit(tmp_path / "t", "t")
    wanted = daskls.VoronoiSVC(**SMALL).fit(frame, "t")
    answers = wanted.decision_function(frame)
    for query in (tmp_path / "t", frame):
        np.testing.assert_array_equal(model.decision_function(query), answers)
    assert model.score(tmp_path / "t") == wanted.score(frame)
    assert model.plan(tmp_path / "t", "t").n_features == wanted.plan(frame, "t").n_features
    run("fit", tmp_path / "t", tmp_path / "m", "--label", "kind", *HERE)
    run("predict", tmp_path / "m", tmp_path / "t", tmp_path / "out.csv", *HERE)
    assert len(pd.read_csv(tmp_path / "out.csv")) == N


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


def test_folders_of_files_without_names(tmp_path):
    for year in (2000, 2010):
        (tmp_path / f"year={year}").mkdir()
        own = PLAIN.iloc[: N // 2] if year == 2000 else PLAIN.iloc[N // 2 :]
        own.to_csv(tmp_path / f"year={year}" / "p.csv", index=False, header=False)
    model = daskls.VoronoiSVC(**SMALL).fit(tmp_path / "*", "2")
    frame = PLAIN.assign(year=np.repeat([2000, 2010], N // 2))
    wanted = daskls.VoronoiSVC(**SMALL).fit(frame, "t").decision_function(frame)
    np.testing.assert_array_equal(model.decision_function(tmp_path / "*"), wanted)
    assert TableEncoding.from_json(model.table_.to_json()) == model.table_


def test_a_gap_in_the_name_of_a_folder_is_a_gap(tmp_path):
    frame = PLAIN.assign(year=[2000, None] * (N // 2)).astype({"year": "Int64"})
    frame.to_parquet(tmp_path / "t", partition_cols=["year"])
    (column,) = TableEncoder("t").fit(tmp_path / "t").table_.columns[2:]
    assert (column.name, column.kind, column.fill) == ("year", "number", 2000)


def test_files_in_folders_of_other_columns_are_refused(tmp_path):
    by_value(tmp_path / "t", "csv")
    PLAIN.to_csv(tmp_path / "t" / "more.csv", index=False)
    words = r"in the names of its folders .*, and .* has .*\. Files of one table have the same"
    with pytest.raises(DataError, match=words):
        daskls.VoronoiSVC(**SMALL).fit(tmp_path / "t", "t")
    (tmp_path / "t" / "more.csv").unlink()
    by_value(tmp_path / "u", "csv", PLAIN.rename(columns={"b": "c"}))
    for path in (tmp_path / "u").rglob("*.csv"):
        path.write_text(path.read_text().replace("c,", "year,", 1))
    with pytest.raises(DataError, match=r"holds '.*' in column 'year', and its folder is year=20"):
        daskls.VoronoiSVC(**SMALL).fit(tmp_path / "u", "t")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_column_may_be_in_files_and_in_names_of_folders(ending, tmp_path):
    for place, year in ((f"year={2000 + i}", 2000 + i) for i in range(3)):
        (tmp_path / "t" / place).mkdir(parents=True)
        own = PLAIN[year % 3 :: 3].assign(year=year)
        getattr(own, f"to_{ending}")(tmp_path / "t" / place / f"rows.{ending}", index=False)
    (year,) = TableEncoder("t").fit(tmp_path / "t").table_.columns[2:]
    assert (year.name, year.kind) == ("year", "number")


def test_numbers_of_folders_keep_their_spelling(tmp_path):
    for kind in ("01", "02", "1e3"):
        (tmp_path / "t" / f"kind={kind}").mkdir(parents=True)
        PLAIN.to_parquet(tmp_path / "t" / f"kind={kind}" / "rows.parquet", index=False)
    found = TableEncoder("t").fit(tmp_path / "t").table_.columns[2]
    assert found.categories == ("01", "02", "1e3")


def test_one_folder_of_them_is_a_table_of_its_own(tmp_path):
    folder = dealt(tmp_path / "t" / "kind=a")
    for given in (folder, folder / "*.csv", folder / "part-?.csv"):
        assert TableEncoder("t").fit(given).feature_names_in_.tolist() == ["a", "b"]
