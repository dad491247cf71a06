"""The sample: by brute force, under any chunking, and nothing drawn twice."""

import dask
import dask.array as da
import numpy as np
import pytest

from daskls.partition.shuffle import row_keys
from daskls.run.blocks import BlockRows
from daskls.run.sample import sample_rows
from daskls.run.scan import scan_targets
from daskls.seeds import SAMPLE

N_ROWS = 3000


def sampled(n_sample, chunk_rows, weights=None, seed=5):
    """Return the sample of rows that say their number, in blocks of some size."""
    number = np.arange(N_ROWS)[:, None]
    columns = [number.astype("f4"), number % 3, None if weights is None else weights[:, None]]
    given = [c if c is None else da.from_array(c, chunks=(chunk_rows, 1)) for c in columns]
    with dask.config.set(scheduler="sync"):
        rows = BlockRows(*given)
        return sample_rows(rows, scan_targets(rows), n_sample, seed).sample(
            np.ones(3), n_sample, seed
        )


@pytest.mark.parametrize("chunk_rows", [7, 999, N_ROWS])
@pytest.mark.parametrize("n_sample", [1, 40, 2900, N_ROWS])
def test_the_sample_is_the_rows_of_the_least_keys(n_sample, chunk_rows):
    found = sampled(n_sample, chunk_rows)
    keys = row_keys(np.arange(N_ROWS), SAMPLE(5))
    expected = np.sort(np.argsort(keys)[:n_sample])
    np.testing.assert_array_equal(found.numbers, expected)
    np.testing.assert_array_equal(found.X[:, 0], expected)
    np.testing.assert_array_equal(found.targets, expected % 3)
    np.testing.assert_array_equal(found.weights, 1.0)


def test_rows_of_no_weight_have_no_number():
    weights = (np.arange(N_ROWS) % 4 > 0).astype(float)
    found = sampled(500, 90, weights)
    counted = np.flatnonzero(weights)
    keys = row_keys(np.arange(len(counted)), SAMPLE(5))
    expected = np.sort(np.argsort(keys)[:500])
    np.testing.assert_array_equal(found.numbers, expected)
    np.testing.assert_array_equal(found.X[:, 0], counted[expected])
