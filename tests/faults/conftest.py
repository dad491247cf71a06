"""What an undisturbed run gives, to compare with."""

import dask.array as da
import pytest
from small import tiny_tasks
from support import checkers, model_bits, small_svc

N = 1200


@pytest.fixture(autouse=True)
def many_small_tasks():
    """Keep the twelve blocks of the data, of 100 rows each, and one bundle a cell."""
    with tiny_tasks(BLOCK_NBYTES=1600):
        yield


@pytest.fixture(scope="session")
def data():
    X, y = checkers(N)
    return da.from_array(X, chunks=(100, 2)), da.from_array(y, chunks=100)


@pytest.fixture(scope="session")
def undisturbed(data):
    return model_bits(small_svc().fit(*data))
