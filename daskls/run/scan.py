"""Stage 1, first pass: scans y and the weights without reading a feature; and advice on the data.

A row of weight 0 is treated as if it did not exist; rows of positive weight "count" or are "kept".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskls.errors import AdviceWarning, DataError, ParameterError, warn_user
from daskls.kernels.checksum import row_checksum
from daskls.plan.bundles import Resources
from daskls.records import (
    LARGEST,
    MIB,
    SMALLEST,
    Float64,
    Int64,
    Labels,
    Reals,
    TargetKind,
    Targets,
)
from daskls.run.blocks import BlockRows, block_start, map_rows
from daskls.run.labels import (
    BadLabel,
    check_discrete,
    check_numbers,
    first_bad_label,
    first_bad_number,
    label_error,
    number_error,
)
from daskls.targets import Target

# Overhead of a chunk: 0.7 ms for Zarr in both passes over X, 0.1 ms for Dask, 0.35 ms more in a
# prediction. A thousand chunks take seconds. Reading 256 KiB takes less than a tenth of that.
MANY_CHUNKS, SMALL_NBYTES = 1000, 256 << 10
GOOD_NBYTES = 16 << 20
# The share of a task's memory above which a chunk is large, as the plan does not include what a
# Dask array needs to compute the chunk.
LARGE_SHARE = 0.25
# More than MANY_CLASSES classes of fewer than FEW_ROWS rows on average are probably numbers.
FEW_ROWS, MANY_CLASSES = 10, 20


@dataclass(frozen=True, eq=False)
class BlockTargets:
    """The findings in one block; its first bad label or weight is (row, value)."""

    labels: Labels
    counts: Int64
    n_kept: int
    weight_range: tuple[float, float]
    bad_label: BadLabel | None
    bad_weight: tuple[int, float] | None


@dataclass(frozen=True, eq=False)
class TargetScan:
    """The target and the counts of all rows that count, of each class, or of numbers (1,).

    `block_offsets`, (n_blocks + 1,), are the rows of positive weight before each block.
    """

    target: Target
    counts: Int64
    block_offsets: Int64
    weight_range: tuple[float, float]

    @property
    def n_kept(self) -> int:
        return int(self.block_offsets[-1])


def scan_targets(rows: BlockRows, client: Any = None, kind: TargetKind = "classes") -> TargetScan:
    """Find the target and count its rows; refuse what cannot be trained on."""
    if kind == "numbers":
        check_numbers(rows.y.dtype, rows.classes)
    blocks = map_rows(scan_block, rows, rows.y, rows.weights, client=client, kind=kind)
    bad_label = min((b.bad_label for b in blocks if b.bad_label is not None), default=None)
    if bad_label is not None:
        raise label_error(bad_label) if kind == "classes" else number_error(bad_label)
    bad_weight = min((b.bad_weight for b in blocks if b.bad_weight is not None), default=None)
    if bad_weight is not None:
        raise DataError(
            f"sample_weight must be 0 or between {SMALLEST:g} and {LARGEST:g}; that of row "
            f"{bad_weight[0]} is {bad_weight[1]:g}. Give weight 0 to rows that should not count, "
            "and scale the others."
        )
    block_offsets = np.cumsum([0, *(b.n_kept for b in blocks)])
    if kind == "classes":
        labels, counts = _count_classes(rows, blocks)
        target = Target(kind, labels)
    else:
        t = rows.y.shape[1]
        target, counts = Target(kind, center=np.zeros(t), scale=np.ones(t)), block_offsets[-1:]
    if not block_offsets[-1]:
        raise _no_row_counts("two rows")
    least, most = zip(*(b.weight_range for b in blocks), strict=True)
    return TargetScan(target, counts, block_offsets, (min(least), max(most)))


def scan_block(
    y: Labels, weights: Reals | None, *, kind: TargetKind, block_info: Any = None
) -> BlockTargets:
    _, first_row = block_start(block_info)
    # Returned, not raised: the error names the first bad block, whichever task ends first.
    bad_label = first_bad_label(y[:, 0]) if kind == "classes" else first_bad_number(y)
    if bad_label is not None:
        bad_label = first_row + bad_label[0], bad_label[1]
        # Invalid labels may not be sortable, so the rest of the block is skipped.
        y, weights = y[:0], None
    values = y[kept_rows(weights), 0]
    # Numbers would be as many as rows: none is returned.
    named = values if kind == "classes" else values[:0]
    labels, counts = np.unique(named, return_counts=True)
    bad_weight, weight_range = None, (1.0, 1.0)
    if weights is not None:
        w = weights[:, 0].astype(np.float64)
        (bad_rows,) = np.nonzero(~((w == 0) | ((w >= SMALLEST) & (w <= LARGEST))))
        if len(bad_rows):
            bad_weight = first_row + int(bad_rows[0]), float(w[bad_rows[0]])
        positive = w[w > 0]
        # Without any row, the range is neutral in the minimum and maximum over blocks.
        weight_range = (positive.min(initial=np.inf), positive.max(initial=0.0))
    return BlockTargets(labels, counts, len(values), weight_range, bad_label, bad_weight)


def _no_row_counts(wanted: str) -> DataError:
    return DataError(
        f"No rows are left: every sample_weight is zero. Give {wanted} a positive weight."
    )


def _count_classes(rows: BlockRows, blocks: list[BlockTargets]) -> tuple[Labels, Int64]:
    labels = np.unique(np.concatenate([b.labels for b in blocks]))
    check_discrete(labels)
    counts = np.zeros(len(labels), np.int64)
    for block in blocks:
        counts[np.searchsorted(labels, block.labels)] += block.counts
    if not len(labels):
        raise _no_row_counts("rows of at least two classes")
    if len(labels) < 2:
        raise DataError(
            f"y has only one class, {name_classes(rows, labels).tolist()[0]!r}; a classifier needs "
            "rows of at least 2 classes. Check the labels (and sample_weight), or draw other rows."
        )
    return labels, counts


def name_classes(rows: BlockRows, labels: Labels) -> Labels:
    return name_codes(labels, rows.classes)


def name_codes(codes: Labels, classes: Labels | None) -> Labels:
    """Return the label of each class code; without ``classes`` the codes are labels themselves."""
    if classes is None:
        return codes
    foreign = [c for c in np.unique(codes).tolist() if c not in range(len(classes))]
    if foreign:
        raise DataError(
            f"y holds the class code {foreign[0]!r}, but the data set names {len(classes)} "
            f"classes, of codes 0 to {len(classes) - 1}. Write y or the classes again."
        )
    named: Labels = classes[codes.astype(np.int64)]
    return named


def kept_rows(weights: Reals | None) -> Any:
    """Return an index of the rows that count: a slice if all do, otherwise their positions."""
    if weights is None or (weights[:, 0] > 0).all():
        # A slice copies nothing.
        return slice(None)
    return np.flatnonzero(weights[:, 0] > 0)


def take_kept(
    X: Reals, y: Labels, weights: Reals | None, target: Target
) -> tuple[Reals, Targets, Float64]:
    """Return the features, encoded targets and weights of a block's rows that count."""
    rows = kept_rows(weights)
    targets = target.encode(y[rows])
    row_weights = np.ones(len(targets)) if weights is None else weights[rows, 0].astype(np.float64)
    return X[rows], targets, row_weights


def block_checksum(X: Reals, targets: Targets, weights: Float64, first_row: int) -> int:
    """Return the checksum of rows, targets and weights; checksums of blocks add up modulo 2**64."""
    extra = np.column_stack([targets.astype(np.float64), weights])
    return (row_checksum(X, first_row) + row_checksum(extra, first_row)) % 2**64


def class_weights(
    class_weight: dict[Any, float] | str | None, rows: BlockRows, scan: TargetScan
) -> Float64:
    """Return the weight of each class, by code; "balanced" uses the counts of the whole data."""
    k = scan.target.n_classes
    if class_weight is None:
        # Numbers get a single weight of 1.
        return np.ones(max(k, 1))
    if class_weight == "balanced":
        return scan.n_kept / (k * scan.counts)
    assert isinstance(class_weight, dict)
    classes = name_classes(rows, scan.target.labels).tolist()
    for label in class_weight:
        if label not in classes:
            raise ParameterError(
                f"class_weight names the class {label!r}, which y does not hold; "
                f"its classes are {classes}."
            )
    return np.array([float(class_weight.get(label, 1.0)) for label in classes])


def check_costs(costs: Sequence[float], scan: TargetScan, class_weight: Float64) -> None:
    """Raise if products of C and weights, summed in float32, leave `SMALLEST` to `LARGEST`."""
    least, most = scan.weight_range
    least *= min(costs) * class_weight.min()
    most *= max(costs) * class_weight.max()
    if least < SMALLEST or most > LARGEST:
        raise ParameterError(
            f"C x sample_weight x class_weight ranges from {least:g} to {most:g}; solvers compute "
            f"in float32 and take {SMALLEST:g} to {LARGEST:g}. Bring C and the weights nearer to 1."
        )


def check_folds(n_folds: int, rows: BlockRows, scan: TargetScan) -> None:
    most = int(scan.counts.max())
    if n_folds > most and scan.target.kind == "numbers":
        raise ParameterError(
            f"cv={n_folds} is more than the {most} rows. Lower cv, or fit on more rows."
        )
    if n_folds > most:
        raise ParameterError(
            f"cv={n_folds} cannot be greater than the number of members in each class; the largest "
            f"class has {most} rows. Lower cv, or fit on more rows of each class."
        )
    if scan.target.kind == "classes":
        _warn_of_thin_classes(n_folds, rows, scan)


def warn_of_chunks(rows: BlockRows, resources: Resources) -> None:
    """Warn of chunks of X so small or so large that they dominate time or memory."""
    row_nbytes = rows.n_features * rows.X.dtype.itemsize
    mean_nbytes = rows.n_rows * row_nbytes / max(rows.n_chunks, 1)
    good_rows = max(GOOD_NBYTES // row_nbytes, 1)
    if rows.n_chunks >= MANY_CHUNKS and mean_nbytes < SMALL_NBYTES:
        warn_user(
            f"X lies in {rows.n_chunks:,} chunks of {mean_nbytes / 1024:.1f} KiB on average; each "
            "costs about a millisecond however few rows it holds, and more on a network. Store or "
            f"rechunk X in chunks of about {good_rows:,} rows (16 MiB).",
            AdviceWarning,
        )
    held = max(rows.source_nbytes, rows.unpack_nbytes)
    if held > LARGE_SHARE * resources.task_nbytes:
        warn_user(
            f"A chunk of X is held whole, which takes {held // MIB} MiB of the "
            f"{resources.task_nbytes // MIB} MiB that a task may use, and the memory to compute "
            f"it comes on top. Store or rechunk X in chunks of about {good_rows:,} rows (16 "
            "MiB).",
            AdviceWarning,
        )


def warn_of_classes(scan: TargetScan) -> None:
    k, n = scan.target.n_classes, scan.n_kept
    if k > MANY_CLASSES and n < FEW_ROWS * k:
        warn_user(
            f"y holds {k:,} different labels in {n:,} rows, {n / k:.1f} rows per class on average: "
            "these may be the numbers of a regression, or identifiers of rows. Bin them into a "
            "few classes first, for example with numpy.digitize, or use a regressor such as "
            "VoronoiSVR.",
            AdviceWarning,
        )


def _warn_of_thin_classes(n_folds: int, rows: BlockRows, scan: TargetScan) -> None:
    thin = scan.counts < n_folds
    if not thin.any():
        return
    least = int(scan.counts.argmin())
    name = name_classes(rows, scan.target.labels).tolist()[least]
    warn_user(
        f"{int(thin.sum())} of {len(scan.counts)} classes have fewer rows than cv={n_folds}, "
        f"{name!r} with {int(scan.counts[least])} the fewest: some folds hold none of them, so "
        "that C and gamma are chosen without them. Lower cv, merge such classes with others, or "
        "leave their rows out.",
        AdviceWarning,
    )
