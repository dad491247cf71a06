"""Every library behind one face: a process of its own that trains, predicts, and says what it cost.

    python benchmarks/peers.py NAME FOLDER '{"parameter": "value"}'

FOLDER holds X.npy, y.npy, X_test.npy and y_test.npy, labels -1 and 1. The last line printed is
JSON. Each process has one thread; daskls has a cluster of two workers of one thread and 2 GiB, all
of which are counted. Seconds are CPU seconds, user and system, unless they are named wall.

A peer needs nothing but numpy and itself: daskls need not be installed beside it.
"""

import gc
import json
import os
import resource
import subprocess
import sys
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from journal import TOO_SLOW

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
MIB = 1 << 20


class Data(NamedTuple):
    """Rows to train on and to test on."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in self._asdict().items():
            np.save(folder / f"{name}.npy", array)


def load(folder: Path) -> Data:
    return Data(*(np.load(folder / f"{name}.npy") for name in Data._fields))


# What a process costs


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


@contextmanager
def measured_alone() -> Iterator[SimpleNamespace]:
    """Yield the cost of a process without children, filled in at the end."""
    cost = SimpleNamespace(baseline_nbytes=peak_nbytes())
    wall, cpu = time.perf_counter(), cpu_seconds()
    yield cost
    cost.wall_s, cost.cpu_s = time.perf_counter() - wall, cpu_seconds() - cpu
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


# The libraries. Each has fit and predict, and imports what it needs when it is made, unmeasured.


class Daskls:
    """VoronoiSVC from Zarr to labels, on a local cluster."""

    packages = ()

    def __init__(self, **params: Any) -> None:
        from distributed import Client, LocalCluster

        from daskls import VoronoiSVC

        self.folder = tempfile.TemporaryDirectory()
        self.cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="2GiB", dashboard_address=":0"
        )
        self.client = Client(self.cluster)
        self.model = VoronoiSVC(**{"random_state": 0, **params})
        # Kernels are compiled once a machine, and a worker imports what it needs once.
        X = np.random.default_rng(0).random((2000, 3))
        warm = VoronoiSVC(**{**params, "cell_size": 100})
        warm.fit(X, X[:, 0] > 0.5).predict(X)

    def measured(self) -> AbstractContextManager[Any]:
        from measure import measured

        return measured()

    def prepare(self, data: Data) -> None:
        """Write the sets to Zarr, as they would be; the arrays are of no more use."""
        from real_sets import write_set

        self.path = Path(self.folder.name)
        write_set(self.path / "train.zarr", data.X, data.y)
        write_set(self.path / "test.zarr", data.X_test, data.y_test)

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self.model.set_params(store=self.path / "model.zarr").fit(self.path / "train.zarr")

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model.predict(self.path / "test.zarr" / "X").compute()

    def facts(self) -> dict[str, Any]:
        report = self.model.fit_report_
        return {
            "cells": len(report),
            "sum_m2": float((report.n_rows.astype(float) ** 2).sum()),
            "at_limit": int(report.n_at_limit.sum()),
        }

    def close(self) -> None:
        self.client.close()
        self.cluster.close()
        self.folder.cleanup()


class LiquidSVM:
    """liquidSVM's whole training phase, selection included; its own 10 x 10 grid, 5 folds."""

    packages = ("liquidSVM",)

    def __init__(self, **params: Any) -> None:
        # The package looks for its library under a name that Python 3 no longer keeps.
        sysconfig.get_config_vars()["SO"] = sysconfig.get_config_var("EXT_SUFFIX")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import liquidSVM

        self.library, self.params = liquidSVM, {"threads": 1, **params}

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self.label = float(y[0])
        self.model = self.library.mcSVM(X.astype(float), y.astype(float), **self.params)

    def predict(self, X: np.ndarray) -> np.ndarray:
        # `predict` passes labels of 0, which it then refuses as no class of the training set.
        answers, _ = self.model.test(X.astype(float), np.full(len(X), self.label))
        return answers[:, self.model.predictCols].ravel()

    def facts(self) -> dict[str, Any]:
        # One row a cell and fold was selected; the second column counts the cells.
        return {"cells": len(np.unique(np.asarray(self.model.errSelect)[:, 1]))}


class Tuned:
    """A scikit-learn estimator whose parameters are selected on some of the rows, which counts.

    Parameters
    ----------
    estimator : as scikit-learn's
    grid : dict. Candidates, searched with 3 folds on ``n_tune`` rows.
    n_train : int or None. Train on so many of the rows at the most; all, if None.
    """

    def __init__(
        self,
        estimator: Any,
        grid: dict[str, list[float]],
        packages: tuple[str, ...],
        n_tune: int = 5000,
        n_train: int | None = None,
    ) -> None:
        self.estimator, self.grid, self.packages = estimator, grid, packages
        self.n_tune, self.n_train = n_tune, n_train

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        from sklearn.model_selection import GridSearchCV

        order = np.random.default_rng(0).permutation(len(X))
        few, most = order[: self.n_tune], order[: self.n_train]
        # Estimators of compiled libraries do not always take scikit-learn's scoring.
        search = GridSearchCV(self.estimator, self.grid, cv=3, refit=False, scoring=accuracy)
        self.params = search.fit(X[few], y[few]).best_params_
        self.estimator.set_params(**self.params).fit(X[most], y[most])

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.estimator.predict(X)

    def facts(self) -> dict[str, Any]:
        return {"selected": self.params}


class GridCorners:
    """An SVC at some points of a cell's grid, one training fold each, for its time a solve."""

    def __init__(self, make: Callable[..., Any], packages: tuple[str, ...], points: Any) -> None:
        self.make, self.packages, self.points = make, packages, points

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        # Four fifths of the rows, as in the 5 folds of the whole search.
        m = len(X) * 4 // 5
        models = [self.make(C=C, gamma=gamma).fit(X[:m], y[:m]) for C, gamma in self.points]
        self.model = max(models, key=lambda model: accuracy(model, X[m:], y[m:]))

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model.predict(X)

    def facts(self) -> dict[str, Any]:
        return {"solves": len(self.points)}


class Plain:
    """A scikit-learn estimator as it is."""

    def __init__(self, estimator: Any, packages: tuple[str, ...]) -> None:
        self.estimator, self.packages = estimator, packages

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self.estimator.fit(X, y)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.estimator.predict(X)


def accuracy(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean(model.predict(X) == y))


def gradient_boosting(**params: Any) -> Plain:
    from sklearn.ensemble import HistGradientBoostingClassifier

    trees = HistGradientBoostingClassifier(early_stopping=False, random_state=0, **params)
    return Plain(trees, ("scikit-learn",))


def lightgbm(**params: Any) -> Plain:
    from lightgbm import LGBMClassifier

    return Plain(LGBMClassifier(n_jobs=1, verbose=-1, random_state=0, **params), ("lightgbm",))


def nystroem(n_components: int, grid: dict[str, list[float]], **options: Any) -> Tuned:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline

    linear = SGDClassifier(random_state=0)
    model = make_pipeline(Nystroem(n_components=n_components, random_state=0), linear)
    return Tuned(model, grid, ("scikit-learn",), **options)


def svc_class(library: str) -> tuple[Callable[..., Any], tuple[str, ...]]:
    """Return an SVC's class with its settings of one thread, and the packages it is of."""
    if library == "scikit-learn":
        from sklearn.svm import SVC

        return SVC, ("scikit-learn",)
    if library == "sklearnex":
        import sklearnex.svm

        return sklearnex.svm.SVC, ("scikit-learn-intelex", "scikit-learn")
    import thundersvm

    return partial(thundersvm.SVC, n_jobs=1), ("thundersvm-cpu",)


def svc(library: str, grid: dict[str, list[float]], **options: Any) -> Tuned:
    make, packages = svc_class(library)
    return Tuned(make(), grid, packages, **options)


def svc_corners(library: str, points: Any) -> GridCorners:
    return GridCorners(*svc_class(library), points)


class FitCell:
    """daskls's solver on one cell of all rows, in this process."""

    packages = ()

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        X = rng.random((100, 3))
        # Compiled kernels come from the disk from here on.
        self.fit(X, np.where(X[:, 0] > 0.5, 1, -1))
        self.predict(X)

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        from daskls.records import CellReport, SolverSpec
        from daskls.solvers.cell import fit_cell

        self.classes, codes = np.unique(y, return_inverse=True)
        report = CellReport(0, 0, len(X), 0, 0.0)
        self.model = fit_cell(X, codes, np.ones(len(X)), SolverSpec(search="full"), report, (0,))

    def predict(self, X: np.ndarray) -> np.ndarray:
        from daskls.solvers.evaluate import cell_scores

        # Slab by slab, as `predict` does: the kernel values of all rows would fill the memory.
        slabs = [X[start : start + 1024] for start in range(0, len(X), 1024)]
        scores = np.concatenate([cell_scores(self.model, slab) for slab in slabs])
        return self.classes[(scores > 0).astype(int)]

    def facts(self) -> dict[str, Any]:
        return {"steps": self.model.report.n_steps, "at_limit": self.model.report.n_at_limit}


PEERS: dict[str, Callable[..., Any]] = {
    "daskls": Daskls,
    "daskls cell": FitCell,
    "liquidSVM": LiquidSVM,
    "gradient boosting": gradient_boosting,
    "lightgbm": lightgbm,
    "nystroem": nystroem,
    "svc": svc,
    "svc corners": svc_corners,
}


# The process itself


def run_here(name: str, folder: Path, params: dict[str, Any]) -> dict[str, Any]:
    """Train and predict in this process; return what it cost and how often it was wrong."""
    data = load(folder)
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
        "n_train": len(data.y),
        "n_test": len(data.y_test),
        "versions": {package: version(package) for package in model.packages},
        **(model.facts() if hasattr(model, "facts") else {}),
    }
    if hasattr(model, "close"):
        model.close()
    return record


def run_peer(
    name: str, folder: Path, params: dict[str, Any], limit_s: float, python: str = sys.executable
) -> dict[str, Any]:
    """Run one library in a process of its own; what it could not do is in ``failure``."""
    environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
    command = [python, __file__, name, str(folder), json.dumps(params)]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failure": f"{TOO_SLOW} after {limit_s:.0f} s"}
    lines = done.stdout.splitlines()
    if done.returncode == 0 and lines:
        return dict(json.loads(lines[-1]))
    last = (done.stderr.strip().splitlines() or [""])[-1]
    return {"failure": f"exit {done.returncode}: {last[:200]}".strip(": ")}


if __name__ == "__main__":
    print(json.dumps(run_here(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]))))
