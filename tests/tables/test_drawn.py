"""Tables drawn at random: each row has its own label, whatever container it came or is asked in.

One nearest neighbor knows the label of every training row, as the rows are distinct. So a row that
was paired with another's label shows, and so does an answer in another's place.
"""

import functools
import itertools
import tempfile
import warnings
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from small import answers_of, small
from tables.containers import FILES, FRAMES

from daskls import KernelKNNClassifier

# Of dask.dataframe.read_parquet with pandas 3.1.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")

# What a table is made of, from a random generator and a number of rows.
COLUMNS = {
    "float": lambda rng, n: rng.integers(-99, 99, n) / 8,
    "float32": lambda rng, n: (rng.integers(-9, 9, n) / 4).astype("f4"),
    "int": lambda rng, n: rng.integers(-9, 9, n),
    "int8": lambda rng, n: rng.integers(-9, 9, n).astype("i1"),
    "bool": lambda rng, n: rng.random(n) < 0.5,
    "text": lambda rng, n: rng.choice(["u", "v v", "é"], n),
    "category": lambda rng, n: pd.Categorical(rng.choice(["lo", "hi"], n), categories=["lo", "hi"]),
}
# What files may spell in more than one way.
MORE_COLUMNS = {
    "gaps": lambda rng, n: np.where(rng.random(n) < 0.3, np.nan, rng.integers(-9, 9, n) / 4),
    "Int64": lambda rng, n: with_gaps(rng, rng.integers(-9, 9, n), "Int64"),
    "boolean": lambda rng, n: with_gaps(rng, rng.random(n) < 0.5, "boolean"),
    "string": lambda rng, n: with_gaps(rng, rng.choice(["u", "w"], n), "string"),
    "objects": lambda rng, n: with_gaps(rng, rng.choice(["u", "w"], n), object),
    "numbers": lambda rng, n: pd.Categorical(rng.integers(0, 3, n)),
    "days": lambda rng, n: with_gaps(rng, rng.integers(0, 99, n), "datetime64[s]"),
}
NUMBERS = ["float", "float32", "int", "int8"]
LABELS = {
    "text": lambda rng, n: rng.choice(["p", "q r", "s"], n),
    "int": lambda rng, n: rng.integers(-1, 3, n),
    "bool": lambda rng, n: rng.random(n) < 0.5,
    "category": lambda rng, n: pd.Categorical(rng.choice(["no", "yes"], n)),
}
INDEXES = {
    "rows": lambda rng, n: pd.RangeIndex(n),
    "later rows": lambda rng, n: pd.RangeIndex(100, 100 + n),
    "repeated": lambda rng, n: np.sort(rng.integers(0, 5, n)),
    "in disorder": lambda rng, n: rng.permutation(n),
    "days": lambda rng, n: pd.date_range("2024-02-27", periods=n),
    "names": lambda rng, n: [f"row {i:03}" for i in range(n)],
}


def with_gaps(rng, values, dtype):
    found = pd.Series(values).astype(dtype)
    return found.mask(rng.random(len(found)) < rng.choice([0.0, 0.3])).array


class Drawn:
    """Random numbers and a folder, of which containers are made."""

    def __init__(self, rng, folder):
        self.rng, self.folder = rng, Path(folder)

    def cuts(self, n, least=0):
        """Return bounds of parts, of at least so many rows each."""
        bounds = [0]
        for bound in [*sorted(self.rng.integers(0, n + 1, self.rng.integers(0, 4)).tolist()), n]:
            if bound - bounds[-1] >= least and (bound == n or n - bound >= least):
                bounds.append(bound)
        return list(itertools.pairwise(bounds))

    def path(self, name):
        return Path(tempfile.mkdtemp(dir=self.folder)) / name


def as_files(frame, drawn, ending):
    folder = drawn.path("parts")
    folder.mkdir()
    for i, (a, b) in enumerate(drawn.cuts(len(frame), least=1)):
        part = frame.iloc[a:b]
        if ending == "parquet":
            part.to_parquet(folder / f"{i}.parquet")
        else:
            part.to_csv(folder / f"{i}.csv", index=False)
    return folder


def as_dask(values, drawn):
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
        sort = bool(frame.index.is_monotonic_increasing)
        lazy = dd.from_pandas(values, npartitions=int(drawn.rng.integers(1, 5)), sort=sort)
    elif kind in ("delayed", "map"):
        parts = [values.iloc[a:b] for a, b in drawn.cuts(len(values))]
        if drawn.rng.random() < 0.7:
            parts = [part.reset_index(drop=True) for part in parts]
        if kind == "delayed":
            lazy = dd.from_delayed([dask.delayed(part) for part in parts], meta=parts[0].iloc[:0])
        else:
            lazy = dd.from_map(lambda i: parts[i], range(len(parts)), meta=parts[0].iloc[:0])
    else:
        files = sorted(as_files(frame.reset_index(drop=True), drawn, kind).iterdir())
        lazy = getattr(dd, f"read_{kind}")([str(file) for file in files])
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


def as_array(X, drawn):
    chunks = [tuple(b - a for a, b in drawn.cuts(len(X)))]
    if X.ndim == 2:
        chunks.append(int(drawn.rng.integers(1, X.shape[1] + 1)))
    lazy = da.from_array(X, chunks=tuple(chunks))
    return lazy.persist() if drawn.rng.random() < 0.3 else lazy


def as_zarr(X, drawn):
    chunks = (int(drawn.rng.integers(1, len(X) + 1)), *X.shape[1:])
    path = str(drawn.path("array.zarr"))
    zarr.create_array(path, shape=X.shape, chunks=chunks, dtype=X.dtype)[...] = X
    return path


def as_is(write):
    return lambda frame, drawn: write(frame, drawn.folder)


# A decimal comma alone may part thousands; ORC knows no categories, and an xarray no index twice.
NOT_DRAWN = ("CSV of decimal commas", "ORC", "xarray Dataset")
TABLES = {
    **{name: as_is(own) for name, own in {**FILES, **FRAMES}.items() if name not in NOT_DRAWN},
    "Dask DataFrame": as_dask,
    "pattern of CSV files": lambda frame, drawn: as_files(frame, drawn, "csv") / "*.csv",
    "Parquet folder": lambda frame, drawn: as_files(frame, drawn, "parquet"),
}
# Of the same columns as numbers only: features that are arrays.
ARRAYS = {"NumPy": lambda X, _: X, "Dask array": as_array, "Zarr": as_zarr}
# Labels beside a frame in memory.
BESIDE = {
    "series": lambda y: y,
    "list": lambda y: y.tolist(),
    "NumPy": lambda y: y.to_numpy(),
    "polars": lambda y: pl.Series(y.tolist()),
    "arrow": lambda y: pa.chunked_array([y.tolist()]),
    "Dask array": lambda y: da.from_array(np.array(y.tolist()), chunks=3),
    "column": lambda y: y.to_frame(),
}
IN_MEMORY = ["pandas", "Polars", "Arrow table"]


def draw_table(rng, columns, labels, index):
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


def check_answers(found, labels):
    if isinstance(found, da.Array):
        assert len(found) == len(labels)
        found = found.compute()
    assert [str(own) for own in found] == [str(own) for own in labels]


@functools.lru_cache(maxsize=64)
def fitted(seed, of_numbers):
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


def examples(check, *n_examples, **drawn):
    """Return a test of so many examples, the same each time; of more for `make test-all`."""

    @pytest.mark.parametrize(
        "n", [n_examples[0], *(pytest.param(n, marks=pytest.mark.slow) for n in n_examples[1:])]
    )
    @pytest.mark.always
    def test(n):
        own = settings(max_examples=n, deadline=None, derandomize=True, database=None)
        with dask.config.set(scheduler="sync"):
            own(given(**drawn)(check))()

    return test


SEEDS = st.integers(0, 2**20)
TABLE = {"labels": st.sampled_from([*LABELS]), "index": st.sampled_from([*INDEXES]), "seed": SEEDS}


def training(what, labels, index, seed):
    """Fit one nearest neighbor on a container that is drawn; check answers, and the score."""
    kind, columns = what
    rng = np.random.default_rng(seed)
    frame = draw_table(rng, columns, labels, index)
    X, y = frame.drop(columns="t"), frame["t"]
    model = KernelKNNClassifier(n_neighbors=1)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # Of a model of an array that is asked about a frame.
        warnings.filterwarnings("ignore", "X (has|does not have valid) feature names", UserWarning)
        drawn = Drawn(rng, folder)
        if kind in TABLES:
            table = TABLES[kind](frame, drawn), "t"
        elif kind == "Dask, apart":
            # Rows are paired by position, but one index in two orders is refused.
            X.index = y.index = pd.RangeIndex(len(y))
            table = as_dask(X, drawn), as_dask(y, drawn)
        elif kind == "Dask, columns":
            lazy = as_dask(frame, drawn)
            table = lazy[list(X.columns)], lazy["t"]
            table = dask.persist(*table) if rng.random() < 0.5 else table
        else:
            name, of_labels = kind.split(" and ")
            X, own = X.to_numpy(float), np.asarray(y.astype(str))
            if of_labels == "series":
                own = as_dask(pd.Series(own, name="t"), drawn)
            table = ARRAYS[name](X, drawn), as_array(own, drawn) if of_labels == "array" else own
        model.fit(*table)
        check_answers(model.predict(X), y)
        assert model.score(*table) == 1


ANY, ONLY_NUMBERS = (
    st.lists(st.sampled_from([*kinds]), max_size=3) for kinds in (COLUMNS, NUMBERS)
)
MIXED = [f"{X} and {y}" for X in ARRAYS for y in ("NumPy", "array", "series")]
TRAINED = st.one_of(
    st.tuples(st.sampled_from([*TABLES]), ANY),
    st.tuples(st.sampled_from(["Dask, apart", "Dask, columns"]), ANY),
    st.tuples(st.sampled_from([*MIXED]), ONLY_NUMBERS),
)
test_training_rows_keep_their_labels = examples(training, 15, 150, what=TRAINED, **TABLE)


def queries(what, seed, model_seed):
    """Ask a model about its training rows in a container that is drawn."""
    kind, of_numbers = what
    frame, X, model = fitted(model_seed, of_numbers)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(frame))[: rng.integers(1, len(frame) + 1)]
    labels = frame.t.iloc[rows]
    with tempfile.TemporaryDirectory() as folder:
        drawn = Drawn(rng, folder)
        if of_numbers:
            asked = ARRAYS[kind](X[rows], drawn)
        else:
            names = rng.permutation(frame.columns if rng.random() < 0.5 else frame.columns[:-1])
            asked = TABLES[kind](frame.iloc[rows][names.tolist()], drawn)
        check_answers(model.predict(asked), labels)
        path = drawn.path("answers.zarr")
        if rng.random() < 0.3 and kind != "NumPy":
            model.predict_to_zarr(asked, path)
            check_answers(zarr.open_array(path)[:], labels)


ASKED = st.one_of(
    *(st.tuples(st.sampled_from([*own]), st.just(own is ARRAYS)) for own in (TABLES, ARRAYS))
)
test_answers_come_in_the_order_of_rows = examples(
    queries, 20, 250, what=ASKED, seed=SEEDS, model_seed=st.integers(0, 29)
)


def beside(kind, columns, labels, index, held, estimator, seed):
    """Fit a frame with labels beside it, and with a column of labels; compare all answers."""
    rng = np.random.default_rng(seed)
    frame = draw_table(rng, columns, labels, index)
    X, y = frame.drop(columns="t"), frame["t"]
    with warnings.catch_warnings():
        # Of scikit-learn, and of what so few rows are like.
        warnings.simplefilter("ignore", UserWarning)
        model = small(estimator).fit(FRAMES[kind](X, None), BESIDE[held](y))
        named = small(estimator).fit(FRAMES[kind](frame, None), "t")
        assert model.feature_names_in_.tolist() == X.columns.tolist()
        assert model.n_features_in_ == X.shape[1]
        assert model.classes_.tolist() == named.classes_.tolist()
        rows = rng.permutation(len(X))[: rng.integers(1, len(X) + 1)]
        names = X.columns.tolist()
        if hasattr(model, "table_"):
            assert model.table_.columns == named.table_.columns
            names, kind = rng.permutation([*names, "t"]).tolist(), rng.choice(IN_MEMORY)
        asked = FRAMES[kind](frame.iloc[rows][names], None)
        np.testing.assert_array_equal(answers_of(model, asked), answers_of(named, asked))
        np.testing.assert_array_equal(model.predict(asked), named.predict(asked))
        assert model.score(asked, BESIDE[held](y.iloc[rows])) == named.score(frame.iloc[rows])


test_labels_beside_a_frame_are_those_of_a_column = examples(
    beside,
    16,
    40,
    kind=st.sampled_from([*IN_MEMORY]),
    columns=st.lists(st.sampled_from([*COLUMNS, *MORE_COLUMNS]), max_size=4),
    held=st.sampled_from([*BESIDE]),
    estimator=st.sampled_from(["VoronoiSVC", "KernelKNNClassifier"]),
    **TABLE,
)
