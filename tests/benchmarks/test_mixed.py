"""The experiment of tables as they are: what peers are given, which rows, what is told."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import mixed
from benchmarks.suite import packaged
from benchmarks.suite.packaged import CLASSES, TABLES, Table


def rows_of(train, test):
    X, X_test = pd.DataFrame(train), pd.DataFrame(test)
    return mixed.Rows(X, np.arange(len(X)), X_test, np.arange(len(X_test)))


@pytest.fixture
def rows():
    day = pd.Timestamp("2026-11-29 13:30")
    return rows_of(
        {"name": ["a", "b", "a", None], "day": [day, day, None, day], "size": [1, 2, 3, np.nan]},
        {"name": ["b", "new"], "day": [day, None], "size": [1.0, np.nan]},
    )


# What peers are given


# Which rows


@pytest.fixture
def table(monkeypatch):
    """A table of 100 rows, whose second class is rare and whose label has gaps."""
    whole = pd.DataFrame(
        {
            "rownames": np.arange(100),
            "id": np.arange(100),
            "id_of": np.arange(100) % 7,
            "when": ["1/2/2026"] * 100,
            "zip": np.arange(100) % 3,
            "y": ["often", "often", "rare", None, "often"] + ["often", "also"] * 47 + ["often"],
        }
    )
    monkeypatch.setattr(packaged, "read", lambda source: whole)
    given = Table("a/b", "y", "id", "when", "zip")
    monkeypatch.setitem(CLASSES, "birds", given)
    monkeypatch.setitem(TABLES, "birds", given)
    mixed.drawn.cache_clear()
    yield
    mixed.drawn.cache_clear()


@pytest.mark.usefixtures("table")
def test_rows_have_dates_and_names_and_no_rare_class():
    found = packaged.frame("birds")
    assert list(found) == ["id_of", "when", "zip", "y"]
    assert found.when.unique().tolist() == [pd.Timestamp("2026-01-02")]
    assert sorted(found.zip.unique()) == ["0", "1", "2"]
    assert set(found.y) == {"often", "also"}


# What is told
