"""The picture of a selection shows the errors that the estimator noted."""

import numpy as np
import pytest
from falks import small_falk
from support import checkers

from daskls.plotting import SelectionDisplay


@pytest.mark.parametrize(
    ("params", "widths"),
    [
        ({"gamma": [1.0, 20.0]}, ["1", "20"]),
        ({"gamma": None, "percentiles": [10, 50, 90]}, ["90 %", "50 %", "10 %"]),
        ({"gamma": None, "kernel": "linear"}, ["1"]),
    ],
)
def test_errors_and_the_chosen_one(params, widths):
    X, y = checkers(400)
    model = small_falk([30, 60], selection="local", C=[0.1, 10.0], **params).fit(X, y)
    display = SelectionDisplay.from_estimator(model).plot()
    assert (display.width_labels, display.cost_labels) == (widths, ["0.1", "10"])
    assert display.n_neighbors == [30, 60]
    errors = np.array(model.selected_["errors"])
    for image, own in zip(display.images_, errors, strict=True):
        np.testing.assert_allclose(image.get_array(), 100 * own)
    k, g, c = display.chosen
    assert errors[k, g, c] == errors.min()
    assert display.frame_ in display.axes_[k].patches
    assert display.frame_.get_xy() == (c - 0.5, g - 0.5)
