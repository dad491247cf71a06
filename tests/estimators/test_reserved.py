"""Reserved rows, for a bound on false alarms or for intervals: one model, stores, resumed fits.

What is found from them is tested in ``test_false_alarm.py`` and ``test_intervals.py``.
"""

from collections.abc import Callable
from dataclasses import dataclass

import dask.array as da
import numpy as np
import pytest
from reserves import bounded, covering, held_out, overlapping, two_columns, uneven
from sklearn.base import clone
from small import assert_same_bits
from writes import Writes, stop_fit

import daskls
from daskls import StoreError
from daskls.errors import DamageError
from daskls.store.caches import drop_caches
from daskls.store.choices import read_reserved


@dataclass(frozen=True)
class Reserve:
    """One use of reserved rows: an estimator, its data, and what follows from these rows."""

    # The folder in a store; with an underscore the attribute of a fitted estimator.
    part: str
    # What a fit without the folder is said to lack.
    missing: str
    parameter: str
    # Another value, and how a store tells it from the first.
    other: dict
    changed: str
    # The method whose answers follow from the reserved rows, and rows to ask about.
    ask: str
    asked: np.ndarray
    make: Callable
    X: np.ndarray
    y: np.ndarray

    def __str__(self):
        return self.part

    def fit(self, **params):
        return self.make(**params).fit(self.X, self.y)

    def answers(self, model, rows=None):
        return getattr(model, self.ask)(self.asked if rows is None else rows)

    def found(self, model):
        return getattr(model, f"{self.part}_")


LABELED, NUMBERED = overlapping(), uneven()
BOUND = Reserve(
    part="false_alarm",
    missing="threshold",
    parameter="max_false_alarm",
    other={"max_false_alarm": 0.2},
    changed=r"rate was 0\.1, is 0\.2",
    ask="decision_function",
    asked=overlapping(3000, seed=9)[0],
    make=bounded,
    X=LABELED[0],
    y=LABELED[1],
)
INTERVAL = Reserve(
    part="interval",
    missing="intervals",
    parameter="interval",
    other={"interval": 0.8},
    changed=r"coverage was 0\.9, is 0\.8",
    ask="predict_interval",
    asked=uneven(3000, seed=9)[0],
    make=covering,
    X=NUMBERED[0],
    y=two_columns(*NUMBERED),
)
BOTH = [BOUND, INTERVAL]
of_both = pytest.mark.parametrize("reserve", BOTH, ids=str)


def held_by(reserve, model):
    """Return which rows a fit held out."""
    found = reserve.found(model)
    if reserve is BOUND:
        counts = found.n_negatives, found.n_positives
        return held_out(reserve.X, reserve.y, reserve.y, counts)
    return held_out(reserve.X, reserve.y, np.zeros(len(reserve.X)), (found.n_rows,))


@of_both
def test_of_weights_of_rows_it_counts_alone_whether_they_are_0(reserve):
    n = len(reserve.X)
    weights = np.random.default_rng(1).uniform(0.5, 2, n) * (np.arange(n) % 4 > 0)
    kept = weights > 0
    model = reserve.make().fit(reserve.X[kept], reserve.y[kept], weights[kept])
    lazy = da.from_array(reserve.X, chunks=(250, 2))
    assert_same_bits(model, reserve.make().fit(lazy, reserve.y, weights))
    plain = reserve.fit()
    heavy = reserve.make().fit(reserve.X, reserve.y, np.where(held_by(reserve, plain), 7.0, 1.0))
    np.testing.assert_array_equal(reserve.answers(heavy), reserve.answers(plain))


@of_both
def test_reserved_rows_are_part_of_the_data_that_a_store_belongs_to(reserve, tmp_path):
    model = reserve.fit(store=tmp_path / "m")
    some = held_by(reserve, model) & (np.arange(len(reserve.X)) % 2 == 0)
    moved = np.where(some[:, None], reserve.X + 0.7, reserve.X)
    with pytest.raises(StoreError, match=r"differs: .*rows, labels or weights"):
        clone(model).fit(moved, reserve.y)
    with pytest.raises(StoreError, match=reserve.changed):
        clone(model).set_params(**reserve.other).fit(reserve.X, reserve.y)


@of_both
def test_a_model_without_what_they_give_is_not_finished(reserve, tmp_path):
    store = tmp_path / "m"
    stop_fit(lambda: reserve.fit(store=store), store, reserve.part)
    drop_caches()
    with pytest.raises(StoreError, match=rf"no {reserve.missing} yet.*Call fit again"):
        daskls.load(store)
    written = []
    with Writes(store, written.append):
        model = reserve.fit(store=store)
    assert any(name.startswith(reserve.part) for name in written)
    assert not [name for name in written if name.startswith(("bundles", "exchange", "partition"))]
    assert_same_bits(model, reserve.fit())
    assert reserve.found(daskls.load(store)) == reserve.found(model)


@of_both
def test_damage_is_noticed_and_mended(reserve, tmp_path):
    model = reserve.fit(store=tmp_path / "m")
    expected = reserve.answers(model)
    file = tmp_path / "m" / reserve.part
    file.write_bytes(file.read_bytes()[:-2] + b"??")
    drop_caches()
    with pytest.raises(DamageError, match=reserve.part):
        read_all(reserve, tmp_path / "m")
    drop_caches()
    np.testing.assert_array_equal(reserve.answers(model.fit(reserve.X, reserve.y)), expected)


def read_all(reserve, store):
    """Read what a model keeps of reserved rows, as its answers and the display of its curve do."""
    model = daskls.load(store)
    reserve.answers(model)
    read_reserved(model._reader.root)
