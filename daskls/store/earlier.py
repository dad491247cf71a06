"""What finished models of earlier versions lack or store differently.

Up to format 2, each part of a chunk's name is a folder. Up to format 3, bundles may keep their
cells' kernels only in the report, whose rows may lack the last columns. A model stores neither the
parameters nor the fields of a solver's spec that were added later. What is filled in is never
written: a model stays as it is.
"""

from typing import Any

import numpy as np

from daskls.records import CellReport, Float64, Int64, Table

# Separates the parts of a chunk's name where a group does not store the separator.
CHUNK_SEPARATOR = "/"
# By estimator: values of parameters that a model does not store, where today's default differs.
EARLIER_PARAMS: dict[str, dict[str, Any]] = {
    "VoronoiSVC": {
        "loss": "hinge",
        "feature_scale": None,
        "feature_coding": "none",
        "probability": False,
    }
}
# Fields of a spec that older stores lack, with the values that those stores imply.
EARLIER_SPEC = (
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
DEFAULT_ROW = CellReport(0, 0, 0, 0, 0.0).as_tuple()


def fill_params(estimator: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return an estimator's parameters, with those that its model does not store.

    >>> fill_params("VoronoiSVC", {"loss": "squared_error"})["probability"]
    False
    """
    return {**EARLIER_PARAMS.get(estimator, {}), **params}


def fill_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a cell's row of a report, completed with the columns that it lacks."""
    return row + DEFAULT_ROW[len(row) :]


def kernels_of(report: Table) -> tuple[Int64, Float64]:
    """Return how many classes each cell keeps, and its gamma, from the report."""
    gamma = report["gamma"]
    # A constant model keeps one class, even if its cell had rows of several.
    n_kept = np.where(report["n_support"] > 0, report["n_classes"], 1)
    return n_kept, np.where(np.isnan(gamma), 1.0, gamma)
