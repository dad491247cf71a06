"""Which column holds the labels, what they are, and marks of missing values in text files."""

import numpy as np
import pandas as pd
import pytest
from support import HERE, as_options
from support import run_cli as run

from daskls import DataError, TableEncoder, VoronoiSVC

RNG = np.random.default_rng(0)
N = 240
ROWS = pd.DataFrame({"age": RNG.integers(18, 80, N), "member": RNG.random(N) > 0.5})
ROWS["income"] = RNG.random(N) * 10
ROWS["kind"] = np.where(ROWS.member ^ (ROWS.income > 5), "buys", "looks")
PARAMS = {"cell_size": 300, "C": 1.0, "gamma": 1.0, "random_state": 0}
SMALL = as_options(**PARAMS)


def fitted(*given):
    return VoronoiSVC(**PARAMS).fit(*given)


def write(frame, path):
    frame.to_csv(path, index=False)
    return path


# Marks among numbers of a text file, by the number of other values and the number of rows.
MARKS = {
    "of many": (["?"], 20 + np.arange(400) % 200, r"holds .*where '\?' stands for a missing"),
    "several": (
        ["?", "-"],
        np.arange(400) % 30,
        r"holds .* '-', '\?'; where '-' stands for a missing",
    ),
}


def test_marks_of_missing_values_among_numbers_are_told(tmp_path):
    for what, (marks, values, words) in MARKS.items():
        # Above all others they would be a line of units.
        ages = [*map(str, values), *marks]
        frame = pd.DataFrame({"age": ages, "kind": np.arange(len(ages)) % 2})
        with pytest.raises(DataError, match=f"'age' {words}"):
            TableEncoder("kind").fit(write(frame, tmp_path / "rows.csv"))
        # A frame tells numbers from text, so that text is meant as categories.
        (age,) = TableEncoder("kind").fit(frame).table_.columns
        is_many = what == "of many"
        assert age.kind == "statistics" if is_many else len(age.categories) == len({*ages})


# Labels


# On the command line a warning is a line, not an error as elsewhere in the tests.
@pytest.mark.filterwarnings("default:No label column")
def test_the_label_is_taken_by_its_usual_names_and_said(tmp_path):
    for name in ("y", "label", "target", "class"):
        frame = ROWS[["income", "member", "kind"]].rename(columns={"kind": name})
        with pytest.warns(UserWarning, match=f"No label column was named; it is '{name}'"):
            model = fitted(frame)
        assert model.classes_.tolist() == ["buys", "looks"]
        assert model.table_.label == name
    result = run("fit", write(frame, tmp_path / "a.csv"), tmp_path / "a", *SMALL, *HERE)
    assert "No label column was named; it is 'class'" in result.stderr


def test_a_label_that_is_not_named_is_an_error_that_lists_the_columns(tmp_path):
    path = write(ROWS, tmp_path / "train.csv")
    # No cluster is started for it: this address leads to none.
    nowhere = ("--scheduler", "tcp://127.0.0.1:1", "--quiet")
    told = run("fit", path, tmp_path / "m", *nowhere, code=1).stderr
    assert "age, member, income, kind" in told
    assert "--label NAME" in told
    with pytest.raises(DataError, match=r"several usual names \(y, label\)"):
        fitted(ROWS.assign(y=1, label=2))
    with pytest.raises(DataError, match=r"no column 'sort'; its 4 columns are: age"):
        fitted(path, "sort")
