"""One library in a process of its own: it trains, predicts, and says what it cost.

    python -m benchmarks.peers NAME FOLDER '{"parameter": "value"}'

FOLDER holds X.npy, y.npy, X_test.npy and y_test.npy, labels -1 and 1. The last line printed is
JSON. `apart.run_peer` gives each process one thread; daskls has a cluster of two workers of one
thread and 2 GiB, all of which are counted. Seconds are CPU seconds unless they are named wall.

A peer needs nothing but numpy and itself: daskls need not be installed beside it.
"""

import gc
import json
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.peers import PEERS, Data

MIB = 1 << 20


@contextmanager
def measured_alone() -> Iterator[SimpleNamespace]:
    """Yield the cost of a process without children, filled in at the end."""
    cost = SimpleNamespace(baseline_nbytes=peak_nbytes())
    wall, cpu = time.perf_counter(), time.process_time()
    yield cost
    cost.wall_s, cost.cpu_s = time.perf_counter() - wall, time.process_time() - cpu
    cost.peak_nbytes = peak_nbytes()


def peak_nbytes() -> int:
    """Return the largest resident size of this program so far."""
    status = Path("/proc/self/status")
    if status.exists():
        # getrusage would count the process that this one was forked from.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    # macOS counts in bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def recalls(predicted: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Return the recall of each of two classes, the lesser label first; nothing of more."""
    classes = np.unique(y)
    if len(classes) != 2:
        return {}
    return {"recalls": [float(np.mean(predicted[y == c] == c)) for c in classes]}


def run_here(name: str, folder: Path, params: dict[str, Any]) -> dict[str, Any]:
    """Train and predict in this process; return what it cost and how often it was wrong."""
    data = Data.read(folder)
    model = PEERS[name](**params)
    measured = getattr(model, "measured", measured_alone)
    if hasattr(model, "prepare"):
        model.prepare(data)
        data = data._replace(X=np.empty(0), X_test=np.empty(0))
        gc.collect()
    with measured() as train:
        model.fit(data.X, data.y)
    with measured() as predict:
        predicted = model.predict(data.X_test)
    record = {
        "train_cpu_s": train.cpu_s,
        "train_wall_s": train.wall_s,
        "predict_cpu_s": predict.cpu_s,
        "predict_wall_s": predict.wall_s,
        "before_mib": train.baseline_nbytes / MIB,
        "peak_mib": max(train.peak_nbytes, predict.peak_nbytes) / MIB,
        "error": float(np.mean(np.asarray(predicted).ravel() != data.y_test)),
        **recalls(np.asarray(predicted).ravel(), data.y_test),
        "n_train": len(data.y),
        "n_test": len(data.y_test),
        "versions": {package: version(package) for package in model.packages},
        **(model.facts() if hasattr(model, "facts") else {}),
    }
    if hasattr(model, "close"):
        model.close()
    return record


if __name__ == "__main__":
    print(json.dumps(run_here(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]))))
