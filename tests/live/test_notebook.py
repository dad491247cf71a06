"""The live view in a notebook: a widget, and plain lines where there is none."""

import re

import nbformat
import pytest
from nbclient import NotebookClient
from support import python_env

from daskls.live.view import PALETTE

FIT = """
import numpy as np, daskls
X = np.random.default_rng(0).random((2000, 2))
y = (X * 3).astype(int).sum(axis=1) % 2
model = daskls.VoronoiSVC(cell_size=100, random_state=0, verbose=1).fit(X, y)
"""
WITHOUT = "import sys; sys.modules['ipywidgets'] = None"


@pytest.fixture
def run(monkeypatch):
    """Return a function that runs cells in a fresh kernel and gives the notebook."""
    for name, value in python_env().items():
        monkeypatch.setenv(name, value)

    def run(*cells):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
        NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
        return notebook

    return run


def texts(cell, name):
    return "".join(out["text"] for out in cell.outputs if out.get("name") == name)


def test_a_widget_shows_the_fit(run):
    notebook = run(FIT, "print(len(model.fit_report_))")
    fit, count = notebook.cells
    assert texts(fit, "stderr") == ""
    (view,) = [out.data for out in fit.outputs if out.output_type == "display_data"]
    assert "application/vnd.jupyter.widget-view+json" in view
    states = notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    (shown,) = [s["state"]["value"] for s in states.values() if "value" in s["state"]]
    assert "VoronoiSVC: 2,000 rows, 2 features" in shown
    assert "The fit has finished." in shown
    assert re.findall(r"<td[^>]*>([a-z ]+)</td>", shown)[-1] == "training cells"
    (error,) = re.findall(r"Mean validation error: <b>([\d.]+) %</b>", shown)
    assert 0 <= float(error) < 20
    colors = re.findall(r'<path [^>]*fill="(#\w+)">', shown)
    # The map has a region for each cell, and all have colors of errors.
    assert len(colors) == int(texts(count, "stdout")) > 1
    assert set(colors) <= set(PALETTE)


@pytest.mark.slow
def test_lines_tell_where_there_is_no_widget(run):
    notebook = run(WITHOUT, FIT)
    fit = notebook.cells[1]
    assert texts(fit, "stderr") == ""
    told = texts(fit, "stdout")
    assert "pip install daskls[notebooks]" in told
    assert "VoronoiSVC: 2,000 rows, 2 features" in told
    last = told.strip().splitlines()[-1]
    assert last.startswith("training cells: ")
    done, _, total = last.removeprefix("training cells: ").partition(",")[0].partition(" of ")
    assert done == total
    assert "mean validation error so far" in last
