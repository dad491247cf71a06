"""Use an installed daskls as a person would, in an empty folder: `python tests/smoke.py FOLDER`.

Nothing of the tree is imported: what runs is what was installed beside this interpreter.
"""

import pkgutil
import subprocess
import sys
import sysconfig
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import numpy as np
import zarr

import daskls
from daskls.datasets import make_checkerboard
from daskls.registry import METHODS, load_object

COMMAND = Path(sysconfig.get_path("scripts"), "daskls")
# Of live views.
OTHER_EXTRAS = {"IPython", "bokeh", "ipywidgets"}
SMALL = {
    "VoronoiSVC": {"cell_size": 200},
    "RandomChunkSVC": {"chunk_size": 300},
    "FalkSVC": {"n_neighbors": 100},
    "LandmarkSVC": {"n_cells": 10, "C": 1.0},
    "KNNSVC": {"n_neighbors": 30},
}


def check_place() -> None:
    """Every module is there, and of this installation."""
    home = Path(daskls.__file__).parent
    assert home.is_relative_to(sysconfig.get_path("purelib")), home
    assert (home / "py.typed").is_file()
    assert version("daskls") == daskls.__version__
    for module in pkgutil.walk_packages([str(home)], "daskls."):
        if not module.name.endswith("__main__"):
            check_import(module.name)


def check_import(module: str) -> None:
    """A module is imported, or lacks nothing but what another extra installs."""
    try:
        import_module(module)
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in OTHER_EXTRAS:
            raise


def check_methods(folder: Path) -> None:
    """Every method is fitted, saved and opened, and answers the same."""
    X, y = make_checkerboard(900, random_state=0)
    queries = X[:50]
    for place in (place for entry in METHODS for place in entry.estimators):
        name = place.partition(":")[2]
        params = {"random_state": 0, **SMALL.get(name, {})}
        model = load_object(place)(**params).fit(X, y)
        path = folder / f"{name}.zarr"
        model.save(path)
        same = daskls.load(path).predict(queries)
        assert np.array_equal(same, model.predict(queries)), name
        print(f"{name}: {model.score(X, y):.3f}")


def check_containers(folder: Path) -> None:
    """Rows on disk, in one plain chunk and in packed ones, give the model of rows in memory."""
    X, y = make_checkerboard(900, random_state=0)
    params = {"cell_size": 300, "C": 1.0, "gamma": 50.0, "random_state": 0}
    expected = daskls.VoronoiSVC(**params).fit(X, y).decision_function(X)
    for name, layout in (("plain", {"compressors": None}), ("packed", {"chunks": (200, 2)})):
        zarr.create_array(folder / name, data=X, **layout)
        model = daskls.VoronoiSVC(**params).fit(folder / name, y)
        assert np.array_equal(model.decision_function(X), expected), name


def check_command(folder: Path) -> None:
    """A CSV becomes a model, a score and labels on disk."""
    X, y = make_checkerboard(2_000, random_state=0)
    rows = [f"{a:.5f},{b:.5f},{'up' if k > 0 else 'down'}" for (a, b), k in zip(X, y, strict=True)]
    (folder / "train.csv").write_text("\n".join(["a,b,kind", *rows, ""]))
    for line in (
        "fit train.csv model.zarr --label kind --cell-size 500 --random-state 0 --workers 0",
        "score model.zarr train.csv --workers 0",
        "predict model.zarr train.csv labels.csv --workers 0",
        "predict model.zarr train.csv labels.parquet --workers 0",
        "info model.zarr",
        "convert train.csv train.zarr --label kind",
        "info train.zarr",
    ):
        subprocess.run([COMMAND, *line.split()], cwd=folder, check=True)


def main(folder: Path) -> None:
    """Do it all."""
    check_place()
    check_methods(folder)
    check_containers(folder)
    check_command(folder)
    print(f"daskls {daskls.__version__} on Python {sys.version.split()[0]} works")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
