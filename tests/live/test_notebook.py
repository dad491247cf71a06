"""The live view in a notebook."""

import re

import nbformat
from nbclient import NotebookClient
from support import python_env

from daskls.live.view import PALETTE

FIT = """
import numpy as np, daskls
X = np.random.default_rng(0).random((2000, 2))
y = (X * 3).astype(int).sum(axis=1) % 2
model = daskls.VoronoiSVC(cell_size=100, random_state=0, verbose=1).fit(X, y)
"""


def texts(cell, name):
    return "".join(out["text"] for out in cell.outputs if out.get("name") == name)


def test_the_fit_is_shown_below_its_cell(monkeypatch):
    for name, value in python_env().items():
        monkeypatch.setenv(name, value)
    cells = [nbformat.v4.new_code_cell(own) for own in (FIT, "print(len(model.fit_report_))")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    fit, count = notebook.cells
    assert texts(fit, "stderr") == ""
    (shown,) = [out.data["text/html"] for out in fit.outputs if out.output_type == "display_data"]
    assert "VoronoiSVC: 2,000 rows, 2 features" in shown
    assert "The fit has finished." in shown
    assert re.findall(r"<td[^>]*>([a-z ]+)</td>", shown)[-1] == "training cells"
    (error,) = re.findall(r"Mean validation error: <b>([\d.]+) %</b>", shown)
    assert 0 <= float(error) < 20
    colors = re.findall(r'<path [^>]*fill="(#\w+)">', shown)
    # The map has a region for each cell, and all have colors of errors.
    assert len(colors) == int(texts(count, "stdout")) > 1
    assert set(colors) <= set(PALETTE)
