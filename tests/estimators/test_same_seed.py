"""The same seed gives the same model bit for bit, whatever holds, reads and trains it."""

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from distributed import Client
from small import set_sizes, small, small_sample
from support import (
    assert_same_model,
    checkers,
    model_bits,
    path_of,
    small_svc,
    start_cluster,
    tiny_blocks,
)
from threadpoolctl import threadpool_limits

from daskls import RandomChunkSVC
from daskls.errors import MemoryPlanError
from daskls.partition.stored import read_partition
from daskls.run import rows
from daskls.store.dataset import DatasetWriter
from daskls.store.layout import Root

N = 1200


@pytest.fixture
def many_leaves(monkeypatch):
    """Sample fewer rows than there are."""
    small_sample(monkeypatch, 400)


def test_all_kinds_of_input_give_one_model(tmp_path, many_leaves, set_block_nbytes):
    X, y = checkers(N)
    labels = np.array(["even", "odd"])[y]
    set_block_nbytes(200 * 16)
    array = zarr.create_array(tmp_path / "X", shape=X.shape, dtype=X.dtype, chunks=(170, 2))
    array[...] = X
    with DatasetWriter(
        tmp_path / "set", 2, X.dtype, classes=["even", "odd"], chunk_rows=130
    ) as writer:
        writer.append(X, y)
    dask_y = da.from_array(labels, chunks=313)
    inputs = {
        "NumPy": (X, labels),
        "Dask": (da.from_array(X, chunks=(77, 1)), dask_y),
        "Zarr": (array, labels),
        "path of an array": (str(tmp_path / "X"), dask_y),
        "path of a data set": (tmp_path / "set", None),
    }
    models = {kind: small_svc().fit(*rows) for kind, rows in inputs.items()}
    bits = {kind: model_bits(model) for kind, model in models.items()}
    for kind in inputs:
        differing = [k for k, v in bits[kind].items() if v != bits["NumPy"][k]]
        # The identity names the dtype of the labels, which may be wider than they need.
        assert [k for k in differing if k != "fingerprint"] == [], kind
        assert models[kind].classes_.tolist() == ["even", "odd"]


def test_blas_threads_leave_no_trace():
    # With hundreds of features OpenBLAS shares the covariance and its eigenvectors out.
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 300))
    # One direction of all features has most of the variance: the cut is an eigenvector.
    X += X[:, :1]
    y = (X[:, 0] > 0).astype(int)
    models = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"), dask.config.set(scheduler="sync"):
            models.append(small_svc(cell_size=1000, gamma=1e-3, C=0.1).fit(X, y))
    (tree,) = read_partition(Root.open(path_of(models[0])).find("partition")).trees
    assert ((tree.directions != 0).sum(axis=1) > 1).any()
    assert_same_model(*models)


N_HELD = 600
X, Y = checkers(N_HELD)
PACKED = {"compressors": "auto"}


@pytest.fixture
def small_blocks(set_block_nbytes, monkeypatch):
    """Make blocks of 50 rows, of chunks of more than 100."""
    set_block_nbytes(50 * 16)
    set_sizes(monkeypatch, {"daskls.run.rows.LARGE_NBYTES": 100 * 16})
    tiny_blocks(monkeypatch, 50 * 16)


def write(path, values=X, **options):
    return zarr.create_array(path, data=values, chunks=values.shape, **options)


@pytest.mark.parametrize("kind", ["packed", "dask"])
def test_the_model_and_its_answers_are_those_of_small_chunks(kind, tmp_path, small_blocks):
    expected = small_svc().fit(X, Y)
    if kind == "dask":
        data = da.from_array(X, chunks=-1)
    else:
        write(tmp_path / "X", **PACKED)
        data = tmp_path / "X"
    model = small_svc().fit(data, Y)
    assert_same_model(model, expected)
    scores = model.decision_function(data)
    np.testing.assert_array_equal(scores.compute(), expected.decision_function(X))
    model.predict_to_zarr(data, tmp_path / "out")
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "out")[:], expected.predict(X))
    # A Dask array's answer keeps its chunks.
    assert kind != "dask" or scores.chunks == ((N_HELD,),)


@pytest.fixture(scope="module")
def wide():
    """Return 160 MiB of rows, most of one class, and a method that trains them in a moment."""
    X = np.zeros((80_000, 256))
    X[:, 0] = np.random.default_rng(0).random(len(X))
    params = {"C": 1.0, "gamma": 0.1, "cv": 2, "random_state": 0}
    return X, (X[:, 0] > 0.999).astype("i4"), RandomChunkSVC(1000, **params)


@pytest.mark.slow
def test_a_chunk_that_no_worker_holds_is_fitted_or_refused(wide, tmp_path):
    X, y, model = wide
    write(tmp_path / "whole", X, **PACKED)
    zarr.create_array(tmp_path / "parts", data=X, chunks=(8000, 256))
    with start_cluster(1, 1, "512MiB") as cluster, Client(cluster) as client:
        model.set_params(client=client)
        with pytest.raises(MemoryPlanError, match=r"of 80000 rows x 256 .* held whole") as error:
            model.fit(tmp_path / "whole", y)
        model.fit(tmp_path / "parts", y)
        n_wrong = (model.predict(tmp_path / "parts") != y).sum()
        assert client.compute(n_wrong).result() < 200
    # Of 160 MiB, which are there three times while they are unpacked.
    most = int(str(error.value).split("at most ")[1].split()[0])
    assert 160 * most / 80_000 * 3 < 512
    assert most > 15_000


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "big-endian": lambda X: X.astype(X.dtype.newbyteorder(">")),
    "read-only": lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
}


@pytest.fixture(scope="module")
def from_disk():
    """Return a function that fits on rows that a worker reads from disk."""
    with Client(processes=False, n_workers=1, dashboard_address=":0", set_as_default=False) as own:
        yield lambda name, X, y: small(name, client=own).fit(X, y)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_is_read_as_from_disk(layout, from_disk, monkeypatch):
    given = LAYOUTS[layout](X)
    np.testing.assert_array_equal(given, X)
    before = given.copy()
    with monkeypatch.context() as patch:
        patch.setattr(rows, "save_array", None)
        ours = small("VoronoiSVC").fit(given, Y)
    assert_same_model(from_disk("VoronoiSVC", X, Y), ours)
    np.testing.assert_array_equal(given, before)
