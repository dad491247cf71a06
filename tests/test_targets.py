"""What the answer of a row is: codes of classes, or numbers, on their way to a solver."""

import dask.array as da
import numpy as np
import pytest

from daskls import DataError
from daskls.run.rows import open_rows
from daskls.run.scan import scan_targets
from daskls.store.objects import Scratch

N = 700
X = np.random.default_rng(0).random((N, 2), dtype="f4")
Y = np.random.default_rng(1).normal(size=N)


@pytest.fixture
def scanned(tmp_path):
    """Return a function that opens rows with a y and scans it."""

    def scan(y, kind, weights=None):
        with open_rows(X, y, weights, Scratch.at(tmp_path / "scratch"), kind) as rows:
            return scan_targets(rows, None, kind)

    return scan


@pytest.mark.parametrize(
    ("y", "kind", "message"),
    [
        (np.where(np.arange(N) == 9, np.nan, Y), "numbers", "NaN or infinity, first in row 9"),
        (da.from_array(np.where(Y > 0, "a", "b")), "numbers", "a regressor needs numbers"),
        (da.from_array(Y > 0), "numbers", "a regressor needs numbers"),
        (da.from_array(Y), "classes", "continuous"),
    ],
)
def test_what_is_neither_is_refused(scanned, y, kind, message):
    with pytest.raises(DataError, match=message):
        scanned(y, kind)
