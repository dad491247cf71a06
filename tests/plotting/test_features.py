"""The picture of features' importances, and displays of models in a scale of features."""

import numpy as np
import pytest
from small import CLASSIFIERS, PLACES, small
from support import checkers, few

from daskls import ParameterError
from daskls.plotting import FeatureDisplay

pytest.importorskip("matplotlib")

X, Y = checkers(600)
WIDE = np.c_[X, np.random.default_rng(0).random((600, 3))]


def test_bars_are_the_importances_from_the_largest_on():
    model = small("VoronoiSVC", feature_scale=[4.0, 2.0, 1.0, 0.0, 1.0]).fit(WIDE, Y)
    importances = model.feature_importances_
    assert importances.sum() == pytest.approx(1)
    assert importances[3] == 0
    assert importances[0] == pytest.approx(2 * importances[1], rel=0.1)
    display = FeatureDisplay.from_estimator(model, n_shown=2, feature_names="abcde").plot()
    assert display.names == ["a", "b"]
    assert display.n_left_out == 1
    assert display.rest == pytest.approx(importances[[2, 4]].sum())
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["a", "b", "all others"]
    widths = [bar.get_width() for bar in display.bars_]
    np.testing.assert_allclose(widths, [*importances[:2], display.rest])


@pytest.mark.parametrize("name", few(sorted(PLACES), 4))
def test_without_a_scale_permutation_is_named(name):
    model = small(name)
    if "feature_scale" in model.get_params():
        model.set_params(feature_scale=None)
    model.fit(X, Y if name in CLASSIFIERS else X[:, 0])
    assert not hasattr(model, "feature_importances_")
    for ask in (lambda: model.feature_importances_, lambda: FeatureDisplay.from_estimator(model)):
        with pytest.raises((AttributeError, ParameterError), match=r"permutation_importance\("):
            ask()
