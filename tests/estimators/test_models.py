"""Where models live: temporary folders, stores, pickles; one seed, one model, however rows come."""

import copy
import gc
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import dask
import dask.array as da
import numpy as np
import pytest
import support
import zarr
from distributed import Client
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from small import set_sizes, small_sample
from support import assert_same_model, checkers, model_bits, path_of, small_svc, tiny_blocks
from threadpoolctl import threadpool_limits

import daskls
from daskls import RandomChunkSVC
from daskls.errors import MemoryPlanError
from daskls.partition.stored import read_partition
from daskls.store.dataset import DatasetWriter
from daskls.store.layout import Root

N = 500
X, Y = checkers(N)


@pytest.fixture
def scratch(tmp_path):
    """Put temporary folders into an empty one of ours."""
    with dask.config.set({"temporary-directory": str(tmp_path / "scratch")}):
        yield tmp_path / "scratch"


def folders(scratch):
    # A worker that starts meanwhile puts a folder of its own there.
    gc.collect()
    return sorted(p.name for p in scratch.iterdir() if p.name != "dask-scratch-space")


def test_a_temporary_folder_goes_with_all_that_uses_it(scratch):
    model = small_svc().fit(X, Y)
    expected = model.predict(X)
    lazy = model.predict(da.from_array(X, chunks=100))
    derived = (lazy * 2)[::2].sum()
    other = pickle.loads(pickle.dumps(model))
    assert len(folders(scratch)) == 2
    del model, lazy
    assert len(folders(scratch)) == 2
    assert derived.compute() == (expected * 2)[::2].sum()
    np.testing.assert_array_equal(other.fit(X, Y).predict(X), expected)
    del derived, other
    assert folders(scratch) == []


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy])
def test_a_copy_outlives_its_original(way, scratch):
    model = small_svc(class_weight={0: 1.0, 1: 2.5}, C=[1.0, 10.0]).fit(X, Y)
    params, bits = model.get_params(), model_bits(model)
    other = way(model)
    del model
    gc.collect()
    assert_same_model(bits, other)
    assert other.get_params() == params


def test_a_store_holds_no_code_and_loading_runs_no_pickle(tmp_path, monkeypatch):
    model = small_svc(store=tmp_path / "m", random_state=np.random.RandomState(0)).fit(X, Y)
    files = [file for file in path_of(model).rglob("*") if file.is_file()]
    assert len(files) > 3
    for file in files:
        # Arrays that any reader of safetensors reads, and plain JSON: no NaN, which some refuse.
        attributes, _ = support.read_plain(file)
        assert "pickle" not in json.dumps(attributes, allow_nan=False)
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, None)
    assert daskls.load(tmp_path / "m").predict(X).shape == (N,)


def test_an_open_seed_is_the_stores_own(tmp_path):
    first = small_svc(store=tmp_path / "m", random_state=None).fit(X, Y)
    bits = model_bits(first)
    again = small_svc(store=tmp_path / "m", random_state=None).fit(X, Y)
    assert_same_model(bits, again)
    others = [small_svc(random_state=None).fit(X, Y) for _ in range(3)]
    assert len({model_bits(model)["fingerprint"] for model in others}) == 3


@pytest.mark.filterwarnings("ignore::daskls.GridEdgeWarning")
def test_a_report_tells_rows_choices_and_steps_of_each_cell():
    X, y = checkers(800, n_classes=3)
    C, gamma = [0.1, 1.0, 10.0], [1.0, 10.0, 100.0]
    report = small_svc(C=C, gamma=gamma).fit(X, y).fit_report_
    assert report.cell.tolist() == list(range(len(report)))
    assert report.n_rows.sum() == 800
    assert 0 < report.n_rows.min() <= report.n_rows.max() <= 100
    trained = report[report.n_support > 0]
    assert (trained.n_tried == 9).all()
    # Each combination on two folds but for who is beaten on the first; then the chosen models.
    most = (9 + 1) * 2 * np.array([1, 1, 3])[trained.n_classes - 1]
    assert (trained.n_trained <= most).all()
    full = small_svc(C=C, gamma=gamma, search="full").fit(X, y).fit_report_
    assert (full[report.n_support > 0].n_trained == most).all()
    for row in trained:
        ends = ("C", row.C in (0.1, 10.0)), ("gamma", row.gamma in (1.0, 100.0))
        assert row.edge.split() == [name for name, is_end in ends if is_end]


@pytest.mark.parametrize("name", ["VoronoiSVC", "FalkSVR"])
def test_weights_reach_folds_of_a_pipeline(name, one_worker):
    model = getattr(daskls, name)(random_state=0)
    weight = np.random.default_rng(0).uniform(0.1, 3.0, N)
    folds = KFold(2)
    expected = []
    for train, test in folds.split(X):
        fitted = clone(model).fit(X[train], Y[train], sample_weight=weight[train])
        expected.append(fitted.score(X[test], Y[test], sample_weight=weight[test]))
    client = Client(one_worker, set_as_default=False)
    with config_context(enable_metadata_routing=True), client:
        model.set_params(client=client).set_fit_request(sample_weight=True)
        asking = make_pipeline(model.set_score_request(sample_weight=True))
        found = cross_val_score(asking, X, Y, cv=folds, params={"sample_weight": weight})
        assert clone(clone(model)).client is client
    np.testing.assert_array_equal(found, expected)


def test_a_client_does_the_work_and_never_travels(one_worker, monkeypatch):
    model = small_svc()
    assert "Not fitted" in model._repr_html_()
    n_done = one_worker.scheduler.transition_counter
    with Client(one_worker, set_as_default=False) as client:
        with monkeypatch.context() as patch:
            patch.setattr(dask, "compute", None)
            model.set_params(client=client).fit(X, Y)
        assert "Fitted" in model._repr_html_()
        other = pickle.loads(pickle.dumps(model))
        assert (other.client, model.client) == (None, client)
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        assert pickle.loads(pickle.dumps(small_svc(client=client))).client is None
    assert one_worker.scheduler.transition_counter > n_done


def test_two_equal_fits_at_once_fill_two_stores(two_workers, tmp_path):
    # Equal data, parameters and seed: only the stores differ, so must the names of the tasks.
    params = {"cell_size": 60, "C": None, "gamma": None}
    with Client(two_workers, set_as_default=False) as client, ThreadPoolExecutor(2) as pool:
        begun = [
            pool.submit(small_svc(store=tmp_path / name, client=client, **params).fit, X, Y)
            for name in "ab"
        ]
        assert_same_model(*(own.result() for own in begun))


def test_all_kinds_of_input_give_one_model(tmp_path, monkeypatch, set_block_nbytes):
    # Of fewer sampled rows than there are.
    small_sample(monkeypatch, 400)
    rows, y = checkers(1200)
    labels = np.array(["even", "odd"])[y]
    set_block_nbytes(200 * 16)
    array = zarr.create_array(tmp_path / "X", data=rows, chunks=(170, 2))
    kinds = {"classes": ["even", "odd"], "chunk_rows": 130}
    with DatasetWriter(tmp_path / "set", 2, rows.dtype, **kinds) as writer:
        writer.append(rows, y)
    dask_y = da.from_array(labels, chunks=313)
    inputs = {
        "NumPy": (rows, labels),
        "Fortran": (np.asfortranarray(rows), labels),
        "big-endian": (rows.astype(">f8"), labels),
        "read-only": (np.frombuffer(rows.tobytes()).reshape(rows.shape), labels),
        "by a client": (rows, labels),
        "Dask": (da.from_array(rows, chunks=(77, 1)), dask_y),
        "Zarr": (array, labels),
        "path of an array": (str(tmp_path / "X"), dask_y),
        "path of a data set": (tmp_path / "set", None),
    }
    expected = model_bits(small_svc().fit(rows, labels))
    with Client(processes=False, n_workers=1, dashboard_address=":0", set_as_default=False) as own:
        for kind, given in inputs.items():
            model = small_svc(client=own if kind == "by a client" else None).fit(*given)
            differing = {name for name, bits in model_bits(model).items() if bits != expected[name]}
            # The identity names the dtype of the labels, which may be wider than they need.
            assert differing <= ({"fingerprint"} if "path" in kind or kind == "Dask" else set()), (
                kind
            )
            assert model.classes_.tolist() == ["even", "odd"]
    np.testing.assert_array_equal(inputs["big-endian"][0], checkers(1200)[0])


def test_blas_threads_leave_no_trace():
    # With hundreds of features OpenBLAS shares the covariance and its eigenvectors out.
    rng = np.random.default_rng(0)
    HELD = rng.standard_normal((2000, 300))
    # One direction of all features has most of the variance: the cut is an eigenvector.
    HELD += HELD[:, :1]
    y = (HELD[:, 0] > 0).astype(int)
    models = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"), dask.config.set(scheduler="sync"):
            models.append(small_svc(cell_size=1000, gamma=1e-3, C=0.1).fit(HELD, y))
    (tree,) = read_partition(Root.open(path_of(models[0])).find("partition")).trees
    assert ((tree.directions != 0).sum(axis=1) > 1).any()
    assert_same_model(*models)


@pytest.mark.always
@pytest.mark.parametrize("kind", ["packed", "dask"])
def test_a_large_chunk_is_as_small_ones(kind, tmp_path, monkeypatch, set_block_nbytes):
    # Blocks of 50 rows, of chunks of more than 100.
    set_block_nbytes(50 * 16)
    set_sizes(monkeypatch, {"daskls.run.rows.LARGE_NBYTES": 100 * 16})
    tiny_blocks(monkeypatch, 50 * 16)
    expected, data = small_svc().fit(X, Y), da.from_array(X, chunks=-1)
    if kind == "packed":
        data = tmp_path / "X"
        zarr.create_array(data, data=X, chunks=X.shape, compressors="auto")
    model = small_svc().fit(data, Y)
    assert_same_model(model, expected)
    scores = model.decision_function(data)
    np.testing.assert_array_equal(scores.compute(), expected.decision_function(X))
    model.predict_to_zarr(data, tmp_path / "out")
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "out")[:], expected.predict(X))
    # A Dask array's answer keeps its chunks.
    assert kind != "dask" or scores.chunks == ((N,),)


@pytest.mark.slow
def test_a_chunk_that_no_worker_holds_is_fitted_or_refused(tmp_path):
    # 160 MiB of rows, most of one class, which are there three times while they are unpacked.
    X = np.zeros((80_000, 256))
    X[:, 0] = np.random.default_rng(0).random(len(X))
    y = (X[:, 0] > 0.999).astype("i4")
    zarr.create_array(tmp_path / "whole", data=X, chunks=X.shape, compressors="auto")
    zarr.create_array(tmp_path / "parts", data=X[:16_000], chunks=(8000, 256))
    with support.start_cluster(1, 1, "512MiB") as cluster, Client(cluster) as client:
        model = RandomChunkSVC(1000, C=1.0, gamma=0.1, cv=2, random_state=0, client=client)
        with pytest.raises(MemoryPlanError, match=r"of 80000 rows x 256 .* held whole") as error:
            model.fit(tmp_path / "whole", y)
        model.fit(tmp_path / "parts", y[:16_000])
        n_wrong = (model.predict(tmp_path / "parts") != y[:16_000]).sum()
        assert client.compute(n_wrong).result() < 40
    most = int(str(error.value).split("at most ")[1].split()[0])
    assert 160 * most / 80_000 * 3 < 512
    assert most > 15_000
