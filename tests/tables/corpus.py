"""Odd tables, and what becomes of each: features, labels, dtypes, names, or the error.

Every table goes in by two doors, as a file that is converted and as one that a model is trained
on; what was found is kept in `corpus.json`, a line a table, of the second door what differs.

    PYTHONPATH=tests python -m tables.corpus record
"""

import bz2
import gzip
import json
import math
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

from daskls import TableEncoder
from daskls.datasets import convert
from daskls.errors import DasklsError
from daskls.store.dataset import Dataset

RECORDED = Path(__file__).with_name("corpus.json")

PLAIN = "a,b,label\n1,2.5,x\n3,4,y\n"
WIDE = 2**53 + 1
LONG = "".join(f"{i},{i / 7:.3f},{'xyz'[i % 3]}\n" for i in range(300))

TEXTS: dict[str, str | bytes] = {
    "plain.csv": PLAIN,
    "bom.csv": b"\xef\xbb\xbf" + PLAIN.encode(),
    "crlf.csv": PLAIN.replace("\n", "\r\n"),
    "no-final-newline.csv": PLAIN.rstrip("\n"),
    "blank-lines.csv": "\n\na,b,label\n\n1,2,x\n\n3,4,y\n\n",
    "spaces.csv": "a, b ,label\n 1 ,2, x\n3, 4 , y \n",
    "quoted-fields.csv": '"a","b, c",label\n"1","2","x, y"\n3,4,"say ""no"""\n',
    "newline-in-quotes.csv": 'a,b,label\n1,2,"x\nz"\n3,4,y\n',
    "semicolons.csv": "a;b;label\n1;2;x\n3;4;y\n",
    "tabs.csv": "a\tb\tlabel\n1\t2\tx\n3\t4\ty\n",
    "decimal-comma.csv": "a;b;label\n1,5;2,5;x\n3,5;4,5;y\n",
    "thousands.csv": 'a,b,label\n"1,000",2,x\n"2,000",4,y\n',
    "underscores.csv": "a,b,label\n1_000,2,x\n2_000,4,y\n",
    "missing-empty.csv": "a,b,label\n1,,x\n3,4,y\n",
    "missing-words.csv": "a,b,label\n1,NA,x\nNaN,4,y\nnull,5,x\n7,n/a,y\n",
    "missing-label.csv": "a,b,label\n1,2,x\n3,4,\n",
    "missing-question.csv": "a,b,label\n1,?,x\n3,4,y\n",
    "infinite.csv": "a,b,label\n1,inf,x\n3,-Infinity,y\n",
    "too-large.csv": "a,b,label\n1,1e400,x\n3,4,y\n",
    "large-for-float32.csv": "a,b,label\n1,1e39,x\n3,4,y\n",
    "tiny.csv": "a,b,label\n1,1e-320,x\n3,4,y\n",
    "wide-integers.csv": f"a,b,label\n{WIDE},2,x\n{WIDE + 2},4,y\n",
    "huge-integers.csv": "a,b,label\n123456789012345678901234,2,x\n1,4,y\n",
    "hexadecimal.csv": "a,b,label\n0x10,2,x\n0x11,4,y\n",
    "signs.csv": "a,b,label\n+1,-2,x\n+3,-0.0,y\n",
    "exponents.csv": "a,b,label\n1e3,2E-2,x\n3.,.5,y\n",
    "booleans.csv": "a,b,label\ntrue,1,x\nFALSE,2,y\nTrue,3,x\n",
    "categories.csv": "a,color,label\n1,red,x\n2,green,y\n3,red,x\n",
    "many-categories.csv": "a,name,label\n"
    + "".join(f"{i},n{i},x\n{i},n{i},y\n" for i in range(70)),
    "dates.csv": "a,day,label\n1,2024-01-02,x\n2,2024-01-03,y\n",
    "late-text.csv": "a,b,label\n" + "1,2,x\n3,4,y\n" * 50 + "1,oops,x\n",
    "ragged-short.csv": "a,b,label\n1,2,x\n3,4\n",
    "ragged-long.csv": "a,b,label\n1,2,x\n3,4,y,5\n",
    "trailing-commas.csv": "a,b,label,\n1,2,x,\n3,4,y,\n",
    "duplicate-names.csv": "a,a,label\n1,2,x\n3,4,y\n",
    "nameless-column.csv": "a,,label\n1,2,x\n3,4,y\n",
    "no-header.csv": "1,2,0\n3,4,1\n5,6,0\n",
    "no-header-text-label.csv": "1,2,x\n3,4,y\n",
    "numbers-as-names.csv": "0,1,label\n1,2,0\n3,4,1\n",
    "usual-name-upper.csv": "a,b,Class\n1,2,x\n3,4,y\n",
    "two-usual-names.csv": "a,y,label\n1,2,x\n3,4,y\n",
    "no-usual-name.csv": "a,b,c\n1,2,x\n3,4,y\n",
    "label-first.csv": "label,a,b\nx,1,2\ny,3,4\n",
    "label-integers.csv": "a,b,label\n1,2,01\n3,4,1\n5,6,+2\n",
    "label-floats.csv": "a,b,label\n1,2,1.0\n3,4,2.0\n5,6,1\n",
    "label-booleans.csv": "a,b,label\n1,2,True\n3,4,False\n",
    "label-mixed.csv": "a,b,label\n1,2,1\n3,4,one\n",
    "one-column.csv": "label\nx\ny\n",
    "header-only.csv": "a,b,label\n",
    "empty.csv": "",
    "latin-1.csv": "a,b,label\n1,2,caf\u00e9\n3,4,th\u00e9\n".encode("latin-1"),
    "unicode.csv": "größe,重量,label\n1,2,ja\n3,4,nein\n",
    "nul-byte.csv": b"a,b,label\n1,2,x\n3,\x004,y\n",
    "comment.csv": "# made by hand\na,b,label\n1,2,x\n3,4,y\n",
    "long.csv": "a,b,label\n" + LONG,
    "packed.csv.gz": gzip.compress(PLAIN.encode()),
    "packed.csv.bz2": bz2.compress(PLAIN.encode()),
    "table.tsv": PLAIN.replace(",", "\t"),
    "table.txt": PLAIN.replace(",", ";"),
}


LABELS = pyarrow.array(["x", "y"])


def _columns(**values: Any) -> Callable[[Path], None]:
    """Return what writes columns as a Parquet file; of None there is none."""
    columns = {"a": [1.5, 2.5], "b": [1, 2], "label": LABELS, **values}
    table = pyarrow.table({name: own for name, own in columns.items() if own is not None})
    return lambda path: parquet.write_table(table, path)


TABLES: dict[str, Callable[[Path], None]] = {
    "plain.parquet": _columns(b=[3.0, 4.0]),
    "small-kinds.parquet": _columns(a=np.array([1, 2], "i1"), b=np.array([3, 4], "f4")),
    "wide-integers.parquet": _columns(a=[WIDE, WIDE + 2]),
    "mixed-kinds.parquet": _columns(a=np.array([1, 2], "i4"), b=np.array([3, 4], "f4")),
    "booleans.parquet": _columns(a=[True, False], label=[True, False]),
    "missing.parquet": _columns(a=[1.5, None]),
    "nan.parquet": _columns(a=[1.5, math.nan]),
    "missing-label.parquet": _columns(label=["x", None]),
    "nan-label.parquet": _columns(label=[0.0, math.nan]),
    "text.parquet": _columns(a=["u", "v"]),
    "dictionary.parquet": _columns(a=pyarrow.array(["u", "v"]).dictionary_encode()),
    "decimals.parquet": _columns(a=pyarrow.array([1, 2], pyarrow.decimal128(9, 2))),
    "dates.parquet": _columns(a=pyarrow.array([0, 1], pyarrow.timestamp("s"))),
    "lists.parquet": _columns(a=[[1], [2]]),
    "label-floats.parquet": _columns(label=[0.0, 1.0]),
    "no-rows.parquet": _columns(a=pyarrow.array([], pyarrow.float64()), b=None, label=LABELS[:0]),
    "no-features.parquet": _columns(a=None, b=None),
    "damaged.parquet": lambda path: path.write_bytes(b"PAR1 nothing"),
}


def write_corpus(folder: Path) -> list[Path]:
    """Write every table; return the paths."""
    for name, text in TEXTS.items():
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    for name, write in TABLES.items():
        write(folder / name)
    return [folder / name for name in (*TEXTS, *TABLES)]


def find(path: Path, target: Path, *, is_fit: bool) -> dict[str, Any]:
    """Return what becomes of a table that goes in by a door, as JSON values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            return _found(_encode(path, target) if is_fit else convert(path, target))
        except DasklsError as error:
            told = str(error).replace(str(path), path.name).replace(str(path.parent), "FOLDER")
            # Whatever is refused leaves nothing, and is told in one line.
            assert not target.exists(), path.name
            assert "\n" not in told, told
            return {"error": type(error).__name__, "told": told}


def _encode(path: Path, target: Path) -> Dataset:
    """Write a table as the features of a model."""
    first = "label"
    if path.name in TEXTS:
        opened = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix, open)
        with opened(path, "rt", encoding="utf-8", errors="replace") as file:
            first = next(iter(file.read().lstrip("\n").splitlines()), "label")
    label = next((name for name in ("label", "Class") if name in first), "2")
    return TableEncoder(label).fit(path).to_zarr(path, target)


def _found(dataset: Dataset) -> dict[str, Any]:
    """Return a data set as JSON values; of many rows the sums alone."""
    X = np.asarray(dataset.X[:])
    y = None if dataset.y is None else np.asarray(dataset.y[:])
    rows: Any = [[repr(value) for value in row] for row in X.tolist()]
    if len(X) > 10:
        rows = {"n_rows": len(X), "sums": [repr(value) for value in X.sum(axis=0).tolist()]}
    return {
        "dtype": X.dtype.name,
        "X": rows,
        "y": None if y is None else [y.dtype.name, *y.tolist()[:10]],
        "classes": dataset.classes,
        "names": dataset.feature_names,
    }


def find_all() -> dict[str, dict[str, Any]]:
    """Return what becomes of every table: converted, and what of it another door makes else."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        for path in write_corpus(Path(name)):
            one, two = (
                find(path, Path(name, f"{path.name}-{is_fit}.zarr"), is_fit=is_fit)
                for is_fit in (False, True)
            )
            differs = {key: value for key, value in two.items() if value != one.get(key)}
            found[path.name] = {**one, "fit": differs} if differs else one
    return found


if __name__ == "__main__":
    if sys.argv[1:] != ["record"]:
        sys.exit(__doc__)
    lines = [
        f"{json.dumps(name)}: {json.dumps(own, ensure_ascii=False)}"
        for name, own in find_all().items()
    ]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
