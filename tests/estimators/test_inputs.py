"""What fit, predict and score take: paths with ~, data sets, DataFrames; what they say no to."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr
from sklearn.metrics import accuracy_score
from support import assert_same_model, checkers, small_svc

import daskls
from daskls import DataError
from daskls.datasets import convert, write
from daskls.store.dataset import DatasetWriter, open_dataset

N = 300
X, Y = checkers(N)
LABELS = np.array(["left", "right"])[Y]


def write_dataset(path, y=Y, **options):
    with DatasetWriter(path, 2, "f8", chunk_rows=90, **options) as writer:
        writer.append(X, y)
    return path


def test_score_on_the_path_of_a_data_set(tmp_path):
    model = small_svc().fit(X, LABELS)
    wrong = LABELS.copy()
    wrong[:60] = np.where(wrong[:60] == "left", "right", "left")
    codes = (wrong == "right").astype("i4")
    path = write_dataset(tmp_path / "data.zarr", codes, classes=["left", "right"])
    weights = np.linspace(0, 1, N)
    assert model.score(path) == accuracy_score(wrong, model.predict(X))
    expected = accuracy_score(wrong, model.predict(X), sample_weight=weights)
    for kind in (weights, da.from_array(weights, chunks=100)):
        assert model.score(str(path), sample_weight=kind) == expected
    # A given y goes before the data set's own.
    assert model.score(path, LABELS) == accuracy_score(LABELS, model.predict(X))
    assert model.score(path, da.from_array(LABELS, chunks=70)) == model.score(X, LABELS)


def test_what_cannot_be_scored(tmp_path):
    model = small_svc().fit(X, Y)
    unlabeled = tmp_path / "unlabeled.zarr"
    with DatasetWriter(unlabeled, 2, "f8", with_y=False) as writer:
        writer.append(X)
    with pytest.raises(DataError, match=r"unlabeled\.zarr has no y; pass one"):
        model.score(unlabeled)
    with pytest.raises(DataError, match=r"y is None.*Pass y"):
        model.score(X)
    with pytest.raises(DataError, match=r"y holds 'left', but the model's classes are \[0, 1\]"):
        model.score(X, LABELS)
    path = write_dataset(tmp_path / "codes.zarr", Y + 1)
    attributes = zarr.open_group(path, mode="r+").attrs
    attributes["classes"] = [0, 1]
    with pytest.raises(DataError, match=r"class code 2, but the data set names 2 classes"):
        model.score(path)


TABLE = {
    "width": X[:, 0],
    "flag": X[:, 1] > 0.5,
    "color": np.array(["red", "blue"])[Y],
    "size": pd.Categorical(np.array(["S", "M"])[Y]),
    "day": pd.date_range("2020-01-01", periods=N),
    "mixed": [*[1.5] * 7, "seven", *[2] * (N - 8)],
}
FRAME = pd.DataFrame(TABLE)
KINDS = {"color": r"(str|object|'\w+' in row 0)", "size": "category", "day": r"datetime64\[\w+\]"}
KINDS |= {"mixed": "'seven' in row 7"}


@pytest.mark.always
@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("column", KINDS)
def test_columns_that_are_no_numbers_are_named(column):
    message = rf"not numeric: '{column}' \({KINDS[column]}\)\. The model was trained on numbers"
    model = small_svc().fit(FRAME[["width", "flag"]].to_numpy(), Y)
    with pytest.raises(DataError, match=message):
        model.predict(FRAME[["width", column]])


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return a home folder, and stand somewhere else."""
    (tmp_path / "home").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "elsewhere")
    yield tmp_path / "home"
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_home_folder_in_every_path(home):
    np.savetxt(home / "rows.csv", np.column_stack([X, Y]), delimiter=",")
    convert("~/rows.csv", "~/data.zarr", label=-1, dtype="f8")
    write("checkerboard", "~/board.zarr", 10)
    assert open_dataset("~/board.zarr").n_rows == 10
    zarr.save_array(home / "X", X)
    zarr.save_array(home / "y", Y)
    zarr.save_array(home / "w", np.ones(N))
    expected = small_svc().fit(X, Y)
    assert_same_model(small_svc(store="~/one").fit("~/X", "~/y"), expected)
    model = small_svc(store="~/two").fit("~/data.zarr", sample_weight="~/w")
    assert model.score("~/data.zarr") == expected.score(X, Y)
    assert model.score("~/X", "~/y", sample_weight="~/w") == expected.score(X, Y)
    model.save("~/three")
    assert_same_model(daskls.load("~/three"), home / "two")
    model.predict_to_zarr("~/X", "~/labels")
    np.testing.assert_array_equal(zarr.open_array(home / "labels")[:], expected.predict(X))
    assert {p.name for p in home.iterdir()} == {
        *("rows.csv", "data.zarr", "board.zarr", "X", "y", "w"),
        *("one", "two", "three", "labels"),
    }


def test_text_in_an_array_is_told_with_its_place():
    told = r"X holds text: '07.11.2020' in row 0, column 1\. Pass numbers, or a table.*DataFrame"
    for first in (1.5, "1"):
        with pytest.raises(DataError, match=told):
            small_svc().fit([[first, "07.11.2020"]] * N, Y)
    with pytest.raises(DataError, match=told):
        small_svc().fit(X, Y).predict(np.array([[1, "07.11.2020"]] * 3, object))


def test_fractions_as_labels_name_a_regressor():
    for labels in (X[:, 0], da.from_array(X[:, 0], chunks=70)):
        with pytest.raises(DataError, match=r"y holds 0\.\d+; a classifier .* VoronoiSVR"):
            small_svc().fit(X if isinstance(labels, np.ndarray) else da.from_array(X), labels)
