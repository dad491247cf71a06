"""What an undisturbed run gives, to compare with."""

import dask.array as da
import pytest
from support import checkers, model_bits, small_svc

from daskls.plan import bundles as plan
from daskls.run import rows

N = 1200


@pytest.fixture(autouse=True)
def many_small_tasks(monkeypatch):
    """Keep the twelve blocks of the data, and one bundle a cell."""
    monkeypatch.setattr(rows, "BLOCK_NBYTES", 1)
    monkeypatch.setattr(plan, "N_BUNDLES", 10_000)
    monkeypatch.setattr(plan, "MIN_BUNDLE_COST", 0.0)


@pytest.fixture(scope="session")
def data():
    X, y = checkers(N)
    return da.from_array(X, chunks=(100, 2)), da.from_array(y, chunks=100)


@pytest.fixture(scope="session")
def undisturbed(data):
    return model_bits(small_svc().fit(*data))
