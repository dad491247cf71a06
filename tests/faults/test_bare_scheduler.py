"""A scheduler without daskls: one sentence that says how to mend it."""

import subprocess
import sys

import pytest
from distributed import Client
from support import checkers, python_env, small_svc

from daskls import ClusterError

pytestmark = pytest.mark.slow

# A process that cannot import daskls, and the scheduler that runs in it.
BARE = """
import asyncio, sys
sys.modules["daskls"] = None
from distributed import Scheduler

async def main():
    async with Scheduler(port=0, dashboard_address=":0") as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()

asyncio.run(main())
"""


@pytest.fixture
def bare_scheduler():
    """The address of a scheduler without daskls, and of a worker that has it."""
    quiet = {"stderr": subprocess.DEVNULL, "env": python_env()}
    scheduler = subprocess.Popen(
        [sys.executable, "-c", BARE], stdout=subprocess.PIPE, text=True, **quiet
    )
    started = [scheduler]
    try:
        address = scheduler.stdout.readline().strip()
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny"]
        started.append(subprocess.Popen([*worker, "--no-dashboard", "--nthreads", "1"], **quiet))
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()
        scheduler.stdout.close()


def test_a_scheduler_without_daskls_is_named(bare_scheduler):
    with Client(bare_scheduler, set_as_default=False) as client:
        client.wait_for_workers(1, timeout=60)
        with pytest.raises(ClusterError) as told:
            small_svc(client=client).fit(*checkers(300))
    message = str(told.value)
    assert message.startswith(f"The scheduler {bare_scheduler} cannot read the tasks")
    assert "daskls" in message.split("(")[1].split(")")[0]
    assert "Install daskls" in message
