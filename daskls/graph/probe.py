"""Whether workers see what the client wrote."""

import uuid
from pathlib import Path
from typing import Any

from daskls.errors import StoreError
from daskls.graph.client import current_client

__all__ = ["probe_store"]


def read_probe(path: str) -> str | None:
    """Return what the probe file says as this worker sees it, or None."""
    probe = Path(path)
    return probe.read_text() if probe.exists() else None


def probe_store(store: Path, client: Any = None) -> None:
    """Check that every worker reads what the client writes in the store.

    Raises
    ------
    StoreError : when a worker does not see the store
    """
    store.mkdir(parents=True, exist_ok=True)
    client = current_client(client)
    if client is None:
        return
    probe = store / f".probe-{uuid.uuid4().hex}"
    probe.write_text(probe.name)
    try:
        blind = [w for w, text in client.run(read_probe, str(probe)).items() if text != probe.name]
    finally:
        probe.unlink()
    if blind:
        raise StoreError(
            f"{len(blind)} worker(s), {blind[0]} first, cannot read {store}: workers and client "
            "share no such path. Set store= (or Dask's temporary-directory) to a folder that all "
            "of them share."
        )
