"""
Stop a fit, and go on
=====================

Stop a fit in the middle and fit again: only the cells that are not finished are trained.

``python examples/resume.py``
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from daskls import VoronoiSVC, load
from daskls.datasets import write

PARAMS = {"cell_size": 250, "loss": "hinge", "feature_scale": None, "cv": 3, "random_state": 0}


def main() -> None:
    """Fit in another process, stop it, fit again with the same store."""
    with tempfile.TemporaryDirectory() as folder:
        data, store = Path(folder, "data.zarr"), Path(folder, "model.zarr")
        write("two_spirals", data, 12_000)
        fit = [sys.executable, __file__, str(data), str(store)]
        process = subprocess.Popen(fit, env=os.environ)
        while not finished(store) and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        kept = finished(store)
        print(f"stopped: {len(kept)} bundles of cells are finished")
        # The same data, parameters and store: what is finished stays as it is.
        VoronoiSVC(**PARAMS, store=store).fit(data)
        again = {name for name, changed in finished(store).items() if changed == kept.get(name)}
        model = load(store)
        print(f"resumed: {model.n_cells_} cells, {len(again)} bundles kept as they were")


def finished(store: Path) -> dict[str, int]:
    """Return the finished bundles and when they were written."""
    folder = store / "bundles"
    names = [p for p in folder.iterdir() if p.name[0] != "."] if folder.exists() else []
    return {p.name: p.stat().st_mtime_ns for p in names}


if __name__ == "__main__":
    if len(sys.argv) == 3:
        VoronoiSVC(**PARAMS, store=sys.argv[2]).fit(sys.argv[1])
    else:
        main()
