"""Cells of partitions of space, of an index of two levels, and of chunks at random: brute force.

Predictions equal a slow walk of partitions and sums of kernels, row by row; several partitions of
the same rows are independent cells and one averaged answer.
"""

import itertools
import re
import shutil

import dask
import dask.array as da
import naive
import numpy as np
import pytest
import support
from sklearn.base import clone
from small import set_sizes, small_sample, task_memory
from support import SlowModel, assert_same_model, checkers, is_close, model_bits, path_of, small_svc

import daskls
from daskls import ParameterError, RandomChunkSVC, VoronoiQuantileRegressor, VoronoiSVC, VoronoiSVR
from daskls.errors import DamageError
from daskls.methods.cells.method import CellMethod
from daskls.partition.base import KINDS
from daskls.partition.grow import grow_tree
from daskls.partition.space import Space
from daskls.partition.stored import model_partition
from daskls.store.artifact import open_artifact, write_artifact
from examples import load_example

N = 600
KERNELS = {
    "rbf": {"gamma": [5.0, 30.0]},
    "linear": {},
    "poly": {"degree": 2, "coef0": 1.0, "gamma": 3.0},
    "homogeneous poly": {"kernel": "poly", "gamma": 2.0},
    "rbf with an offset": {"kernel": "rbf", "gamma": [5.0, 30.0], "fit_intercept": True},
}


def fit(n_partitions=3, n_classes=2, **params):
    X, y = checkers(N, n_classes=n_classes)
    return small_svc(n_partitions=n_partitions, **params).fit(X, y)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(("kernel", "n_partitions"), [*((own, 1) for own in KERNELS), ("rbf", 3)])
def test_scores_and_labels_equal_brute_force(kernel, n_partitions, n_classes):
    X, y = checkers(N, n_classes=n_classes, dtype="f4")
    labels = np.array(["d", "b", "c", "a"][:n_classes])
    params = {"kernel": kernel, "n_partitions": n_partitions, **KERNELS[kernel]}
    model = small_svc(C=[1.0, 10.0], **params).fit(X, labels[y])
    slow = SlowModel(path_of(model))
    assert slow.n_partitions == n_partitions
    assert any(cell["intercepts"].any() for cell in slow.cells) == model.fit_intercept
    # Rows of training, rows far outside, and rows between.
    rng = np.random.default_rng(3)
    queries = np.concatenate([X[:10], rng.uniform(-1, 2, (50, 2)).astype("f4")])
    each = [[slow.pairs(row, p)[1] for p in range(n_partitions)] for row in queries.tolist()]
    # Far from all rows decisions vanish, and rounding alone decides the votes.
    clear = [all(abs(v) > 1e-5 for values in row for v in values) for row in each]
    queries = queries[clear]
    assert len(queries) > 20
    assert len({slow.walk(row) for row in queries.tolist()}) > 3
    scores = model.decision_function(queries).reshape(len(queries), -1)
    expected = np.array([slow.scores(row) for row in queries.tolist()]).reshape(scores.shape)
    for found, wanted in zip(scores.ravel().tolist(), expected.ravel().tolist(), strict=True):
        assert is_close(found, wanted)
    winners = expected.argmax(axis=1) if n_classes > 2 else (expected[:, 0] > 0).astype(int)
    np.testing.assert_array_equal(model.predict(queries), model.classes_[winners])
    if n_partitions > 1:
        # Clipping and averaging both mattered.
        assert any(abs(value) > 1 for row in each for values in row for value in values)
        assert any(len({values[0] > 0 for values in row if values}) == 2 for row in each)


@pytest.mark.filterwarnings("ignore::daskls.AdviceWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_partitions", [1, 2])
def test_cells_of_one_class_and_absent_classes(n_partitions, n_classes):
    # Bands of one class each, wider than a cell: some cells hold one class, some two.
    X, _ = checkers(N)
    y = (X[:, 0] * n_classes).astype(int)
    model = small_svc(cell_size=30, n_partitions=n_partitions).fit(X, y)
    slow = SlowModel(path_of(model))
    assert {len(cell["classes"]) for cell in slow.cells} == {1, 2}
    scores = model.decision_function(X[:60]).reshape(60, -1)
    for found, row in zip(scores.tolist(), X[:60].tolist(), strict=True):
        assert all(map(is_close, found, np.atleast_1d(slow.scores(row))))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_partitions_are_those_of_a_model_with_fewer(n_classes):
    fewer, more = (model_bits(fit(n, n_classes)) for n in (1, 3))
    of_cells = [name for name in fewer if name.startswith(("tree", "cell"))]
    assert len(of_cells) > 20
    assert [name for name in of_cells if fewer[name] != more[name]] == []
    assert more["n_cells"] > fewer["n_cells"]


def test_partitions_differ_are_full_and_hold_every_row_in_the_cell_that_counted_it():
    X, model = checkers(N)[0], fit()
    slow, report = SlowModel(path_of(model)), model.fit_report_
    cells = [[slow.walk(row, partition) for row in X.tolist()] for partition in range(3)]
    np.testing.assert_array_equal(np.bincount(np.ravel(cells)), report.n_rows)
    assert report.n_rows.max() <= 100
    assert report.partition.tolist() == np.repeat(range(3), N // 100).tolist()
    assert report.leaf.tolist() == list(range(len(report)))
    for one, other in itertools.combinations(cells, 2):
        # What one partition holds together, another one cuts apart.
        assert len(set(zip(one, other, strict=True))) > 1.5 * N // 100


SQUARES = {"kernel": "rbf", "C": 10.0, "gamma": 10.0, "feature_scale": None, "random_state": 0}
# An estimator, its parameters, the shape of the data, and how many partitions these have.
DEFAULTS = [
    (VoronoiSVC, {}, (16_000, 63), 4),
    (VoronoiSVC, {}, (15_999, 62), 1),
    (VoronoiSVC, {"loss": "hinge"}, (16_000, 63), 1),
    (VoronoiSVR, {}, (16_000, 125), 4),
    # Larger cells take longer; smaller ones save nothing that more partitions could use.
    (VoronoiSVC, {"cell_size": 8000}, (40_000, 32), 1),
    (VoronoiSVC, {"cell_size": 300}, (200_000, 32), 2),
    # Of one feature all would be equal.
    (VoronoiSVR, {}, (2_000_000, 1), 1),
    (VoronoiQuantileRegressor, {}, (16_000, 63), 1),
]


@pytest.mark.parametrize(("maker", "params", "shape", "expected"), DEFAULTS)
def test_the_default_follows_from_the_data(maker, params, shape, expected):
    by_default = maker(**{**SQUARES, **params})
    n_targets = 2 if maker is VoronoiSVC else 1
    request = by_default._request().for_data(*shape, n_targets)
    assert request.n_partitions == expected
    # A fit of some of the rows, for probabilities, is of the same kind as the whole.
    assert request.for_data(100, shape[1], n_targets).n_partitions == expected
    # The plan is of the same numbers, and of cells that several partitions have by default.
    given = {"n_partitions": expected, "cell_size": request.cell_size}
    plans = [own.plan(shape) for own in (by_default, clone(by_default).set_params(**given))]
    assert plans[0].n_models == plans[1].n_models
    assert plans[0].exchange == plans[1].exchange


CELL_SIZE = 60
QUERIES = np.random.default_rng(3).uniform(-0.3, 1.3, (200, 2))


@pytest.fixture
def clusters(monkeypatch):
    """Let `VoronoiSVC` cut its cells by the kind of partition of the worked example."""
    module = load_example(monkeypatch, "kmeans_cells", "daskls/partition/clusters.py")
    monkeypatch.setitem(KINDS, "Clusters", f"{module.__name__}:Clusters")
    set_sizes(monkeypatch, {"daskls.plan.bundles.MIN_BUNDLE_WORK": 1})

    def cut(_, state):
        return module.Clusters.grow(state.sample.X, state.sampling.max_sampled_rows, state.seed)

    monkeypatch.setattr(CellMethod, "cut", cut)


class SlowClusters(SlowModel):
    """Finds the cell of a row from plain arrays: the nearest center, then its tree."""

    n_partitions = 1

    def walk(self, row, partition=0):
        X = self.index["center"] + self.index["centers"]
        leaf = int(((X - row) ** 2).sum(axis=1).argmin())
        n_nodes = self.index["branch_nodes"]
        first = int(n_nodes[:leaf].sum()) + leaf
        nodes = slice(first - leaf, first - leaf + n_nodes[leaf])
        if n_nodes[leaf] == 0:
            return first
        arrays = (self.index[name][nodes] for name in ("directions", "thresholds", "children"))
        return first + naive.walk(row, self.index["center"], *arrays)


@pytest.mark.usefixtures("clusters")
def test_rows_are_trained_and_answered_in_cells_of_a_new_kind():
    (X, y), asked = checkers(700), QUERIES[:60]
    model = small_svc(cell_size=CELL_SIZE).fit(X, y)
    slow = SlowClusters(path_of(model))
    assert len(slow.index["centers"]) >= 3
    assert slow.index["branch_nodes"].max() >= 1
    counts = np.bincount([slow.walk(row) for row in X.tolist()], minlength=model.n_cells_)
    np.testing.assert_array_equal(model.fit_report_.n_rows, counts)
    assert counts.max() <= CELL_SIZE
    for found, row in zip(model.decision_function(asked), asked.tolist(), strict=True):
        assert is_close(found, slow.scores(row))
    assert model.score(X, y) > 0.8
    assert_same_model(model, small_svc(cell_size=CELL_SIZE).fit(da.from_array(X, (90, 2)), y))
    space = model_partition(model._reader)
    assert (space.kind, space.n_leaves) == ("Refined", model.n_cells_)
    (cells,) = space.find(asked)
    assert cells.tolist() == [slow.walk(row) for row in asked.tolist()]
    assert {space.partition_of(cell) for cell in range(space.n_leaves)} == {0}


@pytest.mark.usefixtures("clusters")
def test_a_kind_whose_leaves_are_the_cells_and_what_is_refused_of_it(monkeypatch):
    model = small_svc(cell_size=80).fit(*checkers(80))
    assert model_partition(model._reader).kind == "Clusters"
    assert model.fit_report_.n_rows.sum() == 80
    monkeypatch.setattr(Space, "cut_leaf", lambda own, X, *_: grow_tree(X, len(X), own.center))
    with pytest.raises(daskls.MemoryPlanError, match=r"has a cell of \d+ rows, .* allows 60"):
        small_svc(cell_size=CELL_SIZE).fit(*checkers(700))
    monkeypatch.delitem(KINDS, "Clusters")
    with pytest.raises(daskls.StoreError, match=r"kind 'Clusters', which this .* Upgrade daskls"):
        daskls.load(path_of(model))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return models of an index of one level and of two, of more cells than an index holds."""
    sizes = {"MIN_LEAVES": 6, "MIN_BUNDLE_WORK": 3e4}
    folder, rows = tmp_path_factory.mktemp("models"), checkers(1500, n_classes=3)
    with pytest.MonkeyPatch.context() as patch, dask.config.set(scheduler="threads"):
        small_sample(patch, 300)
        set_sizes(patch, {f"daskls.plan.bundles.{name}": size for name, size in sizes.items()})
        own = [small_svc(cell_size=40, n_partitions=2, store=folder / name) for name in "ab"]
        one = own[0].fit(*rows)
        set_sizes(patch, {"daskls.methods.cells.fit.INDEX_NBYTES": 0})
        return one, own[1].fit(*rows)


def test_the_index_holds_the_cuts_between_leaves_alone(models):
    one, two = (model._reader.index for model in models)
    assert (one.attrs["partition"], two.attrs["partition"]) == ("Forest", "Nested")
    sizes = [len(index.read("thresholds")) for index in (one, two)]
    assert sizes[0] > 30 > sizes[1] > 2
    n_cells = np.diff(two.read("leaf_cells"))
    assert n_cells.sum() == models[0].n_cells_
    assert n_cells.max() > 2
    # A bundle holds the trees of several leaves.
    assert (np.diff(two.read("bundles")) > 0).any()
    some, whole = models[1]._reader.report_of_some(20), models[1]._reader.report
    assert 5 < len(some) < 40 < len(whole)
    assert repr(some.tolist()) == repr(whole[some.cell].tolist())


def test_answers_are_the_same_bits(models):
    one, two = models
    for name in ("predict", "decision_function"):
        expected = getattr(one, name)(QUERIES)
        np.testing.assert_array_equal(getattr(two, name)(QUERIES), expected)
        lazy = getattr(two, name)(da.from_array(QUERIES, (33, 2)))
        np.testing.assert_array_equal(lazy.compute(), expected)
        single = [getattr(two, name)(row[None])[0] for row in QUERIES[:20]]
        np.testing.assert_array_equal(single, getattr(one, name)(QUERIES[:20]))


def test_damage_is_refused(models, tmp_path):
    store = tmp_path / "m"
    shutil.copytree(path_of(models[1]), store)
    index = open_artifact(store, "index")
    arrays = {name: index.read(name) for name in index.names}
    cells = arrays["leaf_cells"]
    moved = cells.copy()
    moved[int(np.flatnonzero(np.diff(cells) > 1)[0]) + 1] -= 1
    for wrong in (cells[1:], cells + 1, cells[::-1].copy(), np.minimum(cells, cells[2]), moved):
        write_artifact(store, "index", {**arrays, "leaf_cells": wrong}, index.attrs, replace=True)
        # Cells that are those of other leaves are found where a bundle is opened.
        opened = daskls.load(store).predict if wrong is moved else daskls.load
        with pytest.raises(DamageError, match=str(store)):
            opened(QUERIES if wrong is moved else store)


X, Y = checkers(900)


def small_chunks(**params):
    """Return an estimator that trains in a blink."""
    return RandomChunkSVC(
        **{"chunk_size": 200, "C": 10.0, "gamma": 20.0, "cv": 2, "random_state": 0, **params}
    )


def slow_decisions(model, queries):
    """Return the mean of clipped decisions of two classes, from the arrays on disk."""
    slow = SlowModel(path_of(model))
    kernel, degree, coef0 = (slow.meta["spec"][name] for name in ("kernel", "degree", "coef0"))
    each = []
    for cell in slow.cells:
        asked = queries - cell["center"], cell["rows"]
        K = naive.kernel_matrix(*asked, kernel, cell["gamma"], degree, coef0)
        each.append(naive.pair_decisions(K, cell["coef"], cell["ptr"])[:, 0] + cell["intercepts"])
    return np.clip(each, -1, 1).mean(axis=0)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_two_classes_answer_with_the_mean_of_all_chunks(kernel):
    # A power of rows as they are given: a small gamma, as they reach beyond 1.
    width = {"gamma": 0.05} if kernel == "poly" else {}
    model = small_chunks(kernel=kernel, coef0=1.0, **width).fit(X, Y)
    assert model.n_cells_ == 5
    expected = slow_decisions(model, QUERIES)
    assert len(np.unique(expected)) > 100
    np.testing.assert_allclose(model.decision_function(QUERIES), expected, atol=1e-5)
    assert (model.predict(QUERIES) == (expected > 0)).all()


@pytest.mark.parametrize(("size", "n_chunks"), [(2, 450), (299, 4), (5000, 1)])
def test_chunks_are_full_and_hold_every_row(size, n_chunks):
    rows = small_chunks(chunk_size=size).fit(X, Y).fit_report_.n_rows
    assert len(rows) == n_chunks
    assert rows.sum() == 900
    assert rows.max() - rows.min() <= 1


def test_indecision_counts_decision_values_near_zero_or_refuses():
    model = small_chunks().fit(X, Y)
    values = np.abs(model.decision_function(QUERIES))
    assert model.indecision(QUERIES, 0.1) == (values < 0.1).mean() > 0
    several = model.indecision(QUERIES, [0.5, 0.1, 1e-9])
    assert several.tolist() == [(values < e).mean() for e in (0.5, 0.1, 1e-9)]
    lazy = model.indecision(da.from_array(QUERIES, chunks=(70, 2)), [0.5, 0.1, 1e-9])
    assert lazy.tolist() == several.tolist()
    with pytest.raises(daskls.DataError, match="3 classes"):
        small_chunks().fit(*checkers(900, n_classes=3)).indecision(QUERIES)
    with pytest.raises(ParameterError, match="eps is 0; it must"):
        model.indecision(QUERIES, 0)
    for eps in ([0.1, float("nan")], [[0.1, 0.2], [0.3, 0.4]], [[0.1], [0.2, 0.3]], "0.1", []):
        with pytest.raises(ParameterError, match="it must be a positive number") as raised:
            model.indecision(QUERIES, eps)
        assert repr(eps) in str(raised.value)


SOME = X[:400], Y[:400]
PAPER = {**support.PAPERS, "random_state": 0, "cv": 3}
OWN = {VoronoiSVC: {"cell_size": 120}, RandomChunkSVC: {"chunk_size": 120}}


@pytest.mark.parametrize("kind", OWN)
def test_each_cell_searches_a_grid_of_so_many_values(kind):
    report = kind(n_grid=(3, 4), search="full", **OWN[kind], **PAPER).fit(*SOME).fit_report_
    assert (report.n_tried == 12).all()
    # Of these a cell's choice is one, scaled by its own rows and radius.
    for row in report:
        gammas, costs, _ = naive.grid_values(row.radius, row.n_rows, 2, 3, (3, 4))
        assert np.isclose(gammas, row.gamma, rtol=1e-9).sum() == 1
        assert np.isclose(costs, row.C, rtol=1e-9).sum() == 1


GIVEN = {"C": [1.0, 30.0], "gamma": [5.0, 50.0], "tol": 1e-6}


@pytest.mark.parametrize("kind", OWN)
def test_decisions_are_those_of_whole_matrices(kind):
    whole, some, roomy = (
        kind(200, cache_size=size, **PAPER, **GIVEN).fit(*SOME).decision_function(X)
        for size in (None, 0.01, 1.0)
    )
    np.testing.assert_allclose(some, whole, atol=5e-3)
    # Room for both matrices of every cell: the same solver, and the same bits.
    np.testing.assert_array_equal(roomy, whole)
    assert (some != whole).any()


def test_a_plan_that_refuses_names_a_size_that_fits():
    rows = np.random.default_rng(0).random((2600, 2)).astype(np.float32)
    labels = (rows[:, 0] > 0.5).astype(int)
    params = {**PAPER, "C": 1.0, "gamma": 1.0, "cv": 2}
    with task_memory(48 * support.MIB):
        with pytest.raises(daskls.MemoryPlanError, match="give cache_size=") as caught:
            VoronoiSVC(2600, **params).fit(rows, labels)
        size = float(re.search(r"give cache_size=([\d.]+), or give each", str(caught.value))[1])
        VoronoiSVC(2600, cache_size=size, **params).fit(rows, labels)
