"""The same seed gives the same model bit for bit, whatever reads and trains it."""

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from distributed import Client
from support import (
    MIB,
    assert_same_model,
    checkers,
    model_bits,
    n_bundles,
    path_of,
    small_svc,
    tiny_blocks,
)
from threadpoolctl import threadpool_limits

from daskls.partition.stored import read_partition
from daskls.plan import Resources
from daskls.plan import bundles as plan
from daskls.run import begin
from daskls.store.dataset import DatasetWriter
from daskls.store.layout import Root
from daskls.store.models import finished_bundles

N = 1200
CHUNKINGS = {
    "one block": (N,),
    "a block of one row": (500, 1, 399, 300),
    "ten blocks": (120,) * 10,
}
LIMITS = {"512 MiB": 512 * MIB, "4 GiB": 4096 * MIB}
QUERIES = np.random.default_rng(7).random((700, 2))


@pytest.fixture
def many_leaves(monkeypatch):
    """Sample fewer rows than there are, and let memory decide the bundles at small n."""
    monkeypatch.setattr(plan, "MIN_SAMPLE", 400)
    monkeypatch.setattr(plan, "SAMPLED_PER_LEAF", 16)
    monkeypatch.setattr(plan, "N_BUNDLES", 4)
    monkeypatch.setattr(plan, "model_nbytes", lambda sizes, n_rows: n_rows * 1_200_000)


def set_limit(monkeypatch, where, limit):
    """Let daskls see this memory: of the local scheduler, or of each of a cluster's workers."""
    if where == "threads":
        monkeypatch.setattr(begin, "find_resources", lambda client: Resources(2, limit // 4))
        return
    for worker in where.scheduler.workers.values():
        monkeypatch.setattr(worker, "memory_limit", limit)


@pytest.fixture(scope="module")
def reference():
    """Bits and decisions of each data set's model, from the first fit that asks."""
    return {}


@pytest.mark.parametrize("offset", [0.0, 1e6], ids=["at 0", "at 1e6"])
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("where", ["threads", "one_worker", "two_workers"])
def test_chunks_workers_and_memory_leave_no_trace(
    where, limit, offset, many_leaves, set_block_nbytes, monkeypatch, request, reference
):
    X, y = checkers(N, offset=offset)
    set_block_nbytes(1)
    cluster = where if where == "threads" else request.getfixturevalue(where)
    set_limit(monkeypatch, cluster, LIMITS[limit])
    client = None if where == "threads" else Client(cluster, set_as_default=False)
    # Offset data need only one chunking a scheduler: what differs is the rounding.
    for chunks in list(CHUNKINGS.values())[: 3 if offset == 0 else 2]:
        rows = da.from_array(X, chunks=(chunks, 2)), da.from_array(y, chunks=(chunks,))
        model = small_svc(client=client).fit(*rows)
        found = {**model_bits(model), "scores": model.decision_function(QUERIES + offset).tobytes()}
        assert_same_model(reference.setdefault(offset, found), found)
        reference.setdefault("bundles", {})[where, limit] = n_bundles(model)
    if client is not None:
        client.close()


def test_the_fits_above_differed_in_their_bundles(reference):
    bundles = reference["bundles"]
    assert len(bundles) == 6, "runs after the test above"
    assert len(set(bundles.values())) >= 4, bundles
    for where in ("threads", "one_worker", "two_workers"):
        assert bundles[where, "512 MiB"] > bundles[where, "4 GiB"], bundles


def test_a_search_with_offsets_is_one_model_too(
    one_worker, two_workers, many_leaves, set_block_nbytes, monkeypatch
):
    X, y = checkers(N)
    set_block_nbytes(1)
    bits = None
    grid = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [1.0, 10.0, 100.0], "cv": 5}
    for where, chunks in zip(("threads", one_worker, two_workers), CHUNKINGS.values(), strict=True):
        set_limit(monkeypatch, where, 1024 * MIB)
        client = None if where == "threads" else Client(where, set_as_default=False)
        rows = da.from_array(X, chunks=(chunks, 2)), da.from_array(y, chunks=(chunks,))
        model = small_svc(**grid, fit_intercept=True, client=client).fit(*rows)
        # Some combinations left early.
        assert (model.fit_report_.n_trained < 60).any()
        found = model_bits(model)
        found["scores"] = model.decision_function(QUERIES).tobytes()
        bits = bits or found
        assert_same_model(bits, found)
        if client is not None:
            client.close()


def test_several_partitions_are_one_model_too(
    one_worker, many_leaves, set_block_nbytes, monkeypatch
):
    X, y = checkers(N)
    set_block_nbytes(1)
    models, bits = [], None
    for where, limit, chunks in [
        ("threads", 512, CHUNKINGS["one block"]),
        ("threads", 4096, CHUNKINGS["ten blocks"]),
        (one_worker, 1024, CHUNKINGS["a block of one row"]),
    ]:
        set_limit(monkeypatch, where, limit * MIB)
        client = None if where == "threads" else Client(where, set_as_default=False)
        rows = da.from_array(X, chunks=(chunks, 2)), da.from_array(y, chunks=(chunks,))
        models.append(small_svc(cell_size=150, n_partitions=3, client=client).fit(*rows))
        found = model_bits(models[-1])
        found["scores"] = models[-1].decision_function(QUERIES).tobytes()
        bits = bits or found
        assert_same_model(bits, found)
    assert len({n_bundles(model) for model in models}) == 2
    # Bundles may hold leaves of two partitions: in some of the models they do.
    report = models[0].fit_report_
    borders = [report.leaf[report.partition == partition].min() for partition in (1, 2)]
    bundles = [finished_bundles(path_of(model)) for model in models]
    across = [any(a < leaf <= b for a, b in of for leaf in borders) for of in bundles]
    assert set(across) == {False, True}
    client.close()


def test_the_sampled_tree_differs_from_the_exact_one(many_leaves, monkeypatch):
    X, y = checkers(N)
    sampled = small_svc().fit(X, y)
    monkeypatch.setattr(plan, "MIN_SAMPLE", N)
    exact = small_svc().fit(X, y)
    assert model_bits(sampled)["tree thresholds"] != model_bits(exact)["tree thresholds"]
    # All rows are in some cell either way.
    assert sampled.fit_report_.n_rows.sum() == exact.fit_report_.n_rows.sum() == N
    assert sampled.fit_report_.n_rows.max() <= 100


def test_another_seed_gives_another_model(many_leaves):
    X, y = checkers(N)
    a, b = (model_bits(small_svc(random_state=seed).fit(X, y)) for seed in (0, 1))
    assert a["tree thresholds"] != b["tree thresholds"]


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


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("offset", "n_partitions"), [(0.0, 1), (1e6, 1), (0.0, 3)])
def test_prediction_chunks_leave_no_trace(n_classes, offset, n_partitions, monkeypatch):
    X, y = checkers(900, n_classes=n_classes, offset=offset)
    model = small_svc(gamma=30.0, n_partitions=n_partitions).fit(X, y)
    queries = QUERIES + offset
    whole = model.decision_function(queries)
    tiny_blocks(monkeypatch, SLAB_ROWS=37)
    for chunks in [(700,), (1, 299, 1, 1, 398), (50,) * 14]:
        lazy = model.decision_function(da.from_array(queries, chunks=(chunks, 2)))
        assert lazy.chunks[0] == chunks
        assert lazy.compute().tobytes() == whole.tobytes()
    one_by_one = np.concatenate([model.decision_function(q[None]) for q in queries[:50]])
    assert one_by_one.tobytes() == whole[:50].tobytes()


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
    (tree,) = read_partition(Root.open(path_of(models[0])).find_group("partition")).trees
    assert ((tree.directions != 0).sum(axis=1) > 1).any()
    assert_same_model(*models)
