"""A worker that dies costs its current task: SIGKILL on real processes, in each stage."""

from collections import Counter

import pytest
from distributed import Client
from support import (
    Spies,
    assert_same_model,
    names_of_killed,
    plan_kill,
    read_log,
    small_svc,
    start_cluster,
)


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
