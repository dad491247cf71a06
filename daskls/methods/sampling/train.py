"""The tasks of a fit on samples: draw rows by hashed numbers, train subsamples, train a sample."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from daskls.blas import one_blas_thread
from daskls.methods.sampling.parts import (
    ROW_ARRAYS,
    has_part,
    read_part,
    read_part_rows,
    write_part,
)
from daskls.methods.scores import labels_of, model_scores, slab_rows
from daskls.partition.shuffle import DisjointDraws
from daskls.records import AnyArray, Int64, LocalModel
from daskls.run.contract import Fit
from daskls.solvers.base import BLANK_REPORT
from daskls.solvers.hinge.large import fit_large
from daskls.store.exchange import Rows
from daskls.store.layout import check_fit
from daskls.store.leaves import LeafReader
from daskls.store.models import has_bundle, write_bundle

# Kinds of parts: rows drawn by number, support rows of subsamples, samples to train on, support
# rows of samples.
DRAWN, SUPPORT, SAMPLES, KEPT = "drawn", "support", "samples", "kept"
FURTHER = ("further_order", "further_numbers", "further_positions")


@dataclass(frozen=True)
class SamplingJob:
    """Arguments of all tasks of a fit on samples; ``n_further`` drawn rows are only recorded.

    `drawn` are the parts of drawn rows, once they are written.
    """

    fit: Fit
    draws: DisjointDraws
    n_classes: int
    cache_nbytes: int
    n_further: int = 0
    drawn: tuple[tuple[int, int], ...] = ()

    @property
    def root(self) -> str:
        return self.fit.root

    def write(self, kind: str, part: tuple[int, int], arrays: dict[str, AnyArray]) -> None:
        """Write a part, unless the store has become another fit's."""
        check_fit(self.root, self.fit.fingerprint)
        write_part(self.root, kind, *part, arrays)


def as_arrays(rows: Rows) -> dict[str, AnyArray]:
    return {name: getattr(rows, field) for name, field in ROW_ARRAYS.items()}


def read_positions(reader: LeafReader, positions: Int64) -> Rows:
    """Return the rows at some positions, also where there are none."""
    if len(positions):
        return reader.read_positions(positions)
    # One row is read to learn the dtypes.
    return reader.read_positions(np.zeros(1, np.int64)).take(np.empty(0, np.int64))


def draw_rows(leaves: tuple[int, int], job: SamplingJob) -> None:
    """Write the rows of some leaves that are in subsamples or validate; record the further ones."""
    if has_part(job.root, DRAWN, *leaves):
        return
    reader = job.fit.open_rows()
    orders, numbers, positions = [], [], []
    most = job.draws.n_reserved + job.n_further
    for leaf in range(leaves[0], leaves[1] + 1):
        rows = reader.read_leaf(leaf)
        order = job.draws.shuffled(rows.numbers, rows.X)
        drawn = order < most
        orders.append(order[drawn])
        numbers.append(rows.numbers[drawn])
        positions.append(rows.positions[drawn])
    order, position = np.concatenate(orders), np.concatenate(positions)
    reserved = order < job.draws.n_reserved
    further = order[~reserved], np.concatenate(numbers)[~reserved], position[~reserved]
    job.write(
        DRAWN,
        leaves,
        {
            "order": order[reserved],
            "positions": position[reserved],
            **as_arrays(read_positions(reader, position[reserved])),
            **dict(zip(FURTHER, further, strict=True)),
        },
    )


def read_drawn(job: SamplingJob, start: int, stop: int) -> tuple[Rows, Int64, Int64]:
    """Return a range of the permutation: its rows by number, their places in it, and positions."""
    parts: list[Rows] = []
    orders, positions = [], []
    for tile in job.drawn:
        part = read_part(job.root, DRAWN, *tile, ("order", "positions"))
        wanted = (part["order"] >= start) & (part["order"] < stop)
        parts.append(read_part_rows(job.root, DRAWN, *tile).take(np.flatnonzero(wanted)))
        orders.append(part["order"][wanted])
        positions.append(part["positions"][wanted])
    rows = join_rows(parts)
    by_number = np.argsort(rows.numbers)
    return (
        rows.take(by_number),
        np.concatenate(orders)[by_number],
        np.concatenate(positions)[by_number],
    )


def join_rows(parts: Sequence[Rows]) -> Rows:
    fields = ROW_ARRAYS.values()
    return Rows(*(np.concatenate([getattr(p, name) for p in parts]) for name in fields))


def read_further(job: SamplingJob, start: int, stop: int) -> tuple[Int64, Int64]:
    numbers, positions = [], []
    first = job.draws.n_reserved
    for tile in job.drawn:
        order, number, position = read_part(job.root, DRAWN, *tile, FURTHER).values()
        wanted = (order >= first + start) & (order < first + stop)
        numbers.append(number[wanted])
        positions.append(position[wanted])
    return np.concatenate(numbers), np.concatenate(positions)


def fit_subsamples(which: tuple[int, int], job: SamplingJob) -> None:
    """Write the support rows of some subsamples; one of a single class has none."""
    size = job.draws.subsample_rows
    if has_part(job.root, SUPPORT, *which):
        return
    rows, order, positions = read_drawn(job, which[0] * size, (which[1] + 1) * size)
    support = []
    with one_blas_thread():
        for number in range(which[0], which[1] + 1):
            members = np.flatnonzero(order // size == number)
            _, indices = _fit(rows.take(members), job)
            support.append(members[indices])
    indices = np.concatenate(support)
    job.write(SUPPORT, which, {**as_arrays(rows.take(indices)), "positions": positions[indices]})


def _fit(rows: Rows, job: SamplingJob) -> tuple[LocalModel, Int64]:
    options = job.fit.spec, BLANK_REPORT, job.cache_nbytes, job.fit.method.loss
    return fit_large(rows.X, rows.codes, rows.weights, *options)


def fit_sample(step: int, job: SamplingJob) -> None:
    """Train the SVM of a step's sample and evaluate it; write the model and its support rows."""
    if has_bundle(job.root, step, step):
        return
    sample = read_part(job.root, SAMPLES, step, step, ("positions",))
    with one_blas_thread():
        rows = job.fit.open_rows().read_positions(sample["positions"])
        model, support = _fit(rows, job)
        support_rows = rows.take(support)
        del rows
        error = _validation_error(model, job)
    positions = sample["positions"][support]
    # Written before the model, which says that both are there.
    job.write(KEPT, (step, step), {**as_arrays(support_rows), "positions": positions})
    report = replace(model.report, validation_error=error)
    write_bundle(job.root, step, step, [replace(model, report=report)], {})


def fit_constant(step: int, job: SamplingJob) -> None:
    if has_bundle(job.root, step, step):
        return
    reader = job.fit.open_rows()
    totals = np.zeros(job.n_classes)
    for start, stop in pairwise(reader.first_positions.tolist()):
        rows = read_positions(reader, np.arange(start, stop))
        totals += np.bincount(rows.codes, rows.weights, job.n_classes)
    codes = np.flatnonzero(totals)
    # Trained on equal rows, one of each class with the class's weight: only the weights matter.
    X = np.repeat(reader.read_positions(np.zeros(1, np.int64)).X, len(codes), axis=0)
    with one_blas_thread():
        model, _ = fit_large(X, codes, totals[codes], job.fit.spec, BLANK_REPORT, job.cache_nbytes)
        error = _validation_error(model, job)
    check_fit(job.root, job.fit.fingerprint)
    report = replace(model.report, n_rows=job.draws.n_rows, validation_error=error)
    write_bundle(job.root, step, step, [replace(model, report=report)], {})


def _validation_error(model: LocalModel, job: SamplingJob) -> float:
    """Return the weighted share of the validation rows that a model gets wrong; NaN without any."""
    rows, _, _ = read_drawn(job, job.draws.n_sampled, job.draws.n_reserved)
    if not len(rows.X):
        # Of few different rows all copies may be elsewhere.
        return float("nan")
    wrong = np.empty(len(rows.X), np.bool_)
    size = slab_rows(len(model.rows))
    for start in range(0, len(wrong), size):
        slab = slice(start, start + size)
        scores = model_scores(model, rows.X[slab], job.n_classes)
        wrong[slab] = labels_of(scores, np.arange(job.n_classes)) != rows.codes[slab]
    return float(np.average(wrong, weights=rows.weights))
