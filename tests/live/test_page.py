"""The page /daskls: what it shows in the middle of a fit, by its websocket; and what it needs."""

import os
import re
import threading
import time
from contextlib import contextmanager

import dask
import dask.array as da
import pytest
from bokeh.client import pull_session
from bokeh.models import Div
from distributed import Client, LocalCluster
from support import assert_same_model, checkers, slowly, small_svc, start_cluster

from daskls.estimators import view
from daskls.live.dashboard import announce, plugin_of
from daskls.live.record import TOPIC, mean_error
from daskls.live.view import PALETTE

X, Y = checkers(600, noise=0.2)


@pytest.fixture(scope="module")
def cluster():
    # Blocks of two fits wait in their threads, and work goes on in others.
    with start_cluster(2, 4, "1GiB") as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        yield client


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(view, "_shown", set())


def wait_for_go(block, folder):
    """Return a block; when one was read before, only once somebody says so."""
    first = os.path.join(folder, f"read-{block.sum():.6f}")
    if os.path.exists(first):
        wait_until(lambda: os.path.exists(os.path.join(folder, "go")))
    open(first, "w").close()
    return block


def wait_until(true):
    deadline = time.monotonic() + 60
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError("what was waited for did not come")
        time.sleep(0.05)


@contextmanager
def fitting(client, folder):
    """Fit in a thread, held in the middle of stage 2 until the block ends; yield a list for it."""
    folder.mkdir()
    rows = da.from_array(X, chunks=(200, 2)).map_blocks(wait_for_go, str(folder), meta=X[:0])
    # Three candidates of C, so that there is an error to measure.
    done, model = [], small_svc(C=[1.0, 10.0, 100.0], client=client)

    def fit():
        done.append(model.fit(rows, da.from_array(Y, chunks=200)))

    thread = threading.Thread(target=fit)
    thread.start()
    try:
        yield done
    finally:
        (folder / "go").touch()
        thread.join()


def told(cluster):
    """Return the text that the page sends to one who opens it, and the colors of its map."""
    port = cluster.scheduler.http_server.port
    session = pull_session(url=f"http://127.0.0.1:{port}/daskls")
    try:
        text = " ".join(div.text for div in session.document.select({"type": Div}))
        return text, re.findall(r'<path [^>]*fill="(#\w+)">', text)
    finally:
        session.close()


def records(cluster):
    return plugin_of(cluster.scheduler).records


def test_the_page_shows_a_fit_in_its_middle_and_at_its_end(cluster, client, tmp_path):
    plugins = set(cluster.scheduler.plugins)
    with fitting(client, tmp_path / "rows") as done:
        wait_until(lambda: records(cluster) and records(cluster)[0].ended is None)
        wait_until(lambda: records(cluster)[0].map is not None)
        assert set(cluster.scheduler.plugins) - plugins == {"daskls"}
        texts, colors = told(cluster)
        assert "VoronoiSVC: 600 rows, 2 features" in texts
        assert "regrouping blocks" in texts
        assert "training cells" not in texts
        assert "scan_block" in texts
        assert texts.index("scan_block") < texts.index("sample_block")
        assert len(colors) == len(records(cluster)[0].map.polygons) > 1
        assert set(colors) == {"#ffffff"}
    assert set(cluster.scheduler.plugins) == plugins
    (model,) = done
    (record,) = records(cluster)
    assert record.ended == "finished"
    assert record.n_cells == len(model.fit_report_)
    assert record.error == pytest.approx(mean_error(model.fit_report_))
    assert all(cells for cells, _ in zip(*record.regions(), strict=True))
    texts, colors = told(cluster)
    assert "The fit has finished" in texts
    assert f"Mean validation error: <b>{100 * record.error:.2f} %</b>" in texts
    assert set(colors) <= set(PALETTE)


@pytest.mark.slow
def test_a_client_that_is_gone_ends_its_fits(cluster):
    with Client(cluster) as gone:
        gone.run_on_scheduler(announce, "one", gone.id, "VoronoiSVC", "classes", None, [])
        assert "daskls" in cluster.scheduler.plugins
    wait_until(lambda: "daskls" not in cluster.scheduler.plugins)
    assert records(cluster)[0].ended == "stopped"


@pytest.mark.slow
def test_the_model_is_the_same_without_it(cluster, client, tmp_path):
    with fitting(client, tmp_path / "a") as shown:
        wait_until(lambda: records(cluster) and records(cluster)[0].ended is None)
    n_events = len(cluster.scheduler.get_events(TOPIC))
    with dask.config.set({"daskls.live": False}), fitting(client, tmp_path / "b") as hidden:
        wait_until(lambda: len(list((tmp_path / "b").iterdir())) == 3)
        assert "daskls" not in cluster.scheduler.plugins
    stages = [e for _, e in cluster.scheduler.get_events(TOPIC)[n_events:] if "stages" in e]
    assert stages == []
    assert_same_model(shown[0], hidden[0])


@pytest.mark.slow
def test_without_a_page_the_fit_runs_and_says_so_once(capfd, caplog):
    expected, why = small_svc().fit(X, Y), "the scheduler has no dashboard"
    # So long to read that the page would come.
    rows = da.from_array(X, chunks=(300, 2)).map_blocks(slowly, meta=X[:0])
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as bare, Client(bare) as client:
        with caplog.at_level("INFO", "daskls"):
            small_svc(client=client).fit(rows, Y)
        # Who does not ask finds it in the log.
        assert capfd.readouterr() == ("", "")
        assert [record.message for record in caplog.records if why in record.message]
        view._shown.clear()
        for _ in range(2):
            model = small_svc(client=client, verbose=1).fit(rows, Y)
    assert_same_model(model, expected)
    (line,) = [line for line in capfd.readouterr().err.splitlines() if "Live view" in line]
    assert why in line
    assert line.endswith("The fit continues without it.")
