"""The work of L3-SVMs, before rows are read."""

from daskls.methods.landmarks.fit import GROUP_NBYTES, MIN_GROUPS
from daskls.methods.landmarks.plan import landmark_nbytes, n_candidates
from daskls.methods.landmarks.spec import LandmarkSpec
from daskls.plan import Demand, Outlook, StageDemand, Work, group_open
from daskls.records import F8

__all__ = ["demand_of_landmarks"]

CLUSTER = "methods.landmarks.timed:cluster_rows"
SOLVE_ALL, SOLVE_ONE = "methods.landmarks.timed:solve_all", "methods.landmarks.timed:solve_one"
# Rounds of one search of biases, and what they cost in first rounds: later ones go on from the one
# before, and of fewer problems.
BIAS_ROUNDS, FIRST_ROUNDS = 12, 1.5


def demand_of_landmarks(method: LandmarkSpec, outlook: Outlook) -> Demand:
    """Return the demand of the joint problem, and of the choice of C before it."""
    extent, sizes, n_cells = outlook.extent, outlook.extent.sizes, outlook.n_leaves
    rows = max(extent.n_rows // n_cells, 1)
    n_landmarks = method.n_landmarks or sizes.n_features
    n_classes = 1 if sizes.n_classes == 2 else sizes.n_classes
    n_problems = n_candidates(sizes.spec) * n_classes
    n_groups = _n_groups(rows, n_cells, n_landmarks, sizes.n_features, n_problems)
    clustering = StageDemand("cut", 0, 0, (Work(CLUSTER, outlook.n_sample, 1),))
    stages = [clustering]
    if n_candidates(sizes.spec) > 1:
        stages.append(_searching("select", SOLVE_ALL, outlook, n_groups, n_problems, n_landmarks))
    stages.append(_searching("train", SOLVE_ONE, outlook, n_groups, n_classes, n_landmarks))
    model = (n_cells * (n_landmarks + sizes.n_features) * n_classes + n_landmarks**2) * F8
    return Demand(tuple(stages), n_cells, model, 0, n_groups)


def _n_groups(rows: int, n_cells: int, n_landmarks: int, n_features: int, n_problems: int) -> int:
    """Return how many tasks a round has."""
    nbytes = rows * F8 * (n_landmarks + n_features) + 2 * F8 * n_problems * n_landmarks
    limit = min(GROUP_NBYTES, n_cells * nbytes // MIN_GROUPS)
    return len(group_open([nbytes] * n_cells, [False] * n_cells, limit))


def _searching(
    name: str, what: str, outlook: Outlook, n_groups: int, n_problems: int, n_landmarks: int
) -> StageDemand:
    extent, n_cells = outlook.extent, outlook.n_leaves
    rows = max(extent.n_rows // n_cells, 1)
    nbytes = landmark_nbytes(extent.sizes, rows, n_landmarks, n_problems)
    reading = Work(outlook.reading.what, outlook.reading.size, BIAS_ROUNDS * outlook.reading.count)
    works = reading, Work(what, rows, FIRST_ROUNDS * n_cells)
    return StageDemand(name, BIAS_ROUNDS * n_groups, nbytes, works, BIAS_ROUNDS)
