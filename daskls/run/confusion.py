"""The confusion matrix of a model on a data set, summed over blocks: memory of a few blocks."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.callbacks import Callback

from daskls.errors import DataError
from daskls.records import Int64, Labels
from daskls.run.compute import local_scheduler, stream
from daskls.run.progress import Progress
from daskls.sources.base import listed

__all__ = [
    "Confusion",
    "check_scored",
    "count_block",
    "count_confusion",
    "run_blocks",
    "tabulate",
]

CONFUSED = "count_block"


@dataclass(frozen=True)
class Confusion:
    """``counts[i, j]`` rows of class ``labels[i]`` were given ``labels[j]``."""

    labels: list[Any]
    counts: Int64


def count_block(
    predicted: Labels, y: Labels, classes: list[Any] | None
) -> Counter[tuple[Any, Any]]:
    """Count the pairs (label, predicted label) of one block.

    Parameters
    ----------
    predicted : array (m,) of labels
    y : array (m,) of codes into ``classes``, or of labels where that is None
    classes : list or None
    """
    true, true_code = np.unique(y, return_inverse=True)
    given, given_code = np.unique(predicted, return_inverse=True)
    labels = true.tolist() if classes is None else [classes[code] for code in true]
    answers = given.tolist()
    table = np.zeros((len(true), len(given)), np.int64)
    np.add.at(table, (true_code, given_code), 1)
    return Counter({(labels[i], answers[j]): int(table[i, j]) for i, j in np.argwhere(table)})


def count_confusion(
    estimator: Any, dataset: Any, client: Any, on_progress: Callable[[Any], None] | None
) -> Confusion:
    """Compare a model's labels with a data set's.

    Parameters
    ----------
    estimator : fitted estimator
    dataset : Dataset. Must have labels.
    client : distributed Client, or None for this process's threads
    on_progress : called with a `Progress` as blocks finish, or None

    Raises
    ------
    DataError : no labels, no rows, or no label that is a class of the model
    """
    check_scored(dataset)
    known = estimator.classes_.tolist()
    _check_labels(dataset, known)
    # By its path, which leads to the names of the columns too.
    predicted = estimator.predict(dataset.path)
    y = da.from_zarr(dataset.y, chunks=predicted.chunks)
    count = dask.delayed(count_block, pure=False)
    tasks = [
        count(p, t, dataset.classes, dask_key_name=f"{CONFUSED}-{dask.base.tokenize(p.key)}-{i}")
        for i, (p, t) in enumerate(zip(predicted.to_delayed(), y.to_delayed(), strict=True))
    ]
    counts = run_blocks(tasks, CONFUSED, client, on_progress)
    total = sum(counts, Counter[tuple[Any, Any]]())
    return tabulate(total, known)


def check_scored(dataset: Any) -> None:
    """Refuse a data set on which nothing can be scored.

    Raises
    ------
    DataError : no y, or no rows
    """
    if dataset.y is None or not dataset.n_rows:
        what = "rows" if dataset.y is not None else "labels"
        raise DataError(f"The data set {dataset.path} has no {what}, so there is nothing to score.")


def _check_labels(dataset: Any, known: list[Any]) -> None:
    """Refuse a data set whose labels are all foreign to the model, before anything is computed."""
    if dataset.classes is not None and not set(dataset.classes) & set(known):
        foreign, own = (listed(list(map(str, labels))) for labels in (dataset.classes, known))
        raise DataError(
            f"The data set {dataset.path} has the classes [{foreign}], the model [{own}]: they "
            "have none in common. Score on data of the kind that it was trained on."
        )


def run_blocks(
    tasks: list[Any], name: str, client: Any, on_progress: Callable[[Any], None] | None
) -> list[Any]:
    """Return the results of tasks, one a block, in their order; report each that is done.

    Parameters
    ----------
    tasks : list of Dask delayed, whose keys begin with ``name``
    name : str
    client : distributed Client, or None for this process's threads
    on_progress : called with a `Progress`, or None
    """
    n_done = 0

    def advance(step: int = 1) -> None:
        nonlocal n_done
        n_done += step
        if on_progress is not None:
            on_progress(Progress("scoring blocks", n_done, len(tasks)))

    def count_key(key: Any, *_: Any) -> None:
        advance(int(str(key).startswith(f"{name}-")))

    advance(0)
    if client is None:
        with Callback(posttask=count_key):
            return list(dask.compute(*tasks, scheduler=local_scheduler()))
    found = {}
    for i, result in stream(tasks, client):
        found[i] = result
        advance()
    # In the order of blocks: a sum's bits depend on it.
    return [found[i] for i in range(len(tasks))]


def tabulate(total: Counter[tuple[Any, Any]], known: list[Any]) -> Confusion:
    """Return the counts as a matrix: the model's classes first, in its order, then foreign ones."""
    foreign = sorted({true for true, _ in total} - set(known), key=str)
    labels = [*known, *foreign]
    index = {label: i for i, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), np.int64)
    for (true, given), n in total.items():
        counts[index[true], index[given]] = n
    return Confusion(labels, counts)
