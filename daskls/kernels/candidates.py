"""Candidates of queries, ranked exactly among the nearest rows."""

import numpy as np

from daskls.kernels._jit import exact_jit
from daskls.kernels.nearest import sink, squared_distance


@exact_jit
def offer_candidates(queries, which, candidates, X, rows, ptr, numbers, positions, heaps):
    """Offer the rows of each query's candidates to its heap, `which`, by exact squared distances.

    A candidate c stands for the equal rows rows[ptr[c]] to rows[ptr[c + 1] - 1] of X, by increasing
    number. Heaps are max-heaps of squared distances, numbers and positions, updated in place.
    """
    keys, heap_numbers, heap_positions = heaps
    for i in range(which.shape[0]):
        query = queries[which[i]]
        top_keys, top_numbers = keys[which[i]], heap_numbers[which[i]]
        top_positions = heap_positions[which[i]]
        for j in range(candidates.shape[1]):
            c = candidates[i, j]
            distance = squared_distance(query, X[rows[ptr[c]]])
            for r in range(ptr[c], ptr[c + 1]):
                number = numbers[rows[r]]
                if distance > top_keys[0] or (distance == top_keys[0] and number > top_numbers[0]):
                    # Equal rows of larger numbers are no nearer.
                    break
                top_keys[0] = distance
                top_numbers[0] = number
                top_positions[0] = positions[rows[r]]
                sink(top_keys, top_numbers, top_positions, 0)


@exact_jit
def center_distances(queries, centers):
    """Return the squared distance of each query and center, (q, n), whatever the other queries."""
    distances = np.empty((queries.shape[0], centers.shape[0]))
    for i in range(queries.shape[0]):
        for c in range(centers.shape[0]):
            distances[i, c] = squared_distance(queries[i], centers[c])
    return distances
