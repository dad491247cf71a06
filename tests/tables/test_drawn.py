"""Tables drawn at random: each row has its own label, whatever container it came or is asked in.

One nearest neighbor knows the label of every training row, as the rows are distinct. So a row that
was paired with another's label shows, and so does an answer in another's place.
"""

import functools
import itertools
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from small import answers_of, small

from daskls import KernelKNNClassifier

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

# Of dask.dataframe.read_parquet with pandas 3.1.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")

# What a table is made of. New kinds go into these dicts: of columns, labels and indexes (from a
# random generator and a number of rows), of tables (from a DataFrame and a `SampledRows`), and of
# features and labels apart (from a DataFrame of features, a series of labels, and a `SampledRows`).

COLUMNS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "float": lambda rng, n: rng.integers(-99, 99, n) / 8,
    "float32": lambda rng, n: (rng.integers(-9, 9, n) / 4).astype("f4"),
    "int": lambda rng, n: rng.integers(-9, 9, n),
    "int8": lambda rng, n: rng.integers(-9, 9, n).astype("i1"),
    "bool": lambda rng, n: rng.random(n) < 0.5,
    "text": lambda rng, n: rng.choice(["u", "v v", "é"], n),
    "category": lambda rng, n: pd.Categorical(rng.choice(["lo", "hi"], n), categories=["lo", "hi"]),
}
# What files may spell in more than one way.
MORE_COLUMNS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "gaps": lambda rng, n: np.where(rng.random(n) < 0.3, np.nan, rng.integers(-9, 9, n) / 4),
    "Int64": lambda rng, n: with_gaps(rng, rng.integers(-9, 9, n), "Int64"),
    "boolean": lambda rng, n: with_gaps(rng, rng.random(n) < 0.5, "boolean"),
    "string": lambda rng, n: with_gaps(rng, rng.choice(["u", "w"], n), "string"),
    "objects": lambda rng, n: with_gaps(rng, rng.choice(["u", "w"], n), object),
    "numbers": lambda rng, n: pd.Categorical(rng.integers(0, 3, n)),
    "days": lambda rng, n: with_gaps(rng, rng.integers(0, 99, n), "datetime64[s]"),
}
NUMBERS = ["float", "float32", "int", "int8"]
LABELS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "text": lambda rng, n: rng.choice(["p", "q r", "s"], n),
    "int": lambda rng, n: rng.integers(-1, 3, n),
    "bool": lambda rng, n: rng.random(n) < 0.5,
    "category": lambda rng, n: pd.Categorical(rng.choice(["no", "yes"], n)),
}
INDEXES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "rows": lambda rng, n: pd.RangeIndex(n),
    "later rows": lambda rng, n: pd.RangeIndex(100, 100 + n),
    "repeated": lambda rng, n: np.sort(rng.integers(0, 5, n)),
    "in disorder": lambda rng, n: rng.permutation(n),
    "days": lambda rng, n: pd.date_range("2024-02-27", periods=n),
    "names": lambda rng, n: [f"row {i:03}" for i in range(n)],
}


def with_gaps(rng: np.random.Generator, values: Any, dtype: Any) -> Any:
    """Return values of a dtype of pandas, some of which may be missing."""
    found = pd.Series(values).astype(dtype)
    return found.mask(rng.random(len(found)) < rng.choice([0.0, 0.3])).array


@dataclass
class SampledRows:
    """Random numbers and a folder, of which containers are made."""

    rng: np.random.Generator
    folder: Path

    def cuts(self, n: int, *, least: int = 0) -> list[tuple[int, int]]:
        """Return bounds of parts, of at least so many rows each."""
        inner = sorted(self.rng.integers(0, n + 1, self.rng.integers(0, 4)).tolist())
        bounds = [0]
        for bound in [*inner, n]:
            if bound - bounds[-1] >= least and (bound == n or n - bound >= least):
                bounds.append(bound)
        return list(itertools.pairwise(bounds))

    def parts(self, values: Any, *, least: int = 0) -> list[Any]:
        """Return parts of a frame or series."""
        return [values.iloc[a:b] for a, b in self.cuts(len(values), least=least)]

    def path(self, name: str) -> Path:
        """Return the path of a new file or folder."""
        return Path(tempfile.mkdtemp(dir=self.folder)) / name


def as_files(frame: Any, drawn: SampledRows, ending: str, *, as_one: bool = False) -> list[Path]:
    """Write a DataFrame as one file, or as parts of it."""
    parts = [frame] if as_one else drawn.parts(frame, least=1)
    folder = drawn.path("parts")
    folder.mkdir()
    for i, part in enumerate(parts):
        if ending == ".parquet":
            part.to_parquet(folder / f"{i}.parquet")
        else:
            sep = "\t" if ending.startswith(".tsv") else ","
            part.to_csv(folder / f"{i}{ending}", index=False, sep=sep)
    return sorted(folder.iterdir())


def as_dask(values: Any, drawn: SampledRows) -> Any:
    """Return a frame or series as a Dask one, in parts that are drawn, with or without divisions.

    Each part may count its own rows, as those of files do. A frame of categories is not read from
    files, whose parts know their own categories only.
    """
    kinds = ["known", "delayed", "map"]
    frame = values if values.ndim == 2 else values.to_frame()
    if not any(str(kind) == "category" for kind in frame.dtypes):
        kinds += ["csv", "parquet"]
    kind = drawn.rng.choice(kinds)
    if kind == "known":
        n_parts = int(drawn.rng.integers(1, 5))
        sort = frame.index.is_monotonic_increasing
        lazy = dd.from_pandas(values, npartitions=n_parts, sort=bool(sort))
    elif kind in ("delayed", "map"):
        parts = drawn.parts(values)
        if drawn.rng.random() < 0.7:
            parts = [part.reset_index(drop=True) for part in parts]
        if kind == "delayed":
            lazy = dd.from_delayed([dask.delayed(part) for part in parts], meta=parts[0].iloc[:0])
        else:
            lazy = dd.from_map(lambda i: parts[i], range(len(parts)), meta=parts[0].iloc[:0])
    else:
        read = dd.read_csv if kind == "csv" else dd.read_parquet
        files = as_files(frame.reset_index(drop=True), drawn, f".{kind}")
        lazy = read([str(file) for file in files])
        lazy = lazy if values.ndim == 2 else lazy[values.name]
    then = drawn.rng.choice(["nothing", "persist", "repartition", "a step", "a slice"])
    if then == "persist":
        return lazy.persist()
    if then == "repartition":
        return lazy.repartition(npartitions=int(drawn.rng.integers(1, lazy.npartitions + 1)))
    if then == "a step":
        return lazy.map_partitions(lambda part: part.iloc[:])
    if then == "a slice" and lazy.known_divisions:
        return lazy.loc[lazy.divisions[0] : lazy.divisions[-1]]
    return lazy


def as_array(X: Any, drawn: SampledRows) -> Any:
    """Return numbers as a Dask array, in chunks that are drawn."""
    rows = tuple(b - a for a, b in drawn.cuts(len(X)))
    columns = int(drawn.rng.integers(1, X.shape[1] + 1)) if X.ndim == 2 else None
    lazy = da.from_array(X, chunks=(rows, columns) if columns else (rows,))
    return lazy.persist() if drawn.rng.random() < 0.3 else lazy


def as_zarr(X: Any, drawn: SampledRows) -> str:
    """Write numbers as a Zarr array; return its path."""
    chunks = (int(drawn.rng.integers(1, len(X) + 1)), *X.shape[1:])
    path = str(drawn.path("array.zarr"))
    zarr.create_array(path, shape=X.shape, chunks=chunks, dtype=X.dtype)[...] = X
    return path


TABLES: dict[str, Callable[[Any, SampledRows], Any]] = {
    "pandas": lambda frame, drawn: frame,
    "polars": lambda frame, drawn: pl.from_pandas(frame),
    "polars, lazy": lambda frame, drawn: pl.from_pandas(frame).lazy(),
    "arrow": lambda frame, drawn: pa.Table.from_pandas(frame, preserve_index=False),
    "Dask": as_dask,
    "CSV": lambda frame, drawn: as_files(frame, drawn, ".csv", as_one=True)[0],
    "TSV, packed": lambda frame, drawn: as_files(frame, drawn, ".tsv.gz", as_one=True)[0],
    "CSV parts": lambda frame, drawn: as_files(frame, drawn, ".csv")[0].parent / "*.csv",
    "Parquet": lambda frame, drawn: as_files(frame, drawn, ".parquet", as_one=True)[0],
    "Parquet folder": lambda frame, drawn: as_files(frame, drawn, ".parquet")[0].parent,
}
# Of the same columns as numbers only: features that are arrays.
ARRAYS: dict[str, Callable[[Any, SampledRows], Any]] = {
    "NumPy": lambda X, drawn: X,
    "Dask array": as_array,
    "Zarr": as_zarr,
}


def draw_table(rng: np.random.Generator, columns: list[str], labels: str, index: str) -> Any:
    """Return a DataFrame with distinct rows and their labels, of at least two classes."""
    n = int(rng.integers(4, 24))
    key = rng.permutation(n) * 4 - n
    known = {**COLUMNS, **MORE_COLUMNS}
    made = {f"c{i} {kind}": known[kind](rng, n) for i, kind in enumerate(columns)}
    y = pd.Series(LABELS[labels](rng, n))
    while y.nunique() < 2:
        y = pd.Series(LABELS[labels](rng, n))
    frame = pd.DataFrame({**made, "key": key})[rng.permutation([*made, "key"]).tolist()]
    return frame.assign(t=y).set_axis(INDEXES[index](rng, n))


def check_answers(found: Any, labels: Any) -> None:
    """Compare answers with labels, in order; lazy ones say how many they are beforehand."""
    if isinstance(found, da.Array):
        assert len(found) == len(labels)
        found = found.compute()
    assert [str(own) for own in found] == [str(own) for own in labels]


@functools.lru_cache(maxsize=64)
def fitted(seed: int, *, of_numbers: bool) -> tuple[Any, Any, Any]:
    """Return a table, and a model that was trained on it as a DataFrame or as an array."""
    rng = np.random.default_rng(seed)
    kinds = NUMBERS if of_numbers else list(COLUMNS)
    columns = rng.choice(kinds, rng.integers(0, 4)).tolist()
    frame = draw_table(rng, columns, rng.choice(list(LABELS)), rng.choice(list(INDEXES)))
    model = KernelKNNClassifier(n_neighbors=1)
    if of_numbers:
        X = frame.drop(columns="t").to_numpy(float)
        return frame, X, model.fit(X, np.asarray(frame.t.astype(str)))
    return frame, None, model.fit(frame, "t")


SEEDS = st.integers(0, 2**20)


def training(kind: str, columns: list[str], labels: str, index: str, seed: int) -> None:
    """Fit one nearest neighbor on a container that is drawn; check answers, and the score."""
    rng = np.random.default_rng(seed)
    frame = draw_table(rng, columns, labels, index)
    X, y = frame.drop(columns="t"), frame["t"]
    model = KernelKNNClassifier(n_neighbors=1)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # Of a model of an array that is asked about a frame.
        warnings.filterwarnings("ignore", "X (has|does not have valid) feature names", UserWarning)
        drawn = SampledRows(rng, Path(folder))
        if kind in TABLES:
            given = TABLES[kind](frame, drawn), "t"
        elif kind == "Dask, apart":
            # Rows are paired by position, but one index in two orders is refused.
            X.index = y.index = pd.RangeIndex(len(y))
            given = as_dask(X, drawn), as_dask(y, drawn)
        elif kind == "Dask, columns":
            lazy = as_dask(frame, drawn)
            given = lazy[list(X.columns)], lazy["t"]
            given = dask.persist(*given) if rng.random() < 0.5 else given
        else:
            name, of_labels = kind.split(" and ")
            numbers = X.to_numpy(float)
            text = np.asarray(y.astype(str))
            Y = {"NumPy": lambda: text, "array": lambda: as_array(text, drawn)}
            Y["series"] = lambda: as_dask(pd.Series(text, name="t"), drawn)
            given = ARRAYS[name](numbers, drawn), Y[of_labels]()
            X = numbers
        model.fit(*given)
        check_answers(model.predict(X), y)
        assert model.score(*given) == 1


def queries(kind: str, of_numbers: bool, seed: int, model_seed: int) -> None:
    """Ask a model about its training rows in a container that is drawn."""
    frame, X, model = fitted(model_seed, of_numbers=of_numbers)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(frame))[: rng.integers(1, len(frame) + 1)]
    labels = frame.t.iloc[rows]
    with tempfile.TemporaryDirectory() as folder:
        drawn = SampledRows(rng, Path(folder))
        if of_numbers:
            given = ARRAYS[kind](X[rows], drawn)
        else:
            names = rng.permutation(frame.columns if rng.random() < 0.5 else frame.columns[:-1])
            given = TABLES[kind](frame.iloc[rows][names.tolist()], drawn)
        check_answers(model.predict(given), labels)
        path = drawn.path("answers.zarr")
        if rng.random() < 0.3 and kind != "NumPy":
            model.predict_to_zarr(given, path)
            check_answers(zarr.open_array(path)[:], labels)


# Labels beside a frame in memory.
BESIDE: dict[str, Callable[[Any], Any]] = {
    "series": lambda y: y,
    "list": lambda y: y.tolist(),
    "NumPy": lambda y: y.to_numpy(),
    "polars": lambda y: pl.Series(y.tolist()),
    "arrow": lambda y: pa.chunked_array([y.tolist()]),
    "Dask array": lambda y: da.from_array(np.array(y.tolist()), chunks=3),
    "column": lambda y: y.to_frame(),
}


def beside(
    kind: str, columns: list[str], labels: str, index: str, held: str, estimator: str, seed: int
) -> None:
    """Fit a frame with labels beside it, and with a column of labels; compare all answers."""
    rng = np.random.default_rng(seed)
    frame = draw_table(rng, columns, labels, index)
    X, y = frame.drop(columns="t"), frame["t"]
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        # Of scikit-learn, and of what so few rows are like.
        warnings.simplefilter("ignore", UserWarning)
        drawn = SampledRows(rng, Path(folder))
        model = small(estimator).fit(TABLES[kind](X, drawn), BESIDE[held](y))
        named = small(estimator).fit(TABLES[kind](frame, drawn), "t")
        assert model.feature_names_in_.tolist() == X.columns.tolist()
        assert model.n_features_in_ == X.shape[1]
        assert model.classes_.tolist() == named.classes_.tolist()
        rows = rng.permutation(len(X))[: rng.integers(1, len(X) + 1)]
        names = X.columns.tolist()
        if hasattr(model, "table_"):
            assert model.table_.columns == named.table_.columns
            names, kind = rng.permutation([*names, "t"]).tolist(), rng.choice(IN_MEMORY)
        asked = TABLES[kind](frame.iloc[rows][names], drawn)
        found, want = answers_of(model, asked), answers_of(named, asked)
        np.testing.assert_array_equal(found, want)
        np.testing.assert_array_equal(model.predict(asked), named.predict(asked))
        assert model.score(asked, BESIDE[held](y.iloc[rows])) == named.score(frame.iloc[rows])


IN_MEMORY = ["pandas", "polars", "arrow"]
APART = ["Dask, apart", "Dask, columns"]
MIXED = [f"{X} and {y}" for X in ARRAYS for y in ("NumPy", "array", "series")]
ANY, ONLY_NUMBERS = (
    st.lists(st.sampled_from(kinds), max_size=3) for kinds in (list(COLUMNS), NUMBERS)
)
TRAINED = st.one_of(
    st.tuples(st.sampled_from(list(TABLES)), ANY),
    st.tuples(st.sampled_from(APART), ANY),
    st.tuples(st.sampled_from(MIXED), ONLY_NUMBERS),
)
ASKED = st.one_of(
    st.tuples(st.sampled_from(list(TABLES)), st.just(False)),
    st.tuples(st.sampled_from(list(ARRAYS)), st.just(True)),
)


def run(n_examples: int, check: Callable[..., None], **drawn: Any) -> None:
    """Check so many examples, the same ones each time."""
    own = hypothesis.settings(
        max_examples=n_examples, deadline=None, derandomize=True, database=None
    )
    with dask.config.set(scheduler="sync"):
        own(hypothesis.given(**drawn)(check))()


def run_training(n_examples: int) -> None:
    """Check so many fits."""
    names = st.sampled_from(list(LABELS)), st.sampled_from(list(INDEXES))
    run(
        n_examples,
        lambda what, labels, index, seed: training(*what, labels, index, seed),
        what=TRAINED,
        labels=names[0],
        index=names[1],
        seed=SEEDS,
    )


def run_queries(n_examples: int, n_models: int) -> None:
    """Check so many queries of so many models."""
    run(
        n_examples,
        lambda what, seed, model: queries(*what, seed, model),
        what=ASKED,
        seed=SEEDS,
        model=st.integers(0, n_models - 1),
    )


def run_beside(n_examples: int) -> None:
    """Check so many frames with labels beside them."""
    run(
        n_examples,
        beside,
        kind=st.sampled_from(IN_MEMORY),
        columns=st.lists(st.sampled_from([*COLUMNS, *MORE_COLUMNS]), max_size=4),
        labels=st.sampled_from(list(LABELS)),
        index=st.sampled_from(list(INDEXES)),
        held=st.sampled_from(list(BESIDE)),
        estimator=st.sampled_from(["VoronoiSVC", "KernelKNNClassifier"]),
        seed=SEEDS,
    )


def test_training_rows_keep_their_labels():
    run_training(15)


def test_answers_come_in_the_order_of_rows():
    run_queries(20, 2)


def test_labels_beside_a_frame_are_those_of_a_column():
    run_beside(30)


@pytest.mark.slow
def test_labels_beside_many_frames_are_those_of_a_column():
    run_beside(200)


@pytest.mark.slow
def test_training_rows_of_thousands_of_tables_keep_their_labels():
    run_training(2000)


@pytest.mark.slow
def test_answers_of_thousands_of_queries_come_in_the_order_of_rows():
    run_queries(3000, 40)
