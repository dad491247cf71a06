import numpy as np
import pytest
from cells import fit_cell
from peaks import SLACK, peak_of
from support import few

from daskls.memory import TaskSizes, assign_nbytes, grow_nbytes
from daskls.partition.grow import grow_tree
from daskls.partition.space import Forest
from daskls.plan.bundles import cell_nbytes
from daskls.records import MIB, CellReport, SolverSpec
from daskls.run import regroup
from daskls.store.exchange import Exchange, Rows
from daskls.targets import Target

# A projection may exceed the measured peak by this factor, and must never be below it.
LOOSEST = 2.5


def measured_peak(X, codes, spec):
    """Return the most bytes that numpy held at once while one cell was trained."""
    weights = np.ones(len(X))
    report = CellReport(0, 0, 0, 0, 0.0)
    return peak_of(lambda: fit_cell(X, codes, weights, spec, report, (0,)))


def check_projection(m, d, shares, **options):
    rng = np.random.default_rng(m + d)
    X = rng.normal(size=(m, d)).astype(np.float32)
    codes = rng.choice(len(shares), m, p=shares)
    # Without a step to take, training holds what it always holds, in no time.
    spec = SolverSpec(tol=1e9, **options)
    projected = cell_nbytes(TaskSizes(d, 4, len(shares), 2000, spec), m)
    peak = measured_peak(X, codes, spec)
    assert peak <= projected <= LOOSEST * peak, f"projected / peak = {projected / peak:.2f}"


ONE = {"C": (1.0,), "gamma": (1.0,)}
BALANCED = {2: [0.5, 0.5], 3: [0.3, 0.3, 0.4], 5: [0.2] * 5}
UNEVEN = {5: [0.48, 0.48, 0.02, 0.01, 0.01], 10: [0.45, 0.45] + [0.0125] * 8}


@pytest.mark.parametrize("n_classes", few(BALANCED, 2))
@pytest.mark.parametrize(("m", "d"), few([(400, 2), (400, 300), (1200, 10)], 2))
def test_cell(m, d, n_classes):
    check_projection(m, d, BALANCED[n_classes], **ONE)


@pytest.mark.parametrize("n_classes", few(UNEVEN))
def test_cell_of_two_large_classes_and_some_small_ones(n_classes):
    check_projection(1200, 10, UNEVEN[n_classes], **ONE)


@pytest.mark.parametrize("n_classes", few([5, 2]))
def test_cell_with_the_own_grid(n_classes):
    check_projection(700, 3, BALANCED[n_classes])


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", few([3, 2]))
@pytest.mark.parametrize(("m", "d"), few([(2500, 200), (3000, 10)]))
def test_cell_of_which_some_rows_of_the_matrix_are_held(m, d, n_classes):
    # A quarter of K; less than a working set's rows are not held.
    cache = 0.25 * m * m * 4 / MIB
    check_projection(m, d, BALANCED[n_classes], cache_size=cache, **ONE)


def regrouping_peak(X, forest, folder, monkeypatch, scale=None):
    """Return the peak bytes of assigning a block of rows, and the exchange that they went to."""
    n_rows, d = X.shape
    n_kept = d if scale is None else len(scale.columns)
    y = np.zeros((n_rows, 1), np.int32)
    monkeypatch.setattr(regroup, "load_partition", lambda *_: forest)
    exchange = Exchange(str(folder), 1, forest.n_leaves, n_kept, "<f4", len(forest.trees))
    block_info = {0: {"chunk-location": (0, 0), "array-location": [(0, n_rows), (0, d)]}}

    def run():
        exchange.delete()
        exchange.create([n_rows])
        regroup.assign_block(
            X, y, None, fit=None, exchange=exchange,
            target=Target("classes", np.arange(2)), class_weight=np.ones(2),
            scale=scale, block_offsets=np.array([0, n_rows]), block_info=block_info,
        )  # fmt: skip

    return X.nbytes + y.nbytes + peak_of(run), exchange


@pytest.mark.parametrize("n_partitions", [1, 4])
@pytest.mark.parametrize("d", few([100, 10]))
def test_regrouping_a_block_into_any_number_of_partitions(d, n_partitions, tmp_path, monkeypatch):
    n_rows = 60_000
    X = np.random.default_rng(0).random((n_rows, d), dtype="f4")
    trees = [grow_tree(X[:200], 50, np.zeros(d), (seed,)) for seed in range(n_partitions)]
    peak, exchange = regrouping_peak(X, Forest(tuple(trees)), tmp_path, monkeypatch)
    projected = assign_nbytes(TaskSizes(d, 4, 2, 2000, SolverSpec()), n_rows)
    assert peak - SLACK <= projected <= LOOSEST * peak, f"{projected / peak:.2f}"
    assert exchange.write_manifest().sum() == n_partitions * n_rows


@pytest.mark.parametrize(("n_leaves", "n_partitions"), few([(60, 1), (60, 4), (3, 1)]))
def test_merging_blocks_is_within_the_projection_of_one(n_leaves, n_partitions, tmp_path):
    n_rows, n_blocks, d = 20_000, 5, 40
    shape = n_blocks, n_leaves * n_partitions, d, "<f4", n_partitions
    exchange = Exchange(str(tmp_path / "x"), *shape, group_blocks=n_blocks)
    exchange.create([n_rows] * n_blocks)
    rng = np.random.default_rng(0)
    for block in range(n_blocks):
        X = rng.random((n_rows, d), dtype="f4")
        rows = Rows(X, np.zeros(n_rows, "i4"), np.ones(n_rows), np.arange(n_rows) + block * n_rows)
        # Of few leaves the first holds more rows than a block.
        leaves = [
            rng.integers(0, n_leaves, n_rows) // 2 + i * n_leaves for i in range(n_partitions)
        ]
        exchange.write_block(block, rows, leaves, block)

    def run():
        exchange.merge(0, 0)
        (tmp_path / "x" / "group-000000-000000").unlink()

    peak = peak_of(run)
    projected = assign_nbytes(TaskSizes(d, 4, 2, 2000, SolverSpec()), n_rows)
    assert peak - SLACK <= projected <= LOOSEST * peak, f"{projected / peak:.2f}"


@pytest.mark.parametrize("layout", few(["f4", "f8", "i4"]))
@pytest.mark.parametrize(
    ("n", "d", "max_rows"), few([(60_000, 28, 500), (900, 300, 90), (60_000, 1, 500)], 2)
)
def test_growing_a_tree_holds_one_copy_of_the_rows(n, d, max_rows, layout):
    X = (np.random.default_rng(0).normal(size=(n, d)) * 1000).astype(layout)
    center = X.mean(axis=0, dtype=np.float64)
    peak = peak_of(lambda: grow_tree(X, max_rows, center))
    projected = grow_nbytes(n, d, max_rows)
    assert peak - SLACK <= projected <= 2 * peak, f"{projected / peak:.2f}"
    assert peak_of(lambda: grow_tree(X, n, center)) - SLACK <= grow_nbytes(n, d, n)
