import math
import re
from dataclasses import replace

import numpy as np
import pytest

from daskls.errors import MemoryPlanError, ParameterError
from daskls.memory import TaskSizes, assign_nbytes, grow_nbytes
from daskls.methods.cells.method import check_cells
from daskls.methods.sampling.method import CGLQ, LocalSampling
from daskls.partition.shuffle import plan_draws
from daskls.plan.bundles import Resources, group_nbytes, model_nbytes, plan_bundles, plan_sample
from daskls.plan.checks import check_sample
from daskls.records import LEAVES_NBYTES, SolverSpec

MIB = 1 << 20


def sizes_of(n_features=10, cell_size=2000, n_classes=2, **spec):
    return TaskSizes(n_features, 4, n_classes, cell_size, SolverSpec(**spec))


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


def test_a_sample_too_large_for_the_client_is_refused():
    sizes = sizes_of(n_features=784)
    sampling = plan_sample(10**7, 784, 2000)
    check_sample(sampling, sizes, 2**40)
    with pytest.raises(
        MemoryPlanError, match=r"on the client but 64 MiB are free; raise it, or use fewer"
    ):
        check_sample(sampling, sizes, 2**26, "raise it")


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
