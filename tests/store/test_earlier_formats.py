"""A model of an earlier format opens, answers as before, and goes on where it was left."""

import json
import math
import shutil

import numpy as np
import pytest
import zarr
from support import edit_attributes, model_bits, small_svc

import daskls
from daskls.errors import DamageError, StoreError
from daskls.records import CellReport
from daskls.store.caches import drop_caches
from daskls.store.groups import open_group, write_group
from daskls.store.layout import MODEL_FORMAT
from daskls.store.models import bundle_key, finished_bundles

RNG = np.random.default_rng(5)
# Enough for several bundles.
X = RNG.normal(size=(6000, 3)).astype("f4")
PARAMS = {"cell_size": 700, "tol": 0.1}
Y = (X[:, 0] * X[:, 1] > 0).astype(int)


def as_format_2(store):
    """Write a model's arrays as daskls did before: each by itself, chunks in folders of folders."""
    for folder in (store / "bundles").iterdir():
        place = folder.relative_to(store).as_posix()
        group = open_group(store, place)
        assert "packed" in [path.name for path in folder.iterdir()]
        arrays = {name: group.read(name) for name in group.names}
        shutil.rmtree(folder)
        write_group(store, place, arrays, group.attrs)
    for file in store.rglob("zarr.json"):
        content = json.loads(file.read_text())
        if content["node_type"] == "group":
            place = file.parent.relative_to(store).as_posix()
            edit_attributes(store, drop_separators, "" if place == "." else place)
            continue
        content["chunk_key_encoding"]["configuration"]["separator"] = "/"
        file.write_text(json.dumps(content, indent=2))
        for chunk in list(file.parent.glob("c.*")):
            target = file.parent.joinpath(*chunk.name.split("."))
            target.parent.mkdir(parents=True, exist_ok=True)
            chunk.rename(target)
    edit_attributes(store, lambda a: a.update(daskls_format=2))
    assert not list(store.rglob("c.*"))
    assert list(store.rglob("c/0/0"))


def drop_separators(attributes):
    for spec in attributes.get("arrays", {}).values():
        del spec["separator"]


@pytest.fixture
def stores(tmp_path):
    """A model as it is written today, and the same one as it was."""
    small_svc(store=tmp_path / "new", **PARAMS).fit(X, Y)
    shutil.copytree(tmp_path / "new", tmp_path / "old")
    as_format_2(tmp_path / "old")
    return tmp_path / "new", tmp_path / "old"


def test_it_answers_as_before(stores):
    new, old = stores
    assert model_bits(old) == model_bits(new)
    answers = [daskls.load(store).decision_function(X) for store in stores]
    np.testing.assert_array_equal(*answers)


def test_any_zarr_reads_both(stores):
    new, old = ({place: arrays_of(s / place) for place in places_of(s)} for s in stores)
    assert new.keys() == old.keys()
    assert len([place for place in new if place.startswith("bundles/")]) >= 2
    for place, arrays in new.items():
        assert arrays.keys() == old[place].keys()
        for name, values in arrays.items():
            assert values.dtype == old[place][name].dtype
            np.testing.assert_array_equal(values, old[place][name])


def places_of(store):
    files = sorted(store.rglob("zarr.json"))
    return [
        file.parent.relative_to(store).as_posix()
        for file in files
        if json.loads(file.read_text())["node_type"] == "group"
    ]


def arrays_of(folder):
    """Return what Zarr finds in a group; packed arrays are taken out of their bytes."""
    group = zarr.open_group(folder, mode="r")
    described = json.loads((folder / "zarr.json").read_text())["attributes"].get("arrays", {})
    found = {name: zarr.open_array(folder / name, mode="r")[...] for name in described}
    for name, place in group.attrs.get("packed", {}).items():
        dtype = np.dtype(place["dtype"])
        stop = place["at"] + dtype.itemsize * math.prod(place["shape"])
        own = found["packed"][place["at"] : stop].tobytes()
        found[name] = np.frombuffer(own, dtype).reshape(place["shape"])
    found.pop("packed", None)
    return found


def test_its_damage_is_noticed(stores):
    _, old = stores
    chunk = sorted(old.glob("bundles/*/coef/c/0"))[0]
    chunk.write_bytes(chunk.read_bytes()[::-1])
    place = chunk.parents[2].relative_to(old).as_posix()
    with pytest.raises(DamageError, match=r"coef/c/0 is damaged"):
        open_group(old, place).read("coef")


def test_a_fit_goes_on_with_it_and_says_what_the_store_is_now(stores):
    new, old = stores
    expected = model_bits(new)
    first, last = finished_bundles(old)[0]
    shutil.rmtree(old / "bundles" / f"{first:06d}-{last:06d}")
    kept = {file: file.stat().st_mtime_ns for file in (old / "bundles").rglob("c/*")}
    small_svc(store=old, **PARAMS).fit(X, Y)
    assert model_bits(old) == expected
    assert kept
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    # A daskls that knows the earlier format alone would miss chunks, and must be told why.
    assert zarr.open_group(old, mode="r").attrs["daskls_format"] == MODEL_FORMAT


def test_a_damaged_root_of_before_is_mended(stores):
    new, old = stores
    expected = model_bits(new)
    (old / "zarr.json").write_bytes(b"{")
    small_svc(store=old, **PARAMS).fit(X, Y)
    assert model_bits(old) == expected


def test_an_unfinished_fit_of_before_is_refused_and_left_as_it_is(stores):
    _, old = stores
    edit_attributes(old, lambda a: a.update(complete=False))
    shutil.rmtree(old / "index")
    kept = {file: file.read_bytes() for file in old.rglob("*") if file.is_file()}
    with pytest.raises(StoreError, match=r"unfinished fit of format 2.* of format 4\. Finish it"):
        small_svc(store=old, **PARAMS).fit(X, Y)
    assert {file: file.read_bytes() for file in old.rglob("*") if file.is_file()} == kept


def test_answers_do_not_read_the_report(stores):
    # The table of cells is for people: what it says of kernels and counts decides no answer.
    new, _ = stores
    expected = daskls.load(new).decision_function(X)
    changed = {"n_classes": 7, "n_support": 1, "gamma": 0.125, "C": None, "n_rows": 1}
    columns = CellReport.dtype().names

    def rewrite_reports(attributes):
        for row in attributes["report"]:
            for name, value in changed.items():
                row[columns.index(name)] = value

    for first, last in finished_bundles(new):
        edit_attributes(new, rewrite_reports, bundle_key(first, last))
    drop_caches()
    model = daskls.load(new)
    np.testing.assert_array_equal(model.decision_function(X), expected)
    assert (model.fit_report_.gamma == 0.125).all()


def test_a_bundle_of_before_has_its_kernels_in_its_report(stores):
    new, _ = stores
    expected = daskls.load(new).decision_function(X)
    for first, last in finished_bundles(new):
        place = bundle_key(first, last)
        group = open_group(new, place)
        arrays = {n: group.read(n) for n in group.names if n not in ("gamma", "n_kept")}
        write_group(new, place, arrays, group.attrs, separate=("rows", "coef"), replace=True)
    drop_caches()
    np.testing.assert_array_equal(daskls.load(new).decision_function(X), expected)
