"""Plans that hold on a cluster: workers are asked what they hold, and too small ones refused."""

import os
import shutil

import pytest
from distributed import Client
from samplings import small_local
from support import assert_same_model, checkers, memory_nbytes, small_svc, start_cluster

from daskls import MemoryPlanError, StoreError, VoronoiSVC
from daskls.run.resources import find_resources

pytestmark = pytest.mark.slow

MIB = 1 << 20
X, Y = checkers(300)


@pytest.fixture(autouse=True)
def many_small_tasks():
    """Have blocks and bundles as they are, other than the tests beside this file."""


def hold(nbytes, dask_worker=None):
    dask_worker.held = bytearray(os.urandom(MIB)) * (nbytes // MIB)


def test_workers_are_asked_what_they_hold():
    with start_cluster(2, 1, "1GiB") as cluster, Client(cluster, set_as_default=False) as client:
        fresh = find_resources(client)
        assert fresh.n_slots == 2
        # A fresh worker will hold more than it does.
        assert fresh.task_nbytes <= 0.8 * 1024 * MIB - 200 * MIB
        assert fresh.held == ""
        one = next(iter(client.scheduler_info()["workers"]))
        client.run(hold, 400 * MIB, workers=[one])
        fuller = find_resources(client)
        rss = client.run(memory_nbytes, "VmRSS", workers=[one])[one]
        assert abs(0.8 * 1024 * MIB - rss - fuller.task_nbytes) < 30 * MIB
        assert one in fuller.held
        with pytest.raises(MemoryPlanError) as caught:
            VoronoiSVC(cell_size=20_000, client=client).fit(*checkers(20_000))
        held = f"The worker {one} holds", "of 1024 MiB already: client.restart() gives back"
        assert all(part in str(caught.value) for part in ("The largest cell group", *held))
        client.restart()
        assert find_resources(client).held == ""


def test_workers_too_small_to_begin_are_refused():
    with (
        start_cluster(1, 1, "240MiB") as cluster,
        Client(cluster, set_as_default=False) as client,
        pytest.raises(MemoryPlanError, match=r"tcp://\S+ has a memory limit of 240 MiB.*512 MiB"),
    ):
        small_svc(client=client).fit(X, Y)


@pytest.mark.slow
def test_fits_of_many_methods_leave_workers_at_work():
    # Two workers of 512 MiB: each fit ends, or is refused before it starts.
    with start_cluster(2, 1, "512MiB") as cluster, Client(cluster, set_as_default=False) as client:
        for seed in range(4):
            for make in (small_svc, small_local):
                try:
                    make(client=client, random_state=seed).fit(*checkers(1200))
                except MemoryPlanError as error:
                    assert "client.restart()" in str(error)  # noqa: PT017
        states = client.scheduler_info()["workers"].values()
        assert {worker["status"] for worker in states} == {"running"}
        client.restart()
        model = small_svc(client=client).fit(X, Y)
    assert_same_model(small_svc().fit(X, Y), model)


def test_a_disk_without_room_for_the_exchange_is_refused_first(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=20_000))
    # 300 rows of 2 x 8 + 20 bytes are 10,800, twice is too much.
    small_svc(store=tmp_path / "fits").fit(X, Y)
    message = r"Regrouping 300 rows writes .*2 x 36 bytes a row.*free some space"
    with pytest.raises(StoreError, match=f"(?i){message}"):
        small_svc(n_partitions=2, store=tmp_path / "m").fit(X, Y)
    assert not list((tmp_path / "m").glob("exchange-*/block*"))
    with pytest.raises(StoreError, match=f"(?i){message}"):
        small_local(store=tmp_path / "n").fit(X, Y)
