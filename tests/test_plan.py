import heapq
import inspect
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from daskls.errors import MemoryPlanError, ParameterError
from daskls.memory import TaskSizes, assign_nbytes, grow_nbytes
from daskls.methods.cells.method import check_cells
from daskls.methods.sampling.method import CGLQ, LocalSampling
from daskls.methods.sampling.plan import WAITING_PAIRS, most_pairs
from daskls.partition.shuffle import plan_draws
from daskls.plan.bundles import (
    Resources,
    group_nbytes,
    model_nbytes,
    plan_bundles,
    plan_sample,
)
from daskls.plan.checks import check_sample, excess
from daskls.records import LEAVES_NBYTES, SolverSpec

MIB = 1 << 20
ROOMY = Resources(2, 1 << 40)


def sizes_of(n_features=10, cell_size=2000, n_classes=2, **spec):
    return TaskSizes(n_features, 4, n_classes, cell_size, SolverSpec(**spec))


def test_what_does_not_fit_does_not_look_as_if_it_did():
    assert excess(94 * MIB + 5, 94 * MIB + 4) == "95 MiB but a task may use 94 MiB"
    assert excess(94 * MIB, 94 * MIB - 1) == "94 MiB but a task may use 93 MiB"


def test_the_sample_depends_on_the_data_and_cell_size_alone():
    # Workers, memory and blocks are not even asked for: they cannot change a cell.
    assert list(inspect.signature(plan_sample).parameters) == ["n_rows", "n_features", "cell_size"]


@pytest.mark.parametrize("cell_size", [2, 100, 2000, 50_000])
@pytest.mark.parametrize("n_features", [1, 28, 784])
@pytest.mark.parametrize("n_rows", [1, 999, 30_000, 65_537, 300_000, 10**7, 10**9])
def test_sample_and_leaves_fit_each_other(n_rows, n_features, cell_size):
    plan = plan_sample(n_rows, n_features, cell_size)
    assert plan == plan_sample(n_rows, n_features, cell_size)
    assert 1 <= plan.n_sample <= n_rows
    assert 1 <= plan.leaf_rows <= plan.largest_rows
    if plan.n_sample == n_rows and plan.leaf_rows == cell_size:
        assert plan.max_sampled_rows == plan.largest_rows == cell_size
        return
    # Where all rows fit 64 MiB in float64 they are all sampled.
    assert n_rows > 2**16 or 8 * n_rows * n_features > 2**26
    share = plan.n_sample / n_rows
    assert plan.max_sampled_rows <= max(plan.leaf_rows * share, 1)
    assert plan.max_sampled_rows > plan.leaf_rows * share - 1
    # The sample tells each leaf's size to about 1 / sqrt(32), and no tree is large.
    n_leaves = math.ceil(n_rows / plan.leaf_rows)
    assert n_leaves <= 4096
    assert plan.n_sample >= min(n_rows, 32 * n_leaves)


@pytest.mark.parametrize("cell_size", [2, 30, 100, 2000, 20_000])
@pytest.mark.parametrize("n_rows", [10**6, 10**7, 10**8, 10**9, 10**10])
def test_the_client_holds_no_more_of_more_rows(n_rows, cell_size):
    plan = plan_sample(n_rows, 28, cell_size)
    held = 2 * plan.n_sample * 28 * 4 + grow_nbytes(plan.n_sample, 28, plan.max_sampled_rows)
    assert held < 80 * MIB
    assert plan.n_sample < max(0.02 * n_rows, 2**17)


def test_leaves_grow_only_where_the_sample_tells_no_more_of_them():
    # Of few rows a leaf is a cell; then it is of four, down to a bound on their number.
    cells = [plan_sample(n, 28, 2000).leaf_rows / 2000 for n in (10**5, 10**6, 10**7, 10**8)]
    assert cells == [0.875, pytest.approx(0.86, abs=0.01), 4, 14]
    assert plan_sample(10**9, 28, 2000).leaf_rows > 10**9 / 4200
    # Cells that cost much are leaves of their own also of more rows.
    assert 0.75 * 20_000 < plan_sample(10**7, 28, 20_000).leaf_rows < 20_000
    # Cells that cost little share them.
    assert plan_sample(10**6, 28, 100).leaf_rows > 10_000


def test_leaves_are_enough_for_two_hundred_workers():
    for n_rows, n_features, cell_size in ((10**6, 28, 2000), (10**7, 28, 20_000)):
        plan = plan_sample(n_rows, n_features, cell_size)
        assert math.ceil(n_rows / plan.leaf_rows) > 500


def test_a_sample_too_large_for_the_client_is_refused():
    sizes = sizes_of(n_features=784)
    sampling = plan_sample(10**7, 784, 2000)
    check_sample(sampling, sizes, 2**40)
    with pytest.raises(
        MemoryPlanError, match=r"on the client but 64 MiB are free; raise it, or use fewer"
    ):
        check_sample(sampling, sizes, 2**26, "raise it")


def test_few_wide_rows_need_no_scatter_matrix():
    sizes = sizes_of(n_features=20_000)
    check_cells(replace(sizes, n_rows=200, leaf_rows=200, block_rows=200), Resources(1, 2**29))


def test_a_leaf_of_few_cells_keeps_two_standard_deviations_below_them():
    for n_rows, n_cells in ((10**6, 1), (1_700_000, 2)):
        plan = plan_sample(n_rows, 28, 2000)
        sampled_a_leaf = plan.n_sample * plan.leaf_rows / n_rows
        assert plan.leaf_rows * (1 + 2 / math.sqrt(sampled_a_leaf)) <= n_cells * 2000
        assert plan.leaf_rows > 0.8 * n_cells * 2000


@pytest.mark.parametrize("n_rows", [200_000, 10**7, 10**9])
def test_the_largest_leaf_is_foreseen(n_rows):
    plan = plan_sample(n_rows, 28, 2000)
    n_leaves = plan.n_sample // plan.max_sampled_rows
    # The share of a leaf of m of the N sampled rows is a beta variable, whatever the data.
    shares = np.random.default_rng(0).beta(
        plan.max_sampled_rows, plan.n_sample - plan.max_sampled_rows, n_leaves
    )
    assert n_rows * shares.max() < plan.largest_rows < 1.4 * n_rows * shares.max()


def random_leaves(seed):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 9000, int(rng.integers(1, 400))).tolist()


@pytest.mark.parametrize(("n_features", "n_classes"), [(8, 2), (8, 40), (2000, 2)])
@pytest.mark.parametrize("seed", range(5))
def test_bundles_hold_every_leaf_once(seed, n_features, n_classes):
    leaf_rows, sizes = random_leaves(seed), sizes_of(n_features, n_classes=n_classes)
    bundles, held = plan_bundles(sizes, leaf_rows), []
    total = sum(rows**2 / max(-(-rows // 2000), 1) for rows in leaf_rows)
    for bundle in bundles:
        leaves = range(bundle.first_leaf, bundle.last_leaf + 1)
        held += leaves
        rows = [leaf_rows[leaf] for leaf in leaves]
        assert bundle.n_rows == sum(rows)
        largest = max(group_nbytes(sizes, n, sum(leaf_rows)) for n in rows)
        assert bundle.nbytes <= max(largest, group_nbytes(sizes, max(leaf_rows), sum(leaf_rows)))
        if len(leaves) > 1:
            # One bundle never keeps the others waiting, unless it is a single leaf.
            assert bundle.work <= min(max(total / 64, 2e6), 3e7)
            assert bundle.n_rows * sizes.row_nbytes <= LEAVES_NBYTES
            assert model_nbytes(sizes, bundle.n_rows) <= LEAVES_NBYTES
    assert held == list(range(len(leaf_rows)))


def ended(costs, n_slots):
    """Return when the last slot ends, each taking the next of the costs as soon as it is free."""
    free = [0.0] * n_slots
    for cost in sorted(costs, reverse=True):
        heapq.heapreplace(free, free[0] + cost)
    return max(free)


@pytest.mark.parametrize(
    ("n_rows", "n_slots", "most"),
    [(10**6, 2, 0.01), (10**6, 8, 0.08), (10**7, 32, 0.04), (10**7, 200, 0.2)],
)
def test_slots_end_together(n_rows, n_slots, most):
    sampling = plan_sample(n_rows, 28, 2000)
    n_leaves = sampling.n_sample // sampling.max_sampled_rows
    shares = np.random.default_rng(0).gamma(sampling.max_sampled_rows, size=n_leaves)
    leaf_rows = (shares / shares.sum() * n_rows).astype(int).tolist()
    costs = [bundle.work for bundle in plan_bundles(sizes_of(28), leaf_rows)]
    assert ended(costs, n_slots) * n_slots / sum(costs) - 1 < most


def test_small_work_is_cut_into_few_bundles():
    # 64 cells of 500 rows: 64 bundles would cost more to open and write than to train.
    bundles = plan_bundles(sizes_of(cell_size=500), [500] * 64)
    assert [bundle.work for bundle in bundles] == [8 * 500**2] * 8


def test_bundle_costs_follow_the_squares_of_cells():
    bundles = plan_bundles(sizes_of(), [1000, 2000, 8000])
    assert [b.work for b in bundles] == [1000**2, 2000**2, 4 * 2000**2]


def test_no_leaves_and_empty_ones():
    assert plan_bundles(sizes_of(), []) == ()
    assert [(b.first_leaf, b.last_leaf) for b in plan_bundles(sizes_of(), [0, 0, 30])] == [(0, 2)]


def test_what_fits_is_not_refused():
    sizes = sizes_of()
    needed = max(group_nbytes(sizes, 14_000, 10**7), assign_nbytes(sizes, 100_000))
    check_cells(
        replace(sizes, n_rows=10**7, leaf_rows=14_000, block_rows=100_000), Resources(2, needed)
    )
    with pytest.raises(MemoryPlanError):
        check_cells(
            replace(sizes, n_rows=10**7, leaf_rows=14_000, block_rows=100_000),
            Resources(2, needed - 1),
        )


@pytest.mark.parametrize("n_features", [2, 100, 784])
@pytest.mark.parametrize("block_rows", [500, 20_000, 1_000_000])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
def test_smaller_blocks_as_advised_fit(share, block_rows, n_features):
    sizes = sizes_of(n_features)
    limit = int(share * assign_nbytes(sizes, block_rows))
    with pytest.raises(MemoryPlanError, match="rechunk X in blocks") as caught:
        check_cells(
            replace(sizes, n_rows=10**6, leaf_rows=1, block_rows=block_rows), Resources(1, limit)
        )
    message = str(caught.value)
    assert f"{block_rows} rows" in message
    assert f"{limit // MIB} MiB" in message
    assert f"{math.ceil(assign_nbytes(sizes, block_rows) / MIB)} MiB" in message
    advised = int(re.search(r"at most (\d+) rows", message).group(1))
    assert assign_nbytes(sizes, advised) <= limit
    # Nor does the advice ask for much more than is needed.
    assert assign_nbytes(sizes, 2 * advised) > limit


def refused_cell_size(sizes, n_rows, leaf_rows, limit):
    """Return the cell_size that the refusal advises."""
    with pytest.raises(MemoryPlanError, match="The largest cell group") as caught:
        check_cells(
            replace(sizes, n_rows=n_rows, leaf_rows=leaf_rows, block_rows=1, at="in leaf 3"),
            Resources(1, limit),
        )
    message = str(caught.value)
    assert f"{leaf_rows} rows in leaf 3" in message
    assert f"cells of up to {sizes.cell_size}" in message
    assert f"{limit // MIB} MiB" in message
    assert f"{math.ceil(group_nbytes(sizes, leaf_rows, n_rows) / MIB)} MiB" in message
    advised = re.search(r"cell_size to about (\d+)", message)
    return advised and int(advised.group(1))


@pytest.mark.parametrize("n_features", [2, 100, 784])
@pytest.mark.parametrize("n_rows", [30_000, 250_000, 500_000, 10**7])
@pytest.mark.parametrize("share", [0.1, 0.4, 0.9])
def test_a_smaller_cell_size_as_advised_fits(share, n_rows, n_features):
    sizes = sizes_of(n_features, cell_size=4000)
    leaf_rows = plan_sample(n_rows, n_features, 4000).largest_rows
    limit = int(share * group_nbytes(sizes, leaf_rows, n_rows))
    advised = refused_cell_size(sizes, n_rows, leaf_rows, limit)
    if advised is None:
        # No number is named only where none would do: leaves do not shrink for ever.
        for size in (2000, 1000, 500, 250, 125, 62, 31, 15, 7, 3):
            rows_then = plan_sample(n_rows, n_features, size).largest_rows
            assert group_nbytes(sizes_of(n_features, cell_size=size), rows_then, n_rows) > limit
        return
    # Who follows it gets the leaves of that cell_size, not the same leaves shrunk.
    smaller = sizes_of(n_features, cell_size=advised)
    rows_then = plan_sample(n_rows, n_features, advised).largest_rows
    check_cells(
        replace(smaller, n_rows=n_rows, leaf_rows=rows_then, block_rows=1), Resources(1, limit)
    )


def test_no_cell_size_is_named_where_none_fits():
    # Not even the rows of one cell of a single row fit, though a block of one row does.
    sizes = sizes_of(n_features=10**6)
    with pytest.raises(MemoryPlanError, match=r"may use [^;]*; give each worker"):
        check_cells(
            replace(sizes, n_rows=4000, leaf_rows=4000, block_rows=1),
            Resources(1, assign_nbytes(sizes, 1)),
        )


def refused_sampling(sampling, n_rows, error=ParameterError, nbytes=1 << 40, **sizes):
    """Return the message that refuses a method on samples."""
    sizes = replace(sizes_of(**sizes), n_rows=n_rows, leaf_rows=min(n_rows, 1024), block_rows=1000)
    with pytest.raises(error) as caught:
        sampling.check(sizes, Resources(1, nbytes))
    return str(caught.value).split("; ")[-1]


@pytest.mark.parametrize("method", [LocalSampling, CGLQ])
@pytest.mark.parametrize("n_rows", [2, 3, 20, 150, 1500])
@pytest.mark.parametrize("n_subsamples", [1, 3, 10, 2000])
@pytest.mark.parametrize("fraction", [0.0005, 0.0012, 0.3, 1.0])
def test_remedies_of_small_subsamples_can_be_followed(fraction, n_subsamples, n_rows, method):
    if plan_draws(n_rows, fraction, n_subsamples, 0).subsample_rows >= 2:
        return
    message = refused_sampling(method(fraction, n_subsamples), n_rows)
    advice = message.removesuffix(".").split(", or ")
    assert advice.pop() == "fit on more rows"
    possible = n_rows - max(n_rows // 10, 1) >= 2
    assert bool(advice) == possible
    for remedy in advice:
        then = {"fraction": fraction, "n": n_subsamples}
        for parameter, key in (("sample_fraction", "fraction"), ("n_subsamples", "n")):
            found = re.search(rf"{parameter} to ([\d.e-]+)", remedy)
            if found:
                then[key] = float(found.group(1))
        assert fraction <= then["fraction"] <= 1
        assert 1 <= then["n"] <= n_subsamples
        assert plan_draws(n_rows, then["fraction"], int(then["n"]), 0).subsample_rows >= 2


def test_neighbors_are_planned_as_many_as_there_are():
    many = CGLQ(0.1, n_neighbors=10**6)
    roomy = Resources(1, 1 << 30)
    many.check(replace(sizes_of(2), n_rows=400, leaf_rows=400, block_rows=400), roomy)
    message = refused_sampling(many, 4000, MemoryPlanError, 256 << 20, n_features=2)
    assert message.startswith("lower n_neighbors below 3599, or give each worker")


def test_rows_of_large_balls_are_drawn_in_parts():
    # Ten million rows, of which balls may draw all: a task keeps the pairs of a few balls.
    own = LocalSampling(0.002, 20, radius_scale=300.0)
    laptop = Resources(2, 1 << 30)
    own.check(replace(sizes_of(28), n_rows=10**7, leaf_rows=8192, block_rows=10**5), laptop)
    most = most_pairs(sizes_of(28), 20_000, 8192, laptop, 0.02)
    assert WAITING_PAIRS < most < 10**7
    larger = replace(laptop, task_nbytes=1 << 31)
    assert most_pairs(sizes_of(28), 20_000, 8192, larger, 0.02) > 2 * most


def test_pairs_that_wait_are_planned():
    own = LocalSampling(0.002, 3, radius_scale=300.0)
    # No other fraction would change what they need.
    message = refused_sampling(own, 10**6, MemoryPlanError, 87 << 20, n_features=2)
    assert message == "give each worker more memory or fewer threads."
    few = replace(own, sample_fraction=0.9, n_subsamples=1000)
    message = refused_sampling(few, 10**5, MemoryPlanError, 97 << 20, n_features=2)
    assert message.startswith("lower sample_fraction below 0.9, or give")


def test_large_sizes_are_told_in_gib():
    with pytest.raises(MemoryPlanError, match=r"\d+\.\d GiB"):
        check_cells(
            replace(sizes_of(cell_size=10**5), n_rows=10**6, leaf_rows=10**5, block_rows=1),
            Resources(1, 10**9),
        )
