"""The trials of a first look: some of the widths and ridges that a spec leaves open, or gives."""

import pytest

from daskls.records import SolverSpec
from daskls.scaling.grid import RIDGES, WIDTHS, TrialGrid


def test_the_first_look_is_at_few_of_each():
    trials = TrialGrid.of(SolverSpec(loss="squared_error")).coarse("rbf")
    assert {trial.width for trial in trials} == {*WIDTHS[4:13:2]}
    assert {trial.ridge for trial in trials} == {1e-3, 1e-2, 1e-1} < {*RIDGES}


@pytest.mark.parametrize(
    ("n_costs", "places"), [(1, [0]), (2, [0, 1]), (3, [2]), (7, [2, 4, 6]), (12, [2, 4, 6])]
)
def test_of_given_costs_three_are_looked_at_first(n_costs, places):
    costs = tuple(10.0**i for i in range(n_costs))
    grid = TrialGrid.of(SolverSpec(loss="squared_error", C=costs, gamma=(1.0,)))
    assert [trial.ridge for trial in grid.coarse("rbf")] == [grid.ridges[at] for at in places]
