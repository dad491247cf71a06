"""X in one chunk is cut into blocks, and read once a pass."""

from collections import Counter

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from distributed import Client
from small import set_sizes
from support import MIB, assert_same_model, checkers, small_svc, start_cluster, tiny_blocks
from zarr.storage import _local

from daskls import MemoryPlanError, RandomChunkSVC
from daskls.run import rows
from daskls.sources.door import open_source

N = 600
X, Y = checkers(N)
PACKED = {"compressors": "auto"}


@pytest.fixture
def small_blocks(set_block_nbytes, monkeypatch):
    """Make blocks of 50 rows, of chunks of more than 100."""
    set_block_nbytes(50 * 16)
    set_sizes(monkeypatch, {"daskls.run.rows.LARGE_NBYTES": 100 * 16})
    tiny_blocks(monkeypatch, 50 * 16)


def write(path, values=X, **options):
    return zarr.create_array(path, data=values, chunks=values.shape, **options)


@pytest.fixture
def chunk_reads(monkeypatch):
    """Return a count of the reads of each chunk's file by Zarr."""
    counter = Counter()
    original = _local._get

    def counted(path, *args, **kwargs):
        counter[path.parts[-4:]] += "c" in path.parts
        return original(path, *args, **kwargs)

    monkeypatch.setattr(_local, "_get", counted)
    return counter


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
    assert kind != "dask" or scores.chunks == ((N,),)


def test_a_packed_chunk_is_unpacked_once_a_pass(tmp_path, small_blocks, chunk_reads):
    write(tmp_path / "X", **PACKED)
    chunk = (*(tmp_path / "X").parts[-1:], "c", "0", "0")
    with dask.config.set(scheduler="synchronous"):
        model = small_svc().fit(tmp_path / "X", Y)
        assert chunk_reads[chunk] == 2
        model.predict(tmp_path / "X").compute()
        assert chunk_reads[chunk] == 3


def test_blocks_of_large_chunks_end_where_the_chunks_end(tmp_path, small_blocks):
    zarr.create_array(tmp_path / "S", data=X, chunks=(20, 2), shards=(200, 2))
    zarr.create_array(tmp_path / "P", data=X, chunks=(90, 2))
    blocks = [rows.open_whole(open_source(tmp_path / name), 50 * 16).chunks[0] for name in "SP"]
    # Of shards whole chunks; a chunk of less than the bound is a block.
    assert blocks[0] == (40,) * 15
    assert blocks[1] == (90,) * 6 + (60,)


def test_a_chunk_of_less_than_the_bound_stays_a_block():
    data = da.zeros((rows.LARGE_NBYTES // 800, 100), chunks=-1)
    assert rows.cut_large(data, 16 * MIB) is data
    more = da.zeros((rows.LARGE_NBYTES // 800 + 1, 100), chunks=-1)
    assert rows.cut_large(more, 16 * MIB).numblocks == (9, 1)


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
