"""What the record of a fit says of stages, cells and errors."""

import numpy as np
import pytest

from daskls.live.record import COUNTED, FitRecord, Map, count_leaves
from daskls.live.view import COLORS, PALETTE, fit_html
from daskls.records import CellReport

TITLE = "VoronoiSVC: 1,000 rows, 2 features"


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
    record = FitRecord(TITLE)
    assert record.error is None
    record.add_bundle(0, 1, count_leaves(cells((0, 10, 2, 0.1), (1, 30, 2, 0.3))))
    assert record.error == pytest.approx(10 / 40)
    # A cell of one class has no wrong row.
    record.add_bundle(2, 2, count_leaves(cells((2, 60, 1, float("nan")))))
    assert record.error == pytest.approx(10 / 100)
    assert record.n_cells == 3


def test_stages_follow_each_other():
    record = FitRecord(TITLE)
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


def test_a_notebook_shows_stages_errors_and_the_map():
    record = FitRecord("VoronoiSVC of <b>")
    record.advance("train", 1, 4, now=0.0)
    record.set_map(squares(4, [0, 1, 2, 3]))
    record.add_bundle(0, 1, count_leaves(cells((0, 10, 2, 0.1), (1, 10, 2, 0.0))))
    page = fit_html(record, now=3.0)
    assert "of &lt;b&gt;" in page
    for words in ("training cells", "1 of 4", "3 s", "so far: <b>5.00 %</b>", COLORS, "squares"):
        assert words in page
    assert all(f'fill="{color}"><title>1 cell' in page for color in (PALETTE[-1], PALETTE[0]))
    # Two regions wait, and are white; a tenth of the rows is wrong where the colors end.
    assert page.count('fill="#ffffff"><title>not trained yet</title>') == 2
    assert ">10.0 %</text>" in page
    assert "http" not in page
    record.end("finished", now=3.0)
    assert "The fit has finished." in fit_html(record, now=9.0)
