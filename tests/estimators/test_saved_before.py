"""A model of every method that an earlier state saved opens and answers as it did then."""

import numpy as np
import pytest
from fixtures.models import MODELS, packed_cases, read_answers, unpack

import daskls
from daskls.registry import METHODS

CASES = packed_cases()
ESTIMATORS = [entry.class_name for entry in METHODS]


@pytest.mark.parametrize("case", CASES)
def test_it_opens_and_answers_as_it_did(case, tmp_path):
    then = read_answers(case)
    model = daskls.load(unpack(case, tmp_path / "model.zarr"))
    assert type(model).__name__ == then["estimator"]
    assert model.classes_.tolist() == then["classes"]
    queries = np.array(then["queries"])
    assert model.predict(queries).tolist() == then["labels"]
    # Another machine may sum in another order, no more.
    decision = model.decision_function(queries)
    np.testing.assert_allclose(decision, then["decision"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_it_is_whole_and_says_what_it_was_fitted_with(case, tmp_path):
    folder = unpack(case, tmp_path / "model.zarr")
    model = daskls.load(folder)
    params = MODELS[case][2]
    assert {name: model.get_params()[name] for name in params} == params
    assert len(model.fit_report_) == model.n_cells_
    model.save(tmp_path / "copy.zarr")
    assert files_of(tmp_path / "copy.zarr") == files_of(folder)


def test_every_method_has_two_classes_and_more():
    names = [entry.class_name for entry in METHODS]
    found = {
        name: {len(read_answers(c)["classes"]) for c in CASES if of(c) == name} for name in names
    }
    assert found == {name: {2, 3} for name in names}


def of(case):
    return read_answers(case)["estimator"]


def files_of(folder):
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
