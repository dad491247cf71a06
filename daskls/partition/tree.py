"""A tree of half-spaces: each node gives the rows of one region to the nearer of two centers."""

from collections.abc import Sequence

import numpy as np

from daskls.kernels.route import route
from daskls.records import FloatArray, IntArray, Tree

__all__ = ["graft", "no_cuts", "route_rows"]


def route_rows(tree: Tree, X: FloatArray) -> IntArray:
    """Return the leaf of each row of X, int32 (m,); training and prediction share this router."""
    return route(X, tree.center, tree.directions, tree.thresholds, tree.children, tree.axes)


def no_cuts(center: FloatArray) -> Tree:
    """Return the tree that leaves all space in one piece."""
    d = len(center)
    return Tree(center, np.empty((0, d)), np.empty(0), np.empty((0, 2), np.int32))


def graft(trunk: Tree, branches: Sequence[Tree]) -> Tree:
    """Put one tree in the place of each leaf of ``trunk`` and number the leaves anew.

    Parameters
    ----------
    trunk : Tree
    branches : sequence of Tree, one a leaf of ``trunk``, around the trunk's center

    Returns
    -------
    tree : Tree. The leaves of branch i come after those of branch i - 1.
    """
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
