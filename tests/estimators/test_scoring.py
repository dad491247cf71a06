"""What cells choose by: estimators, stores, the command line."""

import numpy as np
import pytest
from support import run_cli

from daskls import ParameterError, RandomChunkSVC, StoreError, VoronoiSVC, load
from daskls.datasets import convert

PAPER = {"loss": "hinge", "kernel": "rbf", "feature_scale": None, "random_state": 0, "cv": 3}


def rare(n, seed):
    """Return rows of which an eighth are positive, nowhere likelier than not."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2)).astype(np.float32)
    return X, (rng.random(n) < np.where(X[:, 0] > 0.7, 0.4, 0.01)).astype(int)


X, Y = rare(600, 0)


def product(model, X, y):
    predicted = model.predict(X)
    return np.prod([(predicted[y == c] == c).mean() for c in (0, 1)])


@pytest.mark.parametrize("kind", [VoronoiSVC, RandomChunkSVC])
def test_cells_that_choose_by_recalls_find_the_rare_class(kind):
    new, labels = rare(2000, 1)
    size = {"cell_size" if kind is VoronoiSVC else "chunk_size": 300}
    plain = kind(**PAPER, **size).fit(X, Y)
    scored = kind(scoring="tpr_x_tnr", **PAPER, **size).fit(X, Y)
    assert product(scored, new, labels) > product(plain, new, labels) + 0.05
    assert (plain.fit_report_.validation_error < 0.35).all()
    assert (scored.fit_report_.validation_error[scored.fit_report_.n_classes > 1] > 0.35).all()


def test_a_cell_of_one_class_has_nothing_to_choose():
    far = np.r_[X, X + 100]
    labels = np.r_[Y, np.zeros(len(X), int)]
    model = VoronoiSVC(300, scoring="tpr_x_tnr", **PAPER).fit(far, labels)
    alone = model.fit_report_[model.fit_report_.n_classes == 1]
    assert len(alone) > 0
    assert (alone.n_trained == 0).all()
    assert (model.predict(X + 100) == 0).all()


def test_a_model_keeps_its_scoring(tmp_path):
    VoronoiSVC(300, scoring="tpr_x_tnr", store=tmp_path / "model", **PAPER).fit(X, Y)
    assert load(tmp_path / "model").get_params()["scoring"] == "tpr_x_tnr"
    # The usual one leaves stores as they were.
    plain = VoronoiSVC(300, store=tmp_path / "plain", **PAPER).fit(X, Y)
    assert "scoring" not in plain._reader.meta["spec"]
    with pytest.raises(StoreError, match="scoring was None, is 'tpr_x_tnr'"):
        plain.set_params(scoring="tpr_x_tnr").fit(X, Y)


def test_what_is_no_scoring_or_has_no_effect_is_refused():
    with pytest.raises(ValueError, match=r"'scoring' parameter .*'tpr_x_tnr'"):
        VoronoiSVC(scoring="roc_auc", **PAPER).fit(X, Y)
    with pytest.raises(ParameterError, match=r"scoring='tpr_x_tnr' has no effect with loss="):
        VoronoiSVC(scoring="tpr_x_tnr").fit(X, Y)


def test_the_command_line_takes_it(tmp_path):
    np.savetxt(tmp_path / "rows.csv", np.column_stack([X, Y]), delimiter=",")
    convert(tmp_path / "rows.csv", tmp_path / "rows.zarr", label=-1)
    fit = ["fit", tmp_path / "rows.zarr", tmp_path / "model", "--loss", "hinge", "--kernel", "rbf"]
    run_cli(*fit, "--feature-scale", "none", "--cv", "2", "--scoring", "tpr_x_tnr")
    assert load(tmp_path / "model").get_params()["scoring"] == "tpr_x_tnr"
