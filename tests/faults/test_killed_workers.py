"""A worker that dies costs its current task: SIGKILL on real processes, in each stage."""

from collections import Counter

import pytest
from distributed import Client
from falks import assert_same_falk, small_falk
from landmarks import assert_same_landmarks, small_landmarks
from samplings import assert_same_sampling, small_local, small_near
from support import (
    Spies,
    assert_same_model,
    names_of_killed,
    plan_kill,
    read_log,
    small_svc,
    start_cluster,
)

from daskls.methods.neighborhoods import cover
from daskls.methods.sampling import radii as search_radii
from daskls.methods.sampling import search
from daskls.run import gather


@pytest.fixture(scope="module")
def cluster():
    with start_cluster(2, 1, "1GiB") as cluster:
        yield cluster


@pytest.fixture
def spied_client(cluster, tmp_path):
    with Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        client.register_plugin(Spies(tmp_path))
        yield client
        client.unregister_worker_plugin("spies")


# The stage, the call that dies, and the calls that count: for the sample its blocks, for the
# others what is left to do behind the markers.
KILLS = [("sample", "sample", 6), ("regroup", "rows written", 6), ("train", "cell", 7)]


@pytest.mark.parametrize(("stage", "work", "at"), KILLS)
def test_a_killed_worker_costs_one_task(stage, work, at, spied_client, data, undisturbed, tmp_path):
    plan_kill(tmp_path, work, at)
    model = small_svc(client=spied_client, store=tmp_path / "m").fit(*data)
    assert read_log(tmp_path, "killed") == [work]
    assert_same_model(undisturbed, model)
    runs = Counter(read_log(tmp_path, work))
    assert len(runs) == (model.n_cells_ if stage == "train" else 12)
    twice = {name: n for name, n in runs.items() if n > 1}
    assert set(twice.values()) == {2}, twice
    if stage == "sample":
        # A result that was done but not yet fetched dies with its worker.
        assert twice.keys() <= set(names_of_killed(tmp_path, work))
    else:
        assert len(twice) == 1, twice
    assert not list(tmp_path.glob("m/exchange-*"))
    assert not list(tmp_path.glob("m/**/.*"))


@pytest.mark.parametrize(
    ("work", "at"), [("leaves written", 2), ("search", 3), ("centers written", 4)]
)
def test_a_killed_worker_costs_one_task_of_neighborhoods(
    work, at, spied_client, data, tmp_path, monkeypatch
):
    monkeypatch.setattr(gather, "BUNDLE_NBYTES", 1)
    monkeypatch.setattr(cover, "MIN_SEARCHED", 16)
    reference = small_falk(store=tmp_path / "a").fit(*data)
    plan_kill(tmp_path, work, at)
    model = small_falk(client=spied_client, store=tmp_path / "m").fit(*data)
    assert read_log(tmp_path, "killed") == [work]
    assert_same_falk(reference, model)
    if work != "search":
        twice = [name for name, n in Counter(read_log(tmp_path, work)).items() if n > 1]
        assert len(twice) == 1, twice
    assert not list(tmp_path.glob("m/exchange-*"))
    assert not list(tmp_path.glob("m/**/.*"))


@pytest.mark.parametrize(
    ("make", "work", "at"),
    [
        (small_local, "large", 3),
        (small_local, "draws written", 9),
        (small_local, "sample written", 2),
        (small_near, "nearest written", 3),
        (small_near, "sample written", 2),
    ],
)
def test_a_killed_worker_costs_one_task_of_samples(
    make, work, at, spied_client, data, tmp_path, monkeypatch
):
    monkeypatch.setattr("daskls.estimators.base.SEARCH_CELL_ROWS", 100)
    monkeypatch.setattr(search, "N_TASKS", 8)
    monkeypatch.setattr(search_radii, "MIN_BALLS", 1)
    reference = make(store=tmp_path / "a").fit(*data)
    plan_kill(tmp_path, work, at)
    model = make(client=spied_client, store=tmp_path / "m").fit(*data)
    assert read_log(tmp_path, "killed") == [work]
    assert_same_sampling(reference, model)
    written = [c for kind in ("draws", "nearest", "sample") for c in calls_of(tmp_path, kind)]
    twice = [name for name, n in Counter(written).items() if n > 1]
    assert len(twice) == (work != "large"), twice
    assert sorted(p.name for p in (tmp_path / "m").iterdir()) == ["bundles", "index", "zarr.json"]
    assert not list(tmp_path.glob("m/**/.*"))


def calls_of(folder, kind):
    """Return the names of what was written, told apart from other kinds."""
    return [f"{kind} {name}" for name in read_log(folder, f"{kind} written")]


@pytest.mark.parametrize("at", [3, 20])
def test_a_killed_worker_costs_one_group_of_a_round(at, spied_client, data, tmp_path):
    params = {"C": [0.1, 10.0], "cv": 3}
    reference = small_landmarks(**params, store=tmp_path / "a").fit(*data)
    plan_kill(tmp_path, "round written", at)
    model = small_landmarks(**params, client=spied_client, store=tmp_path / "m").fit(*data)
    assert read_log(tmp_path, "killed") == ["round written"]
    assert_same_landmarks(reference, model)
    runs = Counter(read_log(tmp_path, "round written"))
    assert len(runs) > 20
    assert [n for n in runs.values() if n > 1] == [2]
