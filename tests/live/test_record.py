"""What the record of a fit says of stages, cells and errors."""

import json

import numpy as np
import pytest

from daskls.live.events import COUNTED, count_leaves
from daskls.live.fit import Lines
from daskls.live.record import FitRecord, Header, Map
from daskls.records import CellReport

HEADER = Header("VoronoiSVC", 1000, 2)


def cells(*rows):
    """Return a table of cells from (leaf, rows, classes, error)."""
    reports = [
        CellReport(i, leaf, n_rows, n_classes, 1.0, validation_error=error, n_trained=1)
        for i, (leaf, n_rows, n_classes, error) in enumerate(rows)
    ]
    return np.array([report.as_tuple() for report in reports], CellReport.dtype())


def squares(n, region_of):
    """Return a map of n squares."""
    polygons = [[[i, 0], [i + 1, 0], [i + 1, 1], [i, 1]] for i in range(n)]
    return Map(polygons, region_of, ((0.0, 1.0), (0.0, 1.0)), ("a", "b"), "squares")


def test_fits_of_one_kind_have_titles_that_tell_them_apart():
    titles = {str(Header("VoronoiSVC", 1000, 2, store=name)) for name in ("a.zarr", "b.zarr", "")}
    assert len(titles) == 3
    assert "VoronoiSVC: 1,000 rows, 2 features, in a.zarr" in titles


def test_leaves_are_counted():
    nan = float("nan")
    table = cells((3, 10, 2, 0.1), (3, 30, 2, 0.3), (4, 50, 1, nan), (5, 20, 2, nan))
    counted = dict(zip(COUNTED, count_leaves(table), strict=True))
    assert counted["leaf"] == [3, 4, 5]
    assert counted["cells"] == [2, 1, 1]
    assert counted["rows"] == [40, 50, 20]
    assert counted["measured"] == [40, 0, 0]
    assert counted["pure"] == [0, 50, 0]
    assert counted["wrong"] == pytest.approx([10, 0, 0])


def test_the_error_is_that_of_the_report():
    record = FitRecord(HEADER)
    assert record.error is None
    record.add_bundle(0, 1, count_leaves(cells((0, 10, 2, 0.1), (1, 30, 2, 0.3))))
    assert record.error == pytest.approx(10 / 40)
    # A cell of one class has no wrong row.
    record.add_bundle(2, 2, count_leaves(cells((2, 60, 1, float("nan")))))
    assert record.error == pytest.approx(10 / 100)
    assert record.n_cells == 3


def test_without_a_choice_no_error_is_told():
    record = FitRecord(HEADER)
    nan = float("nan")
    record.add_bundle(0, 1, count_leaves(cells((0, 10, 2, nan), (1, 30, 1, nan))))
    record.set_map(squares(2, [0, 1]))
    assert record.error is None
    assert record.regions() == ([1, 1], [None, None])


def test_a_bundle_told_twice_counts_once():
    record = FitRecord(HEADER)
    for _ in range(2):
        record.add_bundle(0, 0, count_leaves(cells((0, 10, 2, 0.1))))
    assert record.n_cells == 1
    # Bundles of centers share a leaf.
    record.add_bundle(1, 1, count_leaves(cells((0, 10, 2, 0.3))))
    assert record.n_cells == 2
    assert record.error == pytest.approx(0.2)


def test_numbers_have_squares_and_no_classes():
    nan = float("nan")
    record = FitRecord(Header("VoronoiSVR", 1000, 2, "numbers"))
    record.set_map(squares(3, [0, 1, 2]))
    # Of three cells the last holds one number, and nothing was trained.
    trained = cells((0, 10, 0, 0.02), (1, 30, 0, 0.04), (2, 60, 0, nan))
    trained["n_trained"] = [1, 1, 0]
    record.add_bundle(0, 2, count_leaves(trained))
    assert record.error == pytest.approx((10 * 0.02 + 30 * 0.04) / 100)
    told = record.snapshot(now=0.0)
    assert told["region_errors"] == [pytest.approx(0.02), pytest.approx(0.04), 0.0]
    assert (told["error_name"], told["error_told"]) == ("R2 of held-out rows", "0.9860")
    assert told["error_label"] == "squared error / variance of y"
    assert not told["is_share"]
    # Errors far below a percent have colors of their own.
    assert told["top_error"] == pytest.approx(0.04)
    tiny = FitRecord(Header("VoronoiSVR", 1000, 2, "numbers"))
    tiny.set_map(squares(1, [0]))
    tiny.add_bundle(0, 0, count_leaves(cells((0, 10, 0, 3.2e-7))[:1]))
    assert tiny.snapshot(now=0.0)["top_error"] == pytest.approx(4e-7)


def test_lines_tell_what_numbers_have():
    written = []
    record = FitRecord(Header("VoronoiSVR", 1000, 2, "numbers"))
    record.advance("train", 0, 4, now=0.0)
    record.add_bundle(0, 0, count_leaves(cells((0, 10, 0, 0.25))))
    Lines(written.append).show(record)
    assert written[-1].endswith("R2 of held-out rows so far 0.7500")
    assert not [line for line in written if "validation" in line]


def test_regions_hold_several_leaves():
    record = FitRecord(HEADER)
    record.set_map(squares(2, [0, 0, 1, -1]))
    record.add_bundle(0, 1, count_leaves(cells((0, 10, 2, 0.1), (1, 30, 2, 0.3), (3, 9, 2, 1.0))))
    n_cells, errors = record.regions()
    assert n_cells == [2, 0]
    assert errors == [pytest.approx(0.25), None]


def test_stages_follow_each_other():
    record = FitRecord(HEADER)
    record.advance("sample", None, 4, now=0.0)
    record.advance("regroup", 0, 4, now=2.0)
    record.advance("regroup", 1, 4, now=3.0)
    assert record.stages["sample"].seconds(9.0) == 2.0
    assert record.stages["regroup"].left_s(3.0) == pytest.approx(3.0)
    record.advance("regroup", 4, 4, now=5.0)
    assert record.stages["regroup"].ended == 5.0
    # The last report may come again; it begins no second round.
    record.advance("regroup", 4, 4, now=6.0)
    assert record.stages["regroup"].seconds(9.0) == 3.0


def test_the_pace_is_that_of_this_fit():
    record = FitRecord(HEADER)
    record.advance("train", 90, 100, now=0.0)
    assert record.stages["train"].left_s(5.0) is None
    record.advance("train", 95, 100, now=10.0)
    assert record.stages["train"].left_s(10.0) == pytest.approx(10.0)


def test_a_stage_that_began_elsewhere_keeps_its_time():
    record = FitRecord(HEADER)
    record.advance("train", 5, 10, now=100.0, seconds=30.0)
    assert record.stages["train"].seconds(100.0) == 30.0


def test_a_snapshot_is_json():
    record = FitRecord(HEADER)
    record.advance("train", 1, 4, now=0.0)
    record.set_map(squares(1, [0]))
    record.add_bundle(0, 0, count_leaves(cells((0, 10, 2, 0.1))))
    record.end("finished", now=3.0)
    told = json.loads(json.dumps(record.snapshot(now=9.0)))
    assert told["title"] == "VoronoiSVC: 1,000 rows, 2 features"
    assert told["ended"] == "finished"
    assert told["stages"] == [
        {"label": "training cells", "done": 1, "total": 4, "seconds": 3.0, "ended": True}
    ]
    assert told["region_errors"] == [pytest.approx(0.1)]
    assert Map(**json.loads(json.dumps(record.map.to_json()))).region_of == [0]


def test_lines_are_few():
    written = []
    lines, record = Lines(written.append), FitRecord(HEADER)
    record.advance("train", 0, 40, now=0.0)
    for done in range(41):
        record.advance("train", done, 40, now=1.0 + done)
        lines.show(record)
    assert written[0] == "VoronoiSVC: 1,000 rows, 2 features"
    assert [line.split(",")[0] for line in written[1:]] == [
        "training cells: 0 of 40",
        "training cells: 40 of 40",
    ]
