"""Reserved rows where rows repeat: copies are on one side, and what they promise holds of new rows.

The oracles are thousands of new rows of the same generator, and a fit of the different rows.
"""

import numpy as np
import pytest
from reserves import bounded, covering, held_out, overlapping, uneven
from support import few

from daskls import ParameterError

X, Y = uneven(600)
LABELED, LABELS = overlapping(900)


def repeated(n, how, seed=0):
    """Return the rows of n rows of which some repeat, shuffled."""
    rng = np.random.default_rng(seed)
    copies = np.ones(n, int)
    if how == "a tenth":
        copies[rng.permutation(n)[: n // 10]] = 20
    elif how == "one row":
        copies[0] = 9 * n
    else:
        copies[:] = how
    return rng.permutation(np.repeat(np.arange(n), copies))


HOW = few([3, "one row", 2, "a tenth"], 2)


@pytest.mark.parametrize("how", [3, "a tenth"])
def test_copies_are_on_one_side(how):
    rows = repeated(len(X), how)
    own, numbers = X[rows], Y[rows]
    model = covering().fit(own, numbers)
    held = held_out(own, numbers, np.zeros(len(own)), (model.interval_.n_rows,))
    assert not np.isin(rows[held], rows[~held]).any()
    plain = covering(interval=None).fit(own[~held], numbers[~held])
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))


@pytest.mark.parametrize("how", HOW)
def test_intervals_hold_their_share_of_new_rows(how):
    asked, numbers = uneven(4000, seed=99)
    shares = []
    for seed in range(6):
        own, y = uneven(600, seed=seed)
        rows = repeated(600, how, seed)
        lower, upper = covering(random_state=seed).fit(own[rows], y[rows]).predict_interval(asked).T
        shares.append(((lower <= numbers) & (numbers <= upper)).mean())
    # With 120 rows held out a share has a deviation of 0.027, a mean of 6 of 0.011.
    assert 0.855 < np.mean(shares) < 0.945


@pytest.mark.parametrize("how", HOW)
def test_false_alarms_of_new_rows_keep_their_bound(how):
    asked, labels = overlapping(20_000, seed=99)
    rates = []
    for seed in range(6):
        own, y = overlapping(900, seed=seed)
        rows = repeated(900, how, seed)
        alarms = bounded(random_state=seed).fit(own[rows], y[rows]).predict(asked)
        rates.append(alarms[labels == 0].mean())
    # Each exceeds it once in 20 fits.
    assert np.sum(np.array(rates) > 0.1) <= 1
    assert 0.02 < np.mean(rates) < 0.09


def test_too_few_different_rows_are_an_error_with_the_number_needed():
    y = np.arange(120) % 2
    rows = np.where(y == 0, np.arange(120) % 3, np.arange(120))
    with pytest.raises(ParameterError, match=r"needs 29 different rows.*Of 60 rows.*fit on more"):
        bounded().fit(LABELED[rows], y)
    with pytest.raises(ParameterError, match=r"needs 9 different rows.*Of 120 rows.*interval"):
        covering().fit(X[np.arange(120) % 5], Y[np.arange(120) % 5])
