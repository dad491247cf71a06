"""What finished models of earlier versions lack, or say in another way: the one place that knows.

Format 2 has a folder for each part of a chunk's name. Bundles up to format 3 may keep the kernels
of cells in their report alone, whose rows may lack the last columns. Models of before a parameter
had its default of today do not name it, nor solvers' specs what came later. What is filled in is
never written: a model stays as it is.
"""

from typing import Any

import numpy as np

from daskls.records import CellReport, Float64, Int64, Table

# Between the parts of a chunk's name, where a group does not say it.
CHUNK_SEPARATOR = "/"
# By estimator: what parameters were whose default is another now.
PARAMS: dict[str, dict[str, Any]] = {
    "VoronoiSVC": {
        "loss": "hinge",
        "feature_scale": None,
        "feature_coding": "none",
        "probability": False,
    }
}
# Fields of a spec that are younger than stores without them, and what those stores meant.
UNSAID = (
    ("loss", "hinge"),
    ("target", "classes"),
    ("width", None),
    ("epsilon", None),
    ("unit", 1.0),
    ("n_grid", None),
    ("scoring", None),
    ("cache_size", None),
    ("quantile", None),
    ("constant_losses", None),
)
ROW = CellReport(0, 0, 0, 0, 0.0).as_tuple()


def fill_params(estimator: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return an estimator's parameters, with those that its model does not name.

    >>> fill_params("VoronoiSVC", {"loss": "squared_error"})["probability"]
    False
    """
    return {**PARAMS.get(estimator, {}), **params}


def fill_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a cell's row of a report with the columns that it lacks."""
    return row + ROW[len(row) :]


def kernels_of(report: Table) -> tuple[Int64, Float64]:
    """Return how many classes each cell keeps, and its gamma, as its report has them."""
    gamma = report["gamma"]
    # A constant model keeps one class, even if its cell held several.
    n_kept = np.where(report["n_support"] > 0, report["n_classes"], 1)
    return n_kept, np.where(np.isnan(gamma), 1.0, gamma)
