"""Libraries behind one face: each has fit and predict, and tells what it made.

Each imports what it needs when it is made, unmeasured; `python -m benchmarks.peers` runs one.
"""

import sysconfig
import tempfile
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Data(NamedTuple):
    """Rows to train on and to test on."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def first(self, n: int | None) -> "Data":
        """Return these with so many training rows at the most."""
        return self._replace(X=self.X[:n], y=self.y[:n])

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in self._asdict().items():
            np.save(folder / f"{name}.npy", array)

    @classmethod
    def read(cls, folder: Path) -> "Data":
        return cls(*(np.load(folder / f"{name}.npy") for name in cls._fields))


class Daskls:
    """VoronoiSVC from Zarr to labels, on a local cluster."""

    packages = ()

    def __init__(self, **params: Any) -> None:
        from benchmarks.suite.papers import PaperSVC
        from benchmarks.suite.places import cluster, warm_up

        self.held = ExitStack()
        self.path = Path(self.held.enter_context(tempfile.TemporaryDirectory()))
        self.held.enter_context(cluster())
        self.model = PaperSVC(**{"random_state": 0, **params})
        warm_up(PaperSVC(**{**params, "cell_size": 100}))

    def measured(self) -> AbstractContextManager[Any]:
        from benchmarks.suite.measure import measured

        return measured()

    def prepare(self, data: Data) -> None:
        """Write the sets to Zarr, as they would be; the arrays are of no more use."""
        from benchmarks.suite.data import write_set

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
        self.held.close()


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


class Plain:
    """A scikit-learn estimator as it is."""

    def __init__(self, estimator: Any, packages: tuple[str, ...]) -> None:
        self.estimator, self.packages = estimator, packages

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self.estimator.fit(X, y)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.estimator.predict(X)


class Tuned(Plain):
    """A scikit-learn estimator whose parameters are selected on some of the rows, which counts.

    Candidates of ``grid`` are searched with 3 folds on ``n_tune`` rows; it is trained on
    ``n_train`` rows at the most, or on all.
    """

    def __init__(
        self, estimator: Any, packages: Any, grid: Any, n_tune: int = 5000, n_train: Any = None
    ) -> None:
        super().__init__(estimator, packages)
        self.grid, self.n_tune, self.n_train = grid, n_tune, n_train

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        from sklearn.model_selection import GridSearchCV

        order = np.random.default_rng(0).permutation(len(X))
        few, most = order[: self.n_tune], order[: self.n_train]
        # Estimators of compiled libraries do not always take scikit-learn's scoring.
        search = GridSearchCV(self.estimator, self.grid, cv=3, refit=False, scoring=accuracy)
        self.params = search.fit(X[few], y[few]).best_params_
        self.estimator.set_params(**self.params).fit(X[most], y[most])

    def facts(self) -> dict[str, Any]:
        return {"selected": self.params}


class GridCorners(Plain):
    """An SVC at some points of a cell's grid, one training fold each, for its time a solve."""

    def __init__(self, make: Callable[..., Any], packages: tuple[str, ...], points: Any) -> None:
        super().__init__(None, packages)
        self.make, self.points = make, points

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        # Four fifths of the rows, as in the 5 folds of the whole search.
        m = len(X) * 4 // 5
        models = [self.make(C=C, gamma=gamma).fit(X[:m], y[:m]) for C, gamma in self.points]
        self.estimator = max(models, key=lambda model: accuracy(model, X[m:], y[m:]))

    def facts(self) -> dict[str, Any]:
        return {"solves": len(self.points)}


def accuracy(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean(model.predict(X) == y))


def gradient_boosting(**params: Any) -> Plain:
    from sklearn.ensemble import HistGradientBoostingClassifier

    trees = HistGradientBoostingClassifier(early_stopping=False, random_state=0, **params)
    return Plain(trees, ("scikit-learn",))


def lightgbm(**params: Any) -> Plain:
    from lightgbm import LGBMClassifier

    return Plain(LGBMClassifier(n_jobs=1, verbose=-1, random_state=0, **params), ("lightgbm",))


def nystroem(n_components: int, **options: Any) -> Tuned:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline

    features = Nystroem(n_components=n_components, random_state=0)
    model = make_pipeline(features, SGDClassifier(random_state=0))
    return Tuned(model, ("scikit-learn",), **options)


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


def svc(library: str, **options: Any) -> Tuned:
    make, packages = svc_class(library)
    return Tuned(make(), packages, **options)


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
        from daskls.solvers.base import CellRows
        from daskls.solvers.registry import find_solver

        self.classes, codes = np.unique(y, return_inverse=True)
        report = CellReport(0, 0, len(X), 0, 0.0)
        cell = CellRows(X, codes, np.ones(len(X)), report, (0,))
        spec = SolverSpec(search="full")
        self.model = next(find_solver(spec).fit([cell], spec))

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
