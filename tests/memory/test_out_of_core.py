"""X larger than a worker's memory: no process holds a quarter of it, each chunk is read twice."""

import sys
from collections import Counter
from contextlib import contextmanager

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from distributed import Client
from sklearn.base import clone
from small import set_sizes
from support import MIB, OpenedFiles, checkers, peak, reset_peak, small_svc, start_cluster

from daskls import KernelKNNClassifier, LandmarkSVC, NeighborSamplingSVC, RandomChunkSVC

# Rows of many even dimensions, which cells are not for, take the memory that is measured.
pytestmark = pytest.mark.filterwarnings("ignore::daskls.AdviceWarning")

# A worker holds 350 MiB before its work, and up to 135 more in a prediction.
LIMIT = 544 * MIB
N_FEATURES = 64
CHUNK_ROWS = 16_384
N_CHUNKS = 88

# And of how many rows one counts: all are read.
OTHERS = [
    (RandomChunkSVC(1000, C=1.0, gamma=0.1, cv=2, tol=0.1, random_state=0), 16),
    (LandmarkSVC(100, n_landmarks=16, C=[0.01, 1.0], cv=2, random_state=0), 2),
    (NeighborSamplingSVC(0.016, n_neighbors=1, C=1.0, gamma=1e-3, random_state=0), 8),
]


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """Write 704 MiB of rows chunk by chunk; the second class is a thin slice along feature 0."""
    folder = tmp_path_factory.mktemp("large")
    n = N_CHUNKS * CHUNK_ROWS
    chunks = {"chunks": (CHUNK_ROWS, N_FEATURES), "compressors": None}
    X = zarr.create_array(folder / "X", shape=(n, N_FEATURES), dtype="f8", **chunks)
    y = zarr.create_array(folder / "y", shape=(n,), dtype="i4", chunks=(CHUNK_ROWS,))
    rng = np.random.default_rng(0)
    for start in range(0, n, CHUNK_ROWS):
        block = rng.random((CHUNK_ROWS, N_FEATURES), dtype="f4").astype("f8")
        block[:, 0] *= 100
        X[start : start + CHUNK_ROWS] = block
        y[start : start + CHUNK_ROWS] = block[:, 0] > 99.8
    assert X.nbytes > LIMIT
    return folder / "X", folder / "y", X.nbytes


@pytest.fixture(scope="module")
def compiled():
    """Compile here, once, into numba's cache: LLVM in a worker this small would leave no room."""
    models = [small_svc(), KernelKNNClassifier(1), *(model for model, _ in OTHERS)]
    rows = np.random.default_rng(0).random((2000, N_FEATURES))
    with dask.config.set(scheduler="threads"):
        for model in models:
            clone(model).fit(*checkers(2000)).predict(np.zeros((10, 2)))
            # Of so many features other functions predict.
            clone(model).fit(rows, rows[:, 0] > 0.5).predict(rows[:10])


@contextmanager
def small_cluster():
    """Have two workers that Dask does not pause.

    At 80 % of its limit a worker would start no task until its memory falls, which is for ever if
    imports, compiled code and caches fill it.
    """
    with (
        dask.config.set({"distributed.worker.memory.pause": False}),
        start_cluster(2, 1, LIMIT) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client(compiled):
    with small_cluster() as client:
        # Imports are no data.
        small_svc().fit(*checkers(200)).predict(da.zeros((10, 2)))
        yield client


class Watch:
    """Fails if a process of the cluster, or this one, holds a quarter of X, or dies of it."""

    def __init__(self, client, nbytes):
        self.client, self.nbytes = client, nbytes

    def __enter__(self):
        self.before = {"client": reset_peak(), **self.client.run(reset_peak)}

    def __exit__(self, *error):
        if error[0] is not None:
            return
        after = {"client": peak(), **self.client.run(peak)}
        # A worker that passed its limit was killed and has another address.
        assert after.keys() == self.before.keys()
        grown = {k: after[k][1] - self.before[k][1] for k in after}
        assert max(grown.values()) < self.nbytes / 4, {k: v >> 20 for k, v in grown.items()}
        # Nothing would have been tested if the work was elsewhere.
        assert min(v for k, v in grown.items() if k != "client") > 10 * MIB


@pytest.fixture
def fresh_client(compiled):
    """Start other workers: what a process kept from tests before would hide what this one takes.

    A restart would not do: a LocalCluster gives up workers that are away 15 s after another one.
    """
    with small_cluster() as client:
        yield client


@pytest.fixture(scope="module")
def fitted(paths, client, tmp_path_factory):
    X, y, nbytes = paths
    store = tmp_path_factory.mktemp("model") / "m"
    with Watch(client, nbytes):
        return small_svc(cell_size=2000, gamma=0.1, store=store).fit(X, y)


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@needs_proc
@pytest.mark.slow
def test_no_process_holds_a_quarter_of_X_in_fit_and_predict_to_zarr(
    fitted, paths, client, tmp_path
):
    assert fitted.fit_report_.n_rows.sum() == N_CHUNKS * CHUNK_ROWS
    assert fitted.n_cells_ > 500
    X, y, nbytes = paths
    with Watch(client, nbytes):
        fitted.predict_to_zarr(X, tmp_path / "out")
    assert (zarr.open_array(tmp_path / "out")[:] != zarr.open_array(y)[:]).mean() < 0.002


@pytest.mark.slow
@needs_proc
def test_no_process_holds_a_quarter_of_X_for_its_neighbors(paths, client, tmp_path):
    X, y, nbytes = paths
    # A few rows from all over: their neighbors are in many leaves.
    rows = zarr.open_array(X)[:: CHUNK_ROWS * 2 + 77]
    with Watch(client, nbytes):
        model = KernelKNNClassifier(1, store=tmp_path / "m").fit(X, y)
        found = model.predict(da.from_array(rows, chunks=(11, N_FEATURES))).compute()
    np.testing.assert_array_equal(found, zarr.open_array(y)[:: CHUNK_ROWS * 2 + 77])


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize(("model", "every"), OTHERS, ids=["chunks", "landmarks", "sample"])
def test_no_process_holds_a_quarter_of_X_for_other_models(
    model, every, paths, fresh_client, tmp_path
):
    X, y, nbytes = paths
    if hasattr(model, "cv"):
        # Imports are no data; a sample's first fit would leave workers too full for a second.
        clone(model).fit(*checkers(2000)).predict(da.zeros((10, 2)))
    weights = (np.arange(N_CHUNKS * CHUNK_ROWS) % every == 0).astype(float)
    with Watch(fresh_client, nbytes):
        model.set_params(store=tmp_path / "m").fit(X, y, weights)
    rows, labels = (zarr.open_array(path)[:: CHUNK_ROWS // 4 + 1] for path in (X, y))
    assert (model.predict(rows) != labels).mean() < 0.01


@pytest.mark.parametrize(("with_weights", "n_partitions"), [(False, 1), (True, 1), (False, 3)])
def test_each_chunk_of_X_is_read_twice(with_weights, n_partitions, tmp_path, monkeypatch):
    X, y = checkers(1000)
    array = zarr.create_array(tmp_path / "X", data=X, chunks=(90, 2))
    set_sizes(monkeypatch, {"daskls.run.rows.BLOCK_NBYTES": 200 * 16})
    weights = np.linspace(0.5, 1.0, 1000) if with_weights else None
    with dask.config.set(scheduler="threads"), OpenedFiles(tmp_path / "X" / "c") as files:
        small_svc(n_partitions=n_partitions).fit(array, y, weights)
    assert Counter(files) == {f"{chunk}/0": 2 for chunk in range(12)}
