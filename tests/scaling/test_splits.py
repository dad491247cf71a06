"""Sheets of rows: which train, are predicted or held out, of samples and of regions."""

from dataclasses import replace

import numpy as np
import pytest
from splits import drawn_of, regions_at

from daskls.scaling.coding import find_bases
from daskls.scaling.grid import STEPS, race_nbytes, rung_nbytes
from daskls.scaling.regions import (
    COLLECTED,
    GATHERED,
    RegionJob,
    RegionSplit,
    cells_of,
    draw_splits,
    read_region,
)
from daskls.scaling.splits import draw_rows, expected_splits, held_out, plan_of_sample, token_of
from daskls.solvers.squares.target_coding import ClassCoding

RNG = np.random.default_rng(0)
AIM = ClassCoding(2)


@pytest.mark.parametrize("cell_rows", [10, 4000])
@pytest.mark.parametrize("n_rows", [2, 30, 399, 400, 2999, 3000, 5999, 8000, 80_000])
def test_no_row_answers_after_a_model_of_its_own(n_rows, cell_rows):
    drawn, held = drawn_of(n_rows, 4000, with_cells=n_rows == 8000), held_out(n_rows, 3)
    plan = plan_of_sample(drawn, cell_rows)

    def rows_of(ends):
        found = drawn.rows[slice(*ends)].tolist()
        assert len({*found}) == len(found) == ends[1] - ends[0]
        return {*found}

    before = [*plan.rungs, *([plan.thick, plan.tuning] if plan.learning else [])]
    before = [part for split_set in before if split_set is not None for part in split_set.splits]
    last = [*plan.deciding.splits, *plan.final.splits]
    for part in (*before, *plan.learning, *last):
        train, asked = rows_of(part.train), rows_of(part.predicted)
        assert train
        # Left out in turn, or none of them.
        assert asked <= train if part.leaves_out else not train & asked
        is_tuning = plan.tuning is not None and part in plan.tuning.splits
        assert part.leaves_out == is_tuning or not asked - train
        if plan.leave_out:
            continue
        # What decides has taken no part before, and never trains.
        assert not held[[*train]].any()
        if part in last:
            assert held[[*asked]].all()
        elif part in before:
            assert not held[[*asked]].any()
    assert plan.leave_out == (n_rows < 3000)
    # Few rows are all predicted.
    predicted = rows_of(plan.final.splits[0].predicted)
    assert not plan.leave_out or len(predicted) == min(n_rows, 1500)


@pytest.mark.parametrize("n_rows", [100, 2000, 5000, 8000])
@pytest.mark.parametrize("cell_rows", [300, 4000])
def test_what_is_planned_before_rows_are_drawn_is_enough(n_rows, cell_rows):
    plan = plan_of_sample(drawn_of(n_rows, cell_rows, with_cells=n_rows >= 6000), cell_rows)
    planned = race_nbytes(expected_splits(n_rows, cell_rows, has_cells=True), 5, 1)
    for split_set in (*plan.rungs, plan.thick, plan.deciding, plan.final):
        needed = rung_nbytes([part.sizes for part in split_set.splits], 5, 1)
        # How many rows are held out is known only about.
        assert needed <= 1.1 * planned


def test_rows_in_other_scales_are_kept_apart(tmp_path):
    """Another version may begin from another spread; what it stored stays where it is."""
    X = np.random.default_rng(0).random((50, 2))
    found = [find_bases(X * unit, ("none",), 2) for unit in (1.0, 2.0)]
    drawn = draw_rows(50, 40, 0, 0)
    assert token_of(drawn, found[0]) == token_of(drawn, find_bases(X, ("none",), 2))
    assert token_of(drawn, found[0]) != token_of(drawn, found[1])
    one, two = (own[0].scale for own in found)
    job = RegionJob(str(tmp_path), "", one, "a", one, None, np.array([0]), 100, 1, AIM, 7)
    for kind in (COLLECTED, GATHERED, STEPS):
        assert job.folder(kind) != replace(job, route=two).folder(kind)


def test_rows_are_held_out_in_runs(tmp_path):
    # Neighbors in the data may be neighbors in time, which know each other's labels.
    rows = read_region(0, regions_at(tmp_path, 1, 8000, run_rows=50))
    runs = (rows.weights - 1).astype(int) // 50
    np.testing.assert_array_equal(rows.groups, runs)
    n = np.bincount(runs)
    shares = np.bincount(runs, weights=rows.held)[n > 0] / n[n > 0]
    assert set(shares) == {0.0, 1.0}
    assert 0.15 < rows.held.mean() < 0.25


@pytest.mark.parametrize("factors", [[1.0, 1.0], [1.0, 0.0]])
def test_each_held_out_row_of_a_region_is_asked_once_and_no_other(tmp_path, factors):
    job = regions_at(tmp_path, 1, 900)
    every, factors = read_region(0, job), np.array(factors)
    cells = list(cells_of(RegionSplit(0, 100), factors, job))
    assert len(cells) > 4
    assert all(cell.n_training <= 100 for cell in cells)
    training = np.concatenate([cell.rows.weights[: cell.n_training] for cell in cells])
    asked, ids = (
        np.concatenate(own)
        for own in zip(*[(c.predicted.weights, c.ids) for c in cells], strict=True)
    )
    # By the cell that it lies in.
    near = [
        np.abs(cell.predicted.X[:, None] - cell.rows.X[: cell.n_training]) @ factors
        for cell in cells
    ]
    assert np.median(np.concatenate([own.min(axis=1) for own in near])) < 0.05
    assert len({*training}) == len(training)
    assert {*training} <= {*every.weights[~every.held]}
    # By their order in the data, whatever the scale in which cells were cut.
    np.testing.assert_array_equal(asked[np.argsort(ids)], every.weights[every.held])


def test_cells_that_choose_are_drawn_of_what_is_not_held_out(tmp_path):
    job = regions_at(tmp_path, 3, 900)
    parts = draw_splits(job, 8, 100, 5)
    assert sorted(part.n_drawn for part in parts) == [2, 3, 3]
    assert {part.region for part in parts} == {0, 1, 2}
    assert parts == draw_splits(job, 8, 100, 5)
    drawn = {}
    for part in (*parts, *draw_splits(job, 8, 100, 6)):
        held = {*(every := read_region(part.region, job)).weights[every.held]}
        cells = list(cells_of(part, np.ones(2), job))
        assert len(cells) == part.n_drawn
        # Half of a cell is left out in turn.
        assert all(cell.n_training == len(cell.rows.X) <= 100 for cell in cells)
        assert all(len(cell.ids) == cell.n_training // 2 for cell in cells)
        own = {weight for cell in cells for weight in cell.rows.weights}
        assert not own & held
        drawn.setdefault(part.draw, set()).update(own)
    # Each choice has cells of its own draw.
    assert drawn[5] != drawn[6]
