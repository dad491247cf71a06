"""A tree of half-spaces: each node gives the rows of one region to the nearer of two centers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from daskls.kernels.route import route
from daskls.records import AnyArray, Float64, Int32, Reals
from daskls.store.artifact import Artifact
from daskls.store.errors import check_counts, damaged

# Stored arrays with a row per node.
NODE_ARRAYS = ("directions", "thresholds", "children")


@dataclass(frozen=True, eq=False)
class Tree:
    """A partition of space by half-spaces, as flat arrays small enough for every task to read.

    Node i sends a row x to its first child if ``(x - center) . directions[i] <= thresholds[i]``.
    Children, (n_nodes, 2), are a node's number, or ``~leaf``, numbered from left to right.
    """

    center: Float64
    directions: Float64
    thresholds: Float64
    children: Int32

    @property
    def n_leaves(self) -> int:
        """The number of leaves: one more than the nodes, as every node has two children."""
        return len(self.thresholds) + 1

    @cached_property
    def axes(self) -> Int32:
        """The feature that each node cuts across, int32 (n_nodes,); -1 where a cut is slanted."""
        if not len(self.directions):
            return np.empty(0, np.int32)
        features = self.directions.argmax(axis=1).astype(np.int32)
        is_axis = np.count_nonzero(self.directions, axis=1) == 1
        is_axis &= self.directions[np.arange(len(features)), features] == 1.0
        return np.where(is_axis, features, np.int32(-1))


def route_rows(tree: Tree, X: Reals) -> Int32:
    """Return the leaf of each row, int32 (m,); training and prediction share this router."""
    return route(X, tree.center, tree.directions, tree.thresholds, tree.children, tree.axes)


def no_cuts(center: Float64) -> Tree:
    d = len(center)
    return Tree(center, np.empty((0, d)), np.empty(0), np.empty((0, 2), np.int32))


def graft(trunk: Tree, branches: Sequence[Tree]) -> Tree:
    """Replace each leaf by a tree around the same center, and renumber the leaves."""
    first_leaf = np.cumsum([0, *(branch.n_leaves for branch in branches)])
    first_node = len(trunk.thresholds) + np.cumsum(
        [0, *(len(branch.thresholds) for branch in branches)]
    )
    roots = np.array(
        [
            first_node[i] if len(branch.thresholds) else ~first_leaf[i]
            for i, branch in enumerate(branches)
        ]
    )
    children = [np.where(trunk.children < 0, roots[~trunk.children], trunk.children)]
    children += [
        np.where(branch.children < 0, branch.children - leaf, branch.children + node)
        for branch, leaf, node in zip(branches, first_leaf, first_node, strict=False)
    ]
    return Tree(
        trunk.center,
        np.concatenate([trunk.directions, *(branch.directions for branch in branches)]),
        np.concatenate([trunk.thresholds, *(branch.thresholds for branch in branches)]),
        np.concatenate(children).astype(np.int32),
    )


def tree_arrays(trees: Sequence[Tree], counts: str) -> dict[str, AnyArray]:
    """Return trees as concatenated flat arrays; ``counts`` names the array of their node counts."""
    return {
        counts: np.array([len(tree.thresholds) for tree in trees]),
        **{name: np.concatenate([getattr(tree, name) for tree in trees]) for name in NODE_ARRAYS},
    }


def read_trees(
    part: Artifact,
    center: Float64,
    counts: str,
    n_trees: int | None = None,
    n_nodes: int | None = None,
) -> tuple[Tree, ...]:
    """Return the trees, around one center, whose `tree_arrays` a part holds.

    DamageError where the arrays are not valid trees.
    """
    sizes = part.read(counts, shape=(n_trees,), kind="i")
    # Checked before they decide how much is read.
    ptr = check_counts(part.where(), counts, sizes, n_nodes)
    if not len(sizes):
        raise damaged(part.where(), "it holds no tree")
    shapes = ((ptr[-1], len(center)), (ptr[-1],), (ptr[-1], 2))
    parts = (
        np.split(part.read(name, shape=shape, kind=kind), ptr[1:-1])
        for name, shape, kind in zip(NODE_ARRAYS, shapes, "ffi", strict=True)
    )
    trees = tuple(Tree(center, *arrays) for arrays in zip(*parts, strict=True))
    for tree in trees:
        _check_tree(tree, part.where())
    return trees


def _check_tree(tree: Tree, where: str) -> None:
    """Raise DamageError for a tree whose children would send routing out of the arrays."""
    children = tree.children
    n_nodes = len(tree.thresholds)
    inner = children[children >= 0]
    leaves = ~children[children < 0]
    is_tree = (
        children.shape == (n_nodes, 2)
        and (children.max(axis=1, initial=-1) < n_nodes).all()
        and ((children < 0) | (children > np.arange(n_nodes)[:, None])).all()
        and np.array_equal(np.sort(inner), np.arange(1, n_nodes))
        and (not n_nodes or np.array_equal(np.sort(leaves), np.arange(n_nodes + 1)))
    )
    if not is_tree:
        raise damaged(where, "its nodes do not form a tree")
