"""All synthetic sets by name, and the function that writes any of them to Zarr."""

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from daskls.datasets import clusters, friedman, gaussians, planar
from daskls.datasets._base import CLASSES, NumberRows, Rows
from daskls.errors import ParameterError
from daskls.store.dataset import Dataset, DatasetWriter, default_chunk_rows

# Called with the number of rows done, and that of all rows if it is known.
Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Generator:
    """One synthetic set.

    Attributes
    ----------
    rows : function of (first_row, n_rows, seed, **params) that returns X in float32, and y: -1 and
        +1, or numbers
    n_features : int. Number of features with the default parameters.
    doc : str. A one-line description.
    bayes_accuracy : function of (**params), or None if it is not known
    best_r2 : function of (**params) for sets whose y are numbers; else None

    Examples
    --------
    >>> xor = GENERATORS["xor"]
    >>> isinstance(xor, Generator), xor.n_features, xor.params
    (True, 2, {'flip': 0.0})
    """

    rows: Callable[..., Rows | NumberRows]
    n_features: int
    doc: str
    bayes_accuracy: Callable[..., float] | None
    best_r2: Callable[..., float] | None = None

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of the set and their defaults."""
        signature = inspect.signature(self.rows)
        return {
            name: parameter.default
            for name, parameter in signature.parameters.items()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        }


GENERATORS: dict[str, Generator] = {
    "checkerboard": Generator(
        planar.checkerboard_rows,
        2,
        "4 x 4 squares on [0, 1]^2, labels swapped at random (FaLK-SVM's checker-b)",
        planar.checkerboard_bayes_accuracy,
    ),
    "friedman1": Generator(
        friedman.friedman1_rows,
        10,
        "Friedman's first function with noise, numbers: five of ten features decide",
        None,
        friedman.friedman1_best_r2,
    ),
    "friedman2": Generator(
        friedman.friedman2_rows,
        4,
        "Friedman's second function with noise, numbers: the impedance of a circuit",
        None,
        friedman.friedman2_best_r2,
    ),
    "friedman3": Generator(
        friedman.friedman3_rows,
        4,
        "Friedman's third function with noise, numbers: the phase angle of a circuit",
        None,
        friedman.friedman3_best_r2,
    ),
    "ndcc": Generator(
        clusters.ndcc_rows,
        5,
        "normal clusters on the vertices of nested cubes (after FaLK-SVM's ndcc)",
        clusters.ndcc_bayes_accuracy,
    ),
    "noisy28": Generator(
        clusters.noisy28_rows,
        28,
        "28 features, three of which decide, labels swapped at random: for scale tests",
        clusters.noisy28_bayes_accuracy,
    ),
    "rare": Generator(
        gaussians.rare_rows,
        631,
        "a rare class, 2 % of the rows, in 631 features that follow eight hidden ones",
        gaussians.rare_bayes_accuracy,
    ),
    "swiss_roll": Generator(
        planar.swiss_roll_rows,
        2,
        "a planar Swiss roll in a uniform cloud (L3-SVMs, figure 2)",
        planar.swiss_roll_bayes_accuracy,
    ),
    "two_gaussians": Generator(
        gaussians.two_gaussians_rows,
        2,
        "two Gaussians restricted to a box (spatial decompositions, section 4)",
        gaussians.two_gaussians_bayes_accuracy,
    ),
    "two_spirals": Generator(
        planar.two_spirals_rows,
        2,
        "two blurred spiral arms (FaLK-SVM's 2-spirals)",
        planar.two_spirals_bayes_accuracy,
    ),
    "xor": Generator(
        planar.xor_rows,
        2,
        "uniform on [-1, 1]^2, +1 where the signs agree (L3-SVMs, figure 1)",
        planar.xor_bayes_accuracy,
    ),
}


def bayes_accuracy(name: str, **params: Any) -> float | None:
    """Return the accuracy of the best possible classifier on a synthetic set.

    Parameters
    ----------
    name : str. A key of `GENERATORS`.
    **params : the set's own parameters, as for its `make_` function

    Returns
    -------
    accuracy : float in [0.5, 1], or None if it is not known

    Raises
    ------
    ParameterError : the name is unknown, or a parameter is unknown or out of its range.

    Examples
    --------
    >>> bayes_accuracy("checkerboard", flip=0.25)
    0.75
    """
    best = _find(name, params).bayes_accuracy
    return None if best is None else best(**params)


def best_r2(name: str, **params: Any) -> float | None:
    """Return the R2 of the best possible regressor on a synthetic set of numbers.

    Parameters
    ----------
    name : str. A key of `GENERATORS`.
    **params : the set's own parameters, as for its `make_` function

    Returns
    -------
    r2 : float in [0, 1], or None for a set of classes

    Raises
    ------
    ParameterError : the name is unknown, or a parameter is unknown or out of its range.

    Examples
    --------
    >>> best_r2("friedman1", noise=0.0)
    1.0
    """
    best = _find(name, params).best_r2
    return None if best is None else best(**params)


def write(
    name: str,
    path: str | os.PathLike[str],
    n_rows: int,
    *,
    random_state: int = 0,
    chunk_rows: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **params: Any,
) -> Dataset:
    """Write a synthetic set to Zarr, one chunk in memory at a time.

    Parameters
    ----------
    name : str. A key of `GENERATORS`.
    path : str or path. The data set to make.
    n_rows : int, >= 0
    random_state : int. The rows are those of the `make_` function with the same seed.
    chunk_rows : int or None. Rows of a Zarr chunk; None: about 4 MiB. Does not change the data.
    overwrite : bool. Replace a daskls data set at `path`.
    progress : function of (rows done, all rows) or None
    **params : the set's own parameters

    Returns
    -------
    Dataset

    Raises
    ------
    ParameterError : the name is unknown, or a parameter is unknown or out of its range.
    StoreError : `path` exists and may not be replaced.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = write("xor", f"{folder}/xor.zarr", 1000)
    ...     data.n_rows, data.n_features
    (1000, 2)
    """
    generator = _find(name, params)
    if n_rows < 0:
        raise ParameterError(f"n_rows must be at least 0, got {n_rows}.")
    n_features = generator.rows(0, 0, random_state, **params)[0].shape[1]
    is_numbers = generator.best_r2 is not None
    block_rows = chunk_rows or default_chunk_rows(n_features, "float32")
    writer = DatasetWriter(
        path,
        n_features,
        "float32",
        classes=None if is_numbers else CLASSES,
        y_dtype="float64" if is_numbers else "int32",
        source=f"daskls.datasets {name}, random_state={random_state}, {params}",
        chunk_rows=chunk_rows,
        overwrite=overwrite,
    )
    with writer:
        for first in range(0, n_rows, block_rows):
            m = min(block_rows, n_rows - first)
            X, y = generator.rows(first, m, random_state, **params)
            writer.append(X, y if is_numbers else (y + 1) // 2)
            if progress is not None:
                progress(first + m, n_rows)
    return writer.close()


def _find(name: str, params: dict[str, Any]) -> Generator:
    """Return the set of a name.

    Raises
    ------
    ParameterError : there is no such set, or it lacks one of these parameters
    """
    generator = GENERATORS.get(name)
    if generator is None:
        raise ParameterError(f"No data set {name!r}; choose one of {', '.join(GENERATORS)}.")
    unknown = sorted(set(params) - set(generator.params))
    if unknown:
        raise ParameterError(
            f"{name} has no parameter {unknown[0]!r}; it takes {', '.join(generator.params)}."
        )
    return generator
