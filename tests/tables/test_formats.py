"""Odd tables become what was recorded; a format is one line more, at every door."""

import json
import os
import sys
from unittest import mock

import numpy as np
import pytest
import zarr
from support import HERE
from support import run_cli as run
from tables import corpus, json_lines

from daskls import StoreError, TableEncoder, VoronoiSVC
from daskls.datasets import convert
from daskls.sources import formats
from daskls.sources.formats import Format
from daskls.sources.write import write_predictions
from daskls.store import folder

ROWS = np.random.default_rng(0).random((300, 2))
LABELS = np.where(ROWS[:, 0] > ROWS[:, 1], "above", "below")
SMALL = {"cell_size": 200, "C": 1.0, "gamma": 5.0, "random_state": 0}


def test_a_format_is_one_file_and_one_line(tmp_path, monkeypatch):
    """The worked example, which one line has made known."""
    known = Format((".jsonl",), "sources.json_lines:open_json_lines")
    monkeypatch.setattr(formats, "FORMATS", (*formats.FORMATS, known))
    monkeypatch.setitem(sys.modules, "daskls.sources.json_lines", json_lines)
    rows, each = tmp_path / "rows.jsonl", zip(ROWS.tolist(), LABELS.tolist(), strict=True)
    lines = [json.dumps({"a": a, "b": b, "side": side}) for (a, b), side in each]
    rows.write_text("\n".join(lines) + "\n")
    by_array = VoronoiSVC(**SMALL).fit(ROWS, LABELS).predict(ROWS)
    model = VoronoiSVC(**SMALL).fit(rows, "side")
    np.testing.assert_array_equal(model.predict(rows), by_array)
    assert model.score(rows) == np.mean(by_array == LABELS)
    model.save(tmp_path / "m")
    run("predict", tmp_path / "m", rows, tmp_path / "out.csv", *HERE)
    assert (tmp_path / "out.csv").read_text().split() == ["side", *by_array]
    data = convert(rows, tmp_path / "d", label="side")
    np.testing.assert_array_equal(data.X[:], ROWS)
    assert data.feature_names == ["a", "b"]
    encoder = TableEncoder("side").fit(rows)
    np.testing.assert_array_equal(encoder.to_zarr(rows, tmp_path / "e").X[:], ROWS)


@pytest.mark.parametrize("has_links", [True, False])
def test_predictions_replace_no_file_that_appeared_meanwhile(has_links, tmp_path, monkeypatch):
    if not has_links:
        refuse = mock.Mock(side_effect=OSError(folder.NO_LINKS[0], "no links here"))
        monkeypatch.setattr(os, "link", refuse)
    zarr.save_array(tmp_path / "answers.zarr", np.array([3, 1, 2]))
    target = tmp_path / "out.csv"
    assert write_predictions(str(tmp_path / "answers.zarr"), target, ["side"]) == 3
    assert target.read_text().split() == ["side", "3", "1", "2"]
    with pytest.raises(StoreError, match="exists already; give another path"):
        write_predictions(str(tmp_path / "answers.zarr"), target, ["other"])
    assert target.read_text().split()[0] == "side"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.zarr", "out.csv"]


def test_odd_tables_become_what_they_did():
    expected = json.loads(corpus.RECORDED.read_text(encoding="utf-8"))
    found = corpus.find_all()
    assert [name for name, own in found.items() if own != expected.get(name)] == []
    assert found.keys() == expected.keys()
    # One reader: where both doors take the same columns, rows differ by rounding alone.
    for name, own in found.items():
        differs = own.get("fit", {})
        if "X" in differs and "names" not in differs and isinstance(own["X"], list):
            X, fitted = (np.array(rows, float).astype("f4") for rows in (own["X"], differs["X"]))
            np.testing.assert_array_equal(X, fitted, err_msg=name)
