"""Points of a grid that a search from coarse to fine visits."""

__all__ = ["NO_PASS", "GridPoint", "coarse_points", "near_points", "tried_points"]

# An axis of so many values is tried whole.
SHORT = 3

Shape = tuple[int, int]
# Of gamma and of C.
GridPoint = tuple[int, int]
# In place of what a coarse pass chose, where there was none.
NO_PASS: GridPoint = (-1, -1)


def _coarse(n: int, first: int) -> list[int]:
    """Return every second index of an axis, so that each has one beside it; all of a short one."""
    return list(range(first, n, 2)) if n > SHORT else list(range(n))


def coarse_points(shape: Shape) -> tuple[list[int], list[int]]:
    """Return the indices of gamma and of C in the coarse pass.

    Widths come from the middle outwards: a good one early on lets later ones be pruned sooner. Of
    the two choices of every other C, the one without the largest C is taken, whose solves take most
    steps.

    >>> coarse_points((10, 10)), coarse_points((1, 11))
    (([5, 3, 7, 1, 9], [0, 2, 4, 6, 8]), ([0], [1, 3, 5, 7, 9]))
    """
    middle = shape[0] // 2
    gammas = sorted(_coarse(shape[0], 1), key=lambda index: (abs(index - middle), index))
    return gammas, _coarse(shape[1], shape[1] % 2)


def near_points(shape: Shape, first: GridPoint) -> tuple[list[int], list[int]]:
    """Return the indices of gamma and of C next to one, itself the first of gamma's.

    >>> near_points((10, 10), (5, 8))
    ([5, 4, 6], [7, 8, 9])
    """
    g, c = first
    gammas = [index for index in (g, g - 1, g + 1) if 0 <= index < shape[0]]
    return gammas, [index for index in (c - 1, c, c + 1) if 0 <= index < shape[1]]


def tried_points(shape: Shape, first: GridPoint) -> set[GridPoint]:
    """Return all points that a search tried whose coarse pass chose ``first``.

    Without a coarse pass, `NO_PASS`, it tried all.

    >>> len(tried_points((10, 10), (5, 4))), len(tried_points((3, 2), NO_PASS))
    (33, 6)
    """
    if first == NO_PASS:
        return {(g, c) for g in range(shape[0]) for c in range(shape[1])}
    both = [coarse_points(shape), near_points(shape, first)]
    return {(g, c) for gammas, costs in both for g in gammas for c in costs}
