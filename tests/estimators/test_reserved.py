"""Reserved rows: a bound on false alarms or intervals, found from rows that nothing else sees.

The oracles are a plain fit to the other rows, a sort of what it says of the reserved ones, scipy's
binomial, a search of each row's cell by brute force, and thousands of new rows.
"""

from itertools import product

import dask.array as da
import numpy as np
import pytest
import reserves
from reserves import HINGE, RATE, bounded, covering, held_out, overlapping, two_columns, uneven
from scipy import stats
from sklearn.base import clone
from support import few

from daskls import RandomChunkSVC, RandomChunkSVR, StoreError
from daskls.errors import ParameterError
from daskls.kernels.frame import decide_pairs
from daskls.methods.reserved import OF_ALL, interval_of
from daskls.records import IntervalSpec

N_LABELED, N_UNEVEN = 1200, 900
LABELED, LABELS = overlapping(N_LABELED)
UNEVEN, NUMBERS = uneven(N_UNEVEN)
TWO = two_columns(UNEVEN, NUMBERS)
ASKED = uneven(3000, seed=9)[0]


def test_reserved_rows_are_part_of_the_data_that_a_store_belongs_to(tmp_path):
    model = bounded(store=tmp_path / "m").fit(LABELED, LABELS)
    counts = model.false_alarm_.n_negatives, model.false_alarm_.n_positives
    held = held_out(LABELED, LABELS, LABELS, counts)
    moved = np.where((held & (np.arange(N_LABELED) % 2 == 0))[:, None], LABELED + 0.7, LABELED)
    with pytest.raises(StoreError, match=r"differs: .*rows, labels or weights"):
        clone(model).fit(moved, LABELS)
    with pytest.raises(StoreError, match=r"rate was 0\.1, is 0\.2"):
        clone(model).set_params(max_false_alarm=0.2).fit(LABELED, LABELS)


TEST, TEST_LABELS = overlapping(4000, seed=9)


@pytest.mark.parametrize(
    "model",
    [
        bounded(),
        bounded(**HINGE),
        bounded(n_partitions=2, class_weight="balanced"),
        RandomChunkSVC(chunk_size=200, max_false_alarm=RATE, **HINGE),
        *few([bounded(probability="sigmoid")], 0),
    ],
    ids=str,
)
def test_it_is_a_plain_fit_to_the_other_rows_less_a_threshold(model):
    model.fit(LABELED, LABELS)
    bound = model.false_alarm_
    held = held_out(LABELED, LABELS, LABELS, (bound.n_negatives, bound.n_positives))
    assert held.sum() == len(LABELED) - model._reader.meta["n_rows"]
    plain = clone(model).set_params(max_false_alarm=None).fit(LABELED[~held], LABELS[~held])
    scores = plain.decision_function(LABELED[held])
    n = int((LABELS[held] == 0).sum())
    assert n == bound.n_negatives
    assert abs(n - (LABELS == 0).sum() / 5) < 4 * np.sqrt((LABELS == 0).sum() * 0.16)
    chance = stats.binom(n, 1 - RATE).sf(np.arange(n))
    rank = 1 + int(np.argmax(chance <= 0.05))
    assert (bound.rank, bound.rate) == (rank, RATE)
    assert bound.delta == pytest.approx(chance[rank - 1])
    assert bound.threshold == np.sort(scores[LABELS[held] == 0])[rank - 1]
    expected = plain.decision_function(TEST) - bound.threshold
    np.testing.assert_array_equal(model.decision_function(TEST), expected)
    np.testing.assert_array_equal(model.predict(TEST), (expected > 0).astype(int))
    lazy = da.from_array(TEST, chunks=(700, 2))
    np.testing.assert_array_equal(model.predict(lazy), model.predict(TEST))
    np.testing.assert_array_equal(model.decision_function(lazy), expected)
    if hasattr(plain, "predict_proba"):
        np.testing.assert_array_equal(model.predict_proba(TEST), plain.predict_proba(TEST))
    assert (plain.fit_report_.n_rows == model.fit_report_.n_rows).all()


def brute_sizes(plain, asked):
    """Return the size of residuals at rows, their cells being those whose models answer."""
    reader, report = plain._reader, plain.fit_report_
    n, square = report.n_rows, report.validation_error
    of_all = (n * square).sum() / n.sum()
    # Least squares tell a cell's error by 64 of its rows.
    told = np.minimum(n, 64)
    squares = (told * square + OF_ALL * of_all) / (told + OF_ALL) / of_all
    if isinstance(plain, RandomChunkSVR):
        return np.full(len(asked), np.sqrt(squares.mean()))
    by_partition = [np.flatnonzero(report.partition == p) for p in np.unique(report.partition)]
    ways = np.array(list(product(*by_partition)))
    entered = reader.transform(asked)
    answers = np.stack([decide_pairs(reader.read_cell(c), entered) for c in range(reader.n_cells)])
    means = reader.target.inverse_transform(
        answers[ways].mean(axis=1).reshape(-1, answers.shape[2])
    )
    misses = np.abs(means.reshape(len(ways), len(asked), -1) - plain.predict(asked).reshape(
        len(asked), -1)).sum(axis=2)  # fmt: skip
    nearest = misses.argmin(axis=0)
    assert misses.min(axis=0).max() < 1e-5
    return np.sqrt(squares[ways[nearest]].mean(axis=1))


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (covering(), NUMBERS),
        (covering(n_partitions=2), TWO),
        (covering(**reserves.TUBE), NUMBERS),
        (RandomChunkSVR(chunk_size=200, interval=0.75, **reserves.ONE), TWO),
        *few([(covering(C=None, gamma=None, kernel="auto"), TWO)], 0),
    ],
    ids=["cells", "two partitions", "tube", "chunks", "chosen"],
)
def test_it_is_one_rank_of_what_a_plain_fit_misses_of_the_others(model, y):
    model.fit(UNEVEN, y)
    found = model.interval_
    assert abs(found.n_rows - N_UNEVEN / 5) < 4 * np.sqrt(0.16 * N_UNEVEN)
    assert found.rank == int(np.ceil((found.n_rows + 1) * found.coverage - 1e-9))
    held = held_out(UNEVEN, y, np.zeros(N_UNEVEN), (found.n_rows,))
    plain = clone(model).set_params(interval=None).fit(UNEVEN[~held], y[~held])
    np.testing.assert_array_equal(model.predict(ASKED), plain.predict(ASKED))
    columns = y[held].reshape(found.n_rows, -1)
    missed = np.abs(columns - plain.predict(UNEVEN[held]).reshape(columns.shape))
    scaled = missed / brute_sizes(plain, UNEVEN[held])[:, None]
    widths = np.sort(scaled, axis=0)[found.rank - 1]
    np.testing.assert_allclose(found.half_widths, widths, rtol=1e-6)
    half = (brute_sizes(plain, ASKED)[:, None] * widths).reshape(plain.predict(ASKED).shape)
    expected = np.stack([plain.predict(ASKED) - half, plain.predict(ASKED) + half], axis=-1)
    given = model.predict_interval(ASKED)
    np.testing.assert_allclose(given, expected, rtol=1e-6, atol=1e-6)
    lazy = model.predict_interval(da.from_array(ASKED, chunks=(700, 2)))
    assert (lazy.shape, lazy.chunks[0]) == (given.shape, (700, 700, 700, 700, 200))
    np.testing.assert_array_equal(lazy, given)
    assert not hasattr(plain, "predict_interval")
    assert not hasattr(plain, "interval_")


def test_a_model_without_intervals_says_what_to_do():
    assert hasattr(covering(), "predict_interval")
    model = covering(interval=None).fit(UNEVEN, TWO)
    with pytest.raises(AttributeError, match=r"interval=None\. Pass interval=0\.9"):
        _ = model.predict_interval
    # One that is asked for them later says what to do.
    with pytest.raises(AttributeError, match=r"fitted without\. Fit it again"):
        _ = model.set_params(interval=0.9).predict_interval


def test_too_few_rows_are_an_error_with_the_number_needed():
    y = np.where(np.arange(N_LABELED) < 500, "calm", "storm")
    with pytest.raises(ParameterError, match="needs 299 rows of class 'calm'") as caught:
        bounded(max_false_alarm=0.01).fit(LABELED, y)
    # What it says is enough.
    assert "max_false_alarm to 0.012 or delta to 0.082" in str(caught.value)
    for enough in ({"max_false_alarm": 0.012}, {"max_false_alarm": 0.01, "delta": 0.082}):
        assert 250 <= bounded(**enough).fit(LABELED, y).false_alarm_.n_negatives < 350
    needed = r"interval=0\.99 needs 99 rows.* lower interval to 0\.988"
    with pytest.raises(ParameterError, match=needed):
        covering(interval=0.99).fit(UNEVEN[:170], NUMBERS[:170])
    for rows, coverage, needed in ((170, 0.988, 85), (198, 0.99, 99), (18, 0.9, 9)):
        model = covering(interval=coverage).fit(UNEVEN[:rows], NUMBERS[:rows])
        assert needed <= model.interval_.n_rows < rows
    y = np.arange(120) % 2
    rows = np.where(y == 0, np.arange(120) % 3, np.arange(120))
    needed = r"needs 29 distinct rows.* of 60 were drawn.* Fit on more"
    with pytest.raises(ParameterError, match=needed):
        bounded().fit(LABELED[rows], y)
    needed = r"interval=0\.9 needs 9 distinct rows.*, or lower interval"
    with pytest.raises(ParameterError, match=needed):
        covering().fit(UNEVEN[:6].repeat(20, axis=0), NUMBERS[:6].repeat(20))


def test_where_nothing_is_missed_intervals_are_of_one_size_and_of_few_rows_all_copies_count():
    model = covering(C=1e6, gamma=1.0).fit(UNEVEN, np.full(N_UNEVEN, 3.0))
    np.testing.assert_allclose(model.predict_interval(ASKED), 3.0, atol=1e-6)
    residuals, units = np.arange(10.0), np.arange(10) < 4
    found = interval_of(residuals[:, None], IntervalSpec(0.9), copies=3, units=units)
    rank = int(np.ceil(31 * 0.9))
    assert (found.rank, found.half_widths) == (rank, (residuals.repeat(3)[rank - 1],))


FEW, FEW_NUMBERS = uneven(600)


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


def test_copies_are_on_one_side():
    rows = repeated(len(FEW), "a tenth")
    own, numbers = FEW[rows], FEW_NUMBERS[rows]
    model = covering().fit(own, numbers)
    held = held_out(own, numbers, np.zeros(len(own)), (model.interval_.n_rows,))
    assert not np.isin(rows[held], rows[~held]).any()
    plain = covering(interval=None).fit(own[~held], numbers[~held])
    np.testing.assert_array_equal(plain.predict(FEW), model.predict(FEW))


@pytest.mark.parametrize("how", few([3, "one row"], 1))
def test_new_rows_are_in_intervals_and_keep_their_bound(how):
    asked, numbers = uneven(4000, seed=99)
    others, labels = overlapping(20_000, seed=99)
    shares, rates = [], []
    for seed in range(6):
        rows, (own, y) = repeated(600, how, seed), uneven(600, seed=seed)
        lower, upper = covering(random_state=seed).fit(own[rows], y[rows]).predict_interval(asked).T
        shares.append(((lower <= numbers) & (numbers <= upper)).mean())
        rows, (own, y) = repeated(900, how, seed), overlapping(900, seed=seed)
        rates.append(
            bounded(random_state=seed).fit(own[rows], y[rows]).predict(others[labels == 0]).mean()
        )
    # With 120 rows held out a share has a deviation of 0.027, a mean of 6 of 0.011.
    assert 0.855 < np.mean(shares) < 0.945
    # Each exceeds it once in 20 fits.
    assert np.sum(np.array(rates) > 0.1) <= 1
    assert 0.02 < np.mean(rates) < 0.09
