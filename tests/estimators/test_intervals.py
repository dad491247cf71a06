"""Intervals of regressors: rows that nothing else sees, and one rank of what is missed of them.

The oracles are a plain fit to the other rows, a search of each row's cell by brute force, a sort,
and the beta-binomial distribution that split conformal has.
"""

import pickle
from itertools import product

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from small import assert_same_bits, connected, tiny_tasks
from support import few
from writes import StopError, StopsEverywhere, Writes

import daskls
from daskls import ParameterError, RandomChunkSVR, StoreError, VoronoiSVC, VoronoiSVR
from daskls.errors import DamageError
from daskls.methods.predict import around
from daskls.methods.reserved import OF_ALL, sizes_of_cells
from daskls.methods.scores import model_values
from daskls.partition.shuffle import row_keys
from daskls.run import reserve as reserve_size
from daskls.seeds import THRESHOLD_ROWS
from daskls.solvers.order_statistic import covering_rank, rows_to_cover
from daskls.store.caches import drop_caches

N, SEED, COVERAGE = 900, 3, 0.9
ONE = {"kernel": "rbf", "C": 4.0, "gamma": 6.0, "feature_scale": None, "random_state": SEED}
TUBE = {**ONE, "C": [1.0, 4.0], "loss": "epsilon_insensitive", "epsilon": 0.05, "cv": 2}


def uneven(n=N, seed=0):
    """Return rows whose noise is ten times as large on one side, with a number each."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, np.sin(6 * X[:, 0]) + np.where(X[:, 1] > 0.5, 1.0, 0.1) * rng.normal(size=n)


X, Y = uneven()
BOTH = np.stack([Y, 100 + 5 * X[:, 0] + Y**2], axis=1)
TEST, Y_TEST = uneven(3000, seed=9)


def covering(**params):
    return VoronoiSVR(**{"cell_size": 150, "interval": COVERAGE, **ONE, **params})


def held_out(n_held, n=N, seed=SEED):
    """Return which rows are held out, by the order of keys."""
    found = np.zeros(n, bool)
    found[np.argsort(row_keys(np.arange(n), THRESHOLD_ROWS(seed)))[:n_held]] = True
    return found


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
    entered = reader.enter(asked)
    answers = np.stack([model_values(reader.read_cell(c), entered) for c in range(reader.n_cells)])
    means = reader.target.leave(answers[ways].mean(axis=1).reshape(-1, answers.shape[2]))
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
    assert found.n_rows == N // 5
    assert found.rank == int(np.ceil((found.n_rows + 1) * found.coverage - 1e-9))
    held = held_out(found.n_rows)
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


def test_coverage_over_draws_is_what_ranks_of_equal_rows_have():
    """Each draw's count of covered test rows is beta-binomial, and together they average out."""
    n, n_test, levels = 150, 200, []
    for seed in range(40):
        rows, numbers = uneven(n + n_test, seed=100 + seed)
        model = covering(cell_size=200, random_state=seed, interval=0.8)
        lower, upper = model.fit(rows[:n], numbers[:n]).predict_interval(rows[n:]).T
        found = model.interval_
        within = int(((lower <= numbers[n:]) & (numbers[n:] <= upper)).sum())
        known = stats.betabinom(n_test, found.rank, found.n_rows + 1 - found.rank)
        levels.append((within - known.mean()) / known.std())
    # Of n independent counts the mean has a deviation of 1 / sqrt(n): within four of it.
    assert abs(np.mean(levels)) < 4 / np.sqrt(len(levels))
    assert 0.6 < np.std(levels) < 1.5


def test_what_a_held_out_row_holds_moves_the_widths_alone(tmp_path):
    model = covering(store=tmp_path / "m").fit(X, Y)
    held = held_out(model.interval_.n_rows)
    moved, other_rows = Y.copy(), X.copy()
    moved[held] += 50.0
    other_rows[held] *= 0.5
    other = covering().fit(other_rows, moved)
    assert other.interval_.half_widths[0] > model.interval_.half_widths[0] + 10
    np.testing.assert_array_equal(model.predict(TEST), other.predict(TEST))
    # They are part of the data that a store belongs to.
    with pytest.raises(StoreError, match="checksum was"):
        covering(store=tmp_path / "m").fit(X, moved)
    with pytest.raises(StoreError, match=r"coverage was 0\.9, is 0\.8"):
        covering(store=tmp_path / "m", interval=0.8).fit(X, Y)


def test_rows_of_weight_0_are_as_if_they_were_not_there():
    weights = np.random.default_rng(1).uniform(0.5, 2, N) * (np.arange(N) % 4 > 0)
    kept = weights > 0
    model = covering().fit(X[kept], Y[kept], weights[kept])
    again = covering().fit(da.from_array(X, chunks=(250, 2)), Y, weights)
    assert_same_bits(model, again)


@pytest.mark.parametrize("way", few([{}, {"n_partitions": 2}, TUBE], 2))
def test_chunks_tasks_and_threads_change_no_bit(way):
    y = Y if way is TUBE else BOTH
    model = covering(**way).fit(X, y)
    for chunks, scheduler, n_bundles in ((100, "threads", 10_000), (N, "sync", 3)):
        with tiny_tasks(N_BUNDLES=n_bundles), dask.config.set(scheduler=scheduler):
            rows = da.from_array(X, chunks=(chunks, 2)), da.from_array(y, chunks=chunks)
            assert_same_bits(model, clone(model).fit(*rows))
    assert covering(random_state=0).fit(X, Y).interval_ != model.interval_


@pytest.mark.slow
def test_a_cluster_changes_no_bit(two_workers, tmp_path):
    expected = covering().fit(X, Y)
    with tiny_tasks(), connected(two_workers) as client:
        params = {"client": client, "store": tmp_path / "m"}
        model = covering(**params).fit(da.from_array(X, chunks=(90, 2)), Y)
        assert_same_bits(expected, model)
        lazy = model.predict_interval(da.from_array(TEST, chunks=(700, 2))).compute()
    np.testing.assert_array_equal(lazy, expected.predict_interval(TEST))


@pytest.mark.slow
def test_a_fit_that_is_stopped_anywhere_goes_on(tmp_path):
    expected = covering().fit(X, Y)
    stops, store = StopsEverywhere(), tmp_path / "m"
    rows = da.from_array(X, chunks=(100, 2)), da.from_array(Y, chunks=100)
    with tiny_tasks(), dask.config.set(scheduler="sync"), Writes(store, stops):
        for _ in range(100):
            try:
                model = covering(store=store).fit(*rows)
                break
            except StopError:
                continue
    assert "interval" in " ".join(stops.names)
    assert_same_bits(expected, model)


def test_a_model_without_its_intervals_is_not_finished(tmp_path):
    store, written = tmp_path / "m", []

    def stop(name):
        if name.startswith("interval"):
            written.append(name)
            raise StopError

    with Writes(store, stop), pytest.raises(StopError):
        covering(store=store).fit(X, Y)
    assert written
    drop_caches()
    with pytest.raises(StoreError, match=r"no intervals yet.*Call fit again"):
        daskls.load(store)
    written = []
    with Writes(store, written.append):
        model = covering(store=store).fit(X, Y)
    assert not [name for name in written if name.startswith(("bundles", "exchange", "partition"))]
    assert_same_bits(model, covering().fit(X, Y))
    assert daskls.load(store).interval_ == model.interval_


@pytest.mark.parametrize("name", ["sizes", "zarr.json"])
def test_damaged_intervals_are_taken_again(tmp_path, name):
    model = covering(store=tmp_path / "m").fit(X, Y)
    expected = model.predict_interval(TEST)
    part = tmp_path / "m" / "interval" / name
    file = part if part.is_file() else part / "c.0"
    file.write_bytes(file.read_bytes()[:-2] + b"??")
    drop_caches()
    with pytest.raises(DamageError, match="interval"):
        daskls.load(tmp_path / "m").predict_interval(TEST)
    drop_caches()
    np.testing.assert_array_equal(model.fit(X, Y).predict_interval(TEST), expected)


def test_saved_and_pickled_models_keep_them(tmp_path):
    model = covering().fit(X, BOTH)
    model.save(tmp_path / "m")
    for again in (daskls.load(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        assert again.interval == COVERAGE
        assert_same_bits(model, again)
    # A model without them has none, whatever this estimator was before.
    model.set_params(interval=None).fit(X, BOTH)
    with pytest.raises(AttributeError, match=r"interval=None\. Pass interval=0\.9"):
        _ = model.predict_interval
    assert not hasattr(model, "interval_")
    # One that is asked for them later says what to do.
    with pytest.raises(AttributeError, match=r"fitted without\. Fit it again"):
        _ = model.set_params(interval=0.9).predict_interval
    assert hasattr(covering(), "predict_interval")


def test_tables_and_empty_arrays_are_answered_as_by_predict():
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=Y)
    model = covering().fit(frame, "y")
    asked = pd.DataFrame(TEST[:50], columns=["a", "b"])[["b", "a"]]
    given = model.predict_interval(asked)
    np.testing.assert_allclose(given.mean(axis=1), model.predict(asked), rtol=1e-12)
    none = da.zeros((0, 2), chunks=(1, 2))
    assert covering().fit(X, BOTH).predict_interval(none).compute().shape == (0, 2, 2)
    with pytest.raises(daskls.DataError, match="NaN"):
        covering().fit(X, Y).predict_interval(np.full((1, 2), np.nan))


def test_too_few_rows_are_an_error_with_the_number_needed():
    with pytest.raises(ParameterError) as caught:
        covering(interval=0.99).fit(X[:170], Y[:170])
    for words in ("interval=0.99 needs 99 rows", "there are 170 of positive weight", "85", "198"):
        assert words in str(caught.value)
    # What it says is enough.
    assert "lower interval to 0.988" in str(caught.value)
    for rows, coverage, n, rank in ((170, 0.988, 85, 85), (198, 0.99, 99, 99), (18, 0.9, 9, 9)):
        found = covering(interval=coverage).fit(X[:rows], Y[:rows]).interval_
        assert (found.n_rows, found.rank) == (n, rank)


@pytest.mark.parametrize("coverage", [0.0, 1.0, 90, "0.9"])
def test_what_is_no_coverage_is_refused(coverage):
    with pytest.raises((ParameterError, ValueError), match="interval"):
        covering(interval=coverage).fit(X, Y)


def test_classifiers_take_no_intervals():
    with pytest.raises(TypeError, match="interval"):
        VoronoiSVC(interval=0.9)


def test_many_rows_are_held_out_up_to_a_number(monkeypatch):
    monkeypatch.setattr(reserve_size, "MOST_RESERVED", 100)
    assert covering().fit(X, Y).interval_.n_rows == 100
    # No fewer than are needed, whatever they weigh.
    monkeypatch.setattr(reserve_size, "RESERVED_NBYTES", 16)
    assert covering().fit(X, Y).interval_.n_rows == 9


def test_numbers_without_noise_have_intervals_of_no_width():
    model = covering().fit(X, np.full(N, 7.0))
    np.testing.assert_array_equal(model.predict_interval(TEST[:5]), np.full((5, 2), 7.0))


def test_cells_that_were_asked_about_nothing_have_the_size_of_all():
    names = "n_rows, validation_error"
    report = np.rec.fromarrays([[100, 50, 0], [0.04, np.nan, np.nan]], names=names)
    np.testing.assert_array_equal(sizes_of_cells(report), 1.0)
    nothing = np.rec.fromarrays([[10, 20], [np.nan, np.nan]], names=names)
    np.testing.assert_array_equal(sizes_of_cells(nothing), 1.0)
    # A cell of few rows is drawn to all the more.
    report = np.rec.fromarrays([[10**6, 10, 50], [1.0, 0.0, 0.0]], names=names)
    sizes = sizes_of_cells(report)
    assert sizes[0] > sizes[1] > sizes[2] > 0


def test_the_rank_is_the_least_that_covers_of_so_many():
    for coverage in (0.1, 0.5, 0.55, 0.7, 0.9, 0.95, 0.99):
        needed = rows_to_cover(coverage)
        hundredths = round(100 * coverage)
        for n in range(needed, needed + 300):
            rank = covering_rank(n, coverage)
            # In whole numbers, which no product of floats rounds.
            assert (rank - 1) * 100 < (n + 1) * hundredths <= rank * 100
            assert rank <= n
        assert needed == 1 or covering_rank(needed - 1, coverage) > needed - 1


def test_each_column_has_its_own_width():
    ends = around(np.zeros((2, 2)), np.array([1.0, 2.0]), (0.5, 3.0))
    np.testing.assert_array_equal(ends[..., 1], [[0.5, 3.0], [1.0, 6.0]])
    np.testing.assert_array_equal(ends[..., 0], -ends[..., 1])
