"""Intervals of regressors: one rank of what is missed of rows that nothing else sees.

The oracles are a plain fit to the other rows, a search of each row's cell by brute force, a sort,
and the beta-binomial distribution that split conformal has. What such a fit shares with one that
bounds false alarms is tested in ``test_reserved.py``.
"""

from itertools import product

import dask.array as da
import numpy as np
import pytest
from reserves import ONE, TUBE, covering, held_out, two_columns, uneven
from sklearn.base import clone
from small import set_sizes
from support import few

from daskls import ParameterError, RandomChunkSVR
from daskls.kernels.frame import decide_pairs
from daskls.methods.reserved import OF_ALL

N = 900
X, Y = uneven(N)
BOTH = two_columns(X, Y)
TEST, Y_TEST = uneven(3000, seed=9)


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
        (covering(), Y),
        (covering(n_partitions=2), BOTH),
        (covering(**TUBE), Y),
        (RandomChunkSVR(chunk_size=200, interval=0.75, **ONE), BOTH),
        *few([(covering(C=None, gamma=None, kernel="auto"), BOTH)], 0),
    ],
    ids=["cells", "two partitions", "tube", "chunks", "chosen"],
)
def test_it_is_one_rank_of_what_a_plain_fit_misses_of_the_others(model, y):
    model.fit(X, y)
    found = model.interval_
    assert abs(found.n_rows - N / 5) < 4 * np.sqrt(0.16 * N)
    assert found.rank == int(np.ceil((found.n_rows + 1) * found.coverage - 1e-9))
    held = held_out(X, y, np.zeros(N), (found.n_rows,))
    plain = clone(model).set_params(interval=None).fit(X[~held], y[~held])
    np.testing.assert_array_equal(model.predict(TEST), plain.predict(TEST))
    columns = y[held].reshape(found.n_rows, -1)
    missed = np.abs(columns - plain.predict(X[held]).reshape(columns.shape))
    scaled = missed / brute_sizes(plain, X[held])[:, None]
    widths = np.sort(scaled, axis=0)[found.rank - 1]
    np.testing.assert_allclose(found.half_widths, widths, rtol=1e-6)
    half = (brute_sizes(plain, TEST)[:, None] * widths).reshape(plain.predict(TEST).shape)
    expected = np.stack([plain.predict(TEST) - half, plain.predict(TEST) + half], axis=-1)
    given = model.predict_interval(TEST)
    np.testing.assert_allclose(given, expected, rtol=1e-6, atol=1e-6)
    lazy = model.predict_interval(da.from_array(TEST, chunks=(700, 2)))
    assert (lazy.shape, lazy.chunks[0]) == (given.shape, (700, 700, 700, 700, 200))
    np.testing.assert_array_equal(lazy, given)
    assert not hasattr(plain, "predict_interval")
    assert not hasattr(plain, "interval_")


def test_cells_of_more_noise_have_wider_intervals():
    lower, upper = covering().fit(X, Y).predict_interval(TEST).T
    width, noisy = upper - lower, TEST[:, 1] > 0.5
    assert np.median(width[noisy]) > 1.5 * np.median(width[~noisy])


def test_a_model_without_intervals_says_what_to_do():
    assert hasattr(covering(), "predict_interval")
    model = covering(interval=None).fit(X, BOTH)
    with pytest.raises(AttributeError, match=r"interval=None\. Pass interval=0\.9"):
        _ = model.predict_interval
    # One that is asked for them later says what to do.
    with pytest.raises(AttributeError, match=r"fitted without\. Fit it again"):
        _ = model.set_params(interval=0.9).predict_interval


def test_too_few_rows_are_an_error_with_the_number_needed():
    with pytest.raises(ParameterError) as caught:
        covering(interval=0.99).fit(X[:170], Y[:170])
    for words in ("interval=0.99 needs 99 rows", "there are 170 of positive weight", "85", "198"):
        assert words in str(caught.value)
    # What it says is enough.
    assert "lower interval to 0.988" in str(caught.value)
    for rows, coverage, needed in ((170, 0.988, 85), (198, 0.99, 99), (18, 0.9, 9)):
        for seed in range(2):
            model = covering(interval=coverage, random_state=seed).fit(X[:rows], Y[:rows])
            assert needed <= model.interval_.n_rows < rows


@pytest.mark.parametrize("coverage", [0.0, 1.0, 90, "0.9"])
def test_what_is_no_coverage_is_refused(coverage):
    with pytest.raises(ValueError, match="interval"):
        covering(interval=coverage).fit(X, Y)


def test_many_rows_are_held_out_up_to_a_number(monkeypatch):
    set_sizes(monkeypatch, {"daskls.run.reserve.MOST_RESERVED": 100})
    assert 60 < covering().fit(X, Y).interval_.n_rows < 140
    # No fewer than are needed, whatever they weigh.
    set_sizes(monkeypatch, {"daskls.run.reserve.RESERVED_NBYTES": 16})
    assert 9 <= covering().fit(X, Y).interval_.n_rows < 40
