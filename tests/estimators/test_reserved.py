"""Reserved rows, for a bound on false alarms or for intervals: one model, stores, resumed fits.

What is found from them is tested in ``test_false_alarm.py`` and ``test_intervals.py``.
"""

from types import SimpleNamespace

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

LABELED, NUMBERED = overlapping(), uneven()
# Each use: an estimator and its data; the part of a store, which is an attribute as well, and what
# a fit without it is said to lack; another value of the parameter and how a store tells it from the
# first; the method whose answers follow from the reserved rows.
BOUND = SimpleNamespace(
    **{"make": bounded, "X": LABELED[0], "y": LABELED[1]},
    **{"part": "false_alarm", "missing": "threshold", "ask": "decision_function"},
    **{"other": {"max_false_alarm": 0.2}, "changed": r"rate was 0\.1, is 0\.2"},
)
INTERVAL = SimpleNamespace(
    **{"make": covering, "X": NUMBERED[0], "y": two_columns(*NUMBERED)},
    **{"part": "interval", "missing": "intervals", "ask": "predict_interval"},
    **{"other": {"interval": 0.8}, "changed": r"coverage was 0\.9, is 0\.8"},
)
ASKED = uneven(3000, seed=9)[0]


def fit(reserve, **params):
    return reserve.make(**params).fit(reserve.X, reserve.y)


def answers(reserve, model):
    return getattr(model, reserve.ask)(ASKED)


def found(reserve, model):
    return getattr(model, f"{reserve.part}_")


of_both = pytest.mark.parametrize("reserve", [BOUND, INTERVAL], ids=["bound", "interval"])


def held_by(reserve, model):
    """Return which rows a fit held out."""
    own = found(reserve, model)
    if reserve is BOUND:
        counts = own.n_negatives, own.n_positives
        return held_out(reserve.X, reserve.y, reserve.y, counts)
    return held_out(reserve.X, reserve.y, np.zeros(len(reserve.X)), (own.n_rows,))


@of_both
def test_of_weights_of_rows_it_counts_alone_whether_they_are_0(reserve):
    n = len(reserve.X)
    weights = np.random.default_rng(1).uniform(0.5, 2, n) * (np.arange(n) % 4 > 0)
    kept = weights > 0
    model = reserve.make().fit(reserve.X[kept], reserve.y[kept], weights[kept])
    lazy = da.from_array(reserve.X, chunks=(250, 2))
    assert_same_bits(model, reserve.make().fit(lazy, reserve.y, weights))
    plain = fit(reserve)
    heavy = reserve.make().fit(reserve.X, reserve.y, np.where(held_by(reserve, plain), 7.0, 1.0))
    np.testing.assert_array_equal(answers(reserve, heavy), answers(reserve, plain))


@of_both
def test_reserved_rows_are_part_of_the_data_that_a_store_belongs_to(reserve, tmp_path):
    model = fit(reserve, store=tmp_path / "m")
    some = held_by(reserve, model) & (np.arange(len(reserve.X)) % 2 == 0)
    moved = np.where(some[:, None], reserve.X + 0.7, reserve.X)
    with pytest.raises(StoreError, match=r"differs: .*rows, labels or weights"):
        clone(model).fit(moved, reserve.y)
    with pytest.raises(StoreError, match=reserve.changed):
        clone(model).set_params(**reserve.other).fit(reserve.X, reserve.y)


@of_both
def test_a_model_without_what_they_give_is_not_finished(reserve, tmp_path):
    store = tmp_path / "m"
    stop_fit(lambda: fit(reserve, store=store), store, reserve.part)
    drop_caches()
    with pytest.raises(StoreError, match=rf"no {reserve.missing} yet.*Call fit again"):
        daskls.load(store)
    written = []
    with Writes(store, written.append):
        model = fit(reserve, store=store)
    assert any(name.startswith(reserve.part) for name in written)
    assert not [name for name in written if name.startswith(("bundles", "exchange", "partition"))]
    assert_same_bits(model, fit(reserve))
    assert found(reserve, daskls.load(store)) == found(reserve, model)


@of_both
def test_damage_is_noticed_and_mended(reserve, tmp_path):
    model = fit(reserve, store=tmp_path / "m")
    expected = answers(reserve, model)
    file = tmp_path / "m" / reserve.part
    file.write_bytes(file.read_bytes()[:-2] + b"??")
    drop_caches()

    def read_all():
        model = daskls.load(tmp_path / "m")
        answers(reserve, model)
        # What the display of its curve reads.
        read_reserved(model._reader.root)

    with pytest.raises(DamageError, match=reserve.part):
        read_all()
    drop_caches()
    np.testing.assert_array_equal(answers(reserve, fit(reserve, store=tmp_path / "m")), expected)
