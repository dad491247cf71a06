"""What a notebook shows of an estimator: parameters, and once it is fitted what came of it."""

import sys

import pytest

from daskls import VoronoiSVC
from daskls.datasets import make_checkerboard

X, Y = make_checkerboard(600)


@pytest.fixture(scope="module")
def model():
    return VoronoiSVC(cell_size=300, feature_scale=None, random_state=0).fit(X, Y)


def test_a_fitted_one_shows_rows_choice_error_seconds_and_a_picture(model):
    shown = model._repr_html_()
    for words in ("600 rows, 2 features", "2 with 600 rows kept", "kernel of all cells"):
        assert words in shown
    for words in ("baseline", "seconds of the fit", "data:image/png;base64,"):
        assert words in shown
    assert "600 rows, 2 features" in model._repr_mimebundle_()["text/html"]


def test_without_matplotlib_there_is_no_picture(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    shown = model._repr_html_()
    assert "600 rows, 2 features" in shown
    assert "<img" not in shown
