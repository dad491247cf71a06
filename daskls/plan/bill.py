"""The bill of a fit: its expected tasks, bytes and seconds; and the memory checks of all methods.

All are made before any training.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

from daskls.errors import MemoryPlanError
from daskls.memory import TaskSizes, assign_nbytes, gather_nbytes, grow_nbytes, largest_block
from daskls.plan.bundles import Extent, Resources, SamplePlan
from daskls.plan.demand import Demand, ExchangePlan, Paces, StageDemand, seconds_of
from daskls.records import MIB

HEAD = ("stage", "tasks", "largest task", "CPU")


@dataclass(frozen=True)
class StageBill:
    """One stage of a bill.

    Attributes
    ----------
    name : str. As in ``stage_s_``; "cut" is the client's own work on the sample.
    n_tasks : int. 0: the client does the work.
    nbytes : int. Projected peak of the largest task.
    cpu_s : float, or None where nothing was timed. Expected CPU seconds of all tasks.
    longest_s : float, or None. Expected seconds of the longest task, summed over rounds.
    """

    name: str
    n_tasks: int
    nbytes: int
    cpu_s: float | None = None
    longest_s: float | None = None

    def wall_s(self, n_slots: int) -> float:
        """Return the expected seconds on ``n_slots`` slots, each on a core of its own."""
        return max((self.cpu_s or 0.0) / n_slots, self.longest_s or 0.0)


@dataclass(frozen=True)
class Bill:
    """What a fit is expected to cost.

    Attributes
    ----------
    estimator : str
    n_rows, n_features : int
    stages : tuple of StageBill. In the order in which they run.
    n_bundles : int. Tasks that train; each holds one cell at a time.
    n_models : int. Cells, or other parts with a model of their own.
    resources : Resources
    client_nbytes : int. The client's peak, without its baseline.
    worker_nbytes : int. The peak of a worker process with one slot, its baseline included.
    exchange : ExchangePlan
    model_nbytes : int. Upper bound of the model's size.
    refusals : tuple of str. Why `fit` would refuse, each with the parameter to change.
    notes : tuple of str. The assumptions.
    busy : float, >= 1. Wall seconds per CPU second while work was timed: the load of the machine.
    """

    estimator: str
    n_rows: int
    n_features: int
    stages: tuple[StageBill, ...]
    n_bundles: int
    n_models: int
    resources: Resources
    client_nbytes: int
    worker_nbytes: int
    exchange: ExchangePlan
    model_nbytes: int
    refusals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    busy: float = 1.0

    @property
    def n_tasks(self) -> int:
        """The number of tasks of all stages."""
        return sum(stage.n_tasks for stage in self.stages)

    @property
    def task_nbytes(self) -> int:
        """The projected peak of the largest task."""
        return max((stage.nbytes for stage in self.stages), default=0)

    @property
    def cpu_s(self) -> float | None:
        """The expected CPU seconds of all stages; None where nothing was timed."""
        known = [stage.cpu_s for stage in self.stages if stage.cpu_s is not None]
        return sum(known) if known else None

    def wall_s(self, n_slots: int | None = None) -> float | None:
        """Return the expected seconds of the fit; None where nothing was timed.

        Parameters
        ----------
        n_slots : int. Each on a core of its own. None: those of ``resources``.
        """
        if self.cpu_s is None:
            return None
        slots = self.resources.n_slots if n_slots is None else n_slots
        return sum(stage.wall_s(slots) for stage in self.stages)

    def pairs(self) -> list[tuple[str, str]]:
        """Return the totals as pairs of a name and a formatted value."""
        may = f"of {mib(self.resources.task_nbytes)} that a task may use"
        exchange = self.exchange
        found = [
            ("tasks", f"{self.n_tasks:,}, {self.n_bundles:,} of them bundles"),
            ("models", f"{self.n_models:,}"),
            ("largest task", f"{mib(self.task_nbytes)} {may}"),
            ("client", f"{mib(self.client_nbytes)} on top of what it holds"),
            ("worker with one slot", mib(self.worker_nbytes)),
            ("exchange", f"{mib(exchange.nbytes)}, {exchange.requests:,} reads and writes"),
            ("model", f"at most {mib(self.model_nbytes)}"),
        ]
        cpu_s, wall_s, slots = self.cpu_s, self.wall_s(), self.resources.n_slots
        if cpu_s is not None and wall_s is not None:
            found += [
                ("CPU, expected", format_seconds(cpu_s)),
                (f"wall, {slots:,} slots", format_seconds(wall_s)),
            ]
        return found

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return the stages as rows of a table under `HEAD`."""
        return [
            (
                stage.name,
                f"{stage.n_tasks:,}" if stage.n_tasks else "client",
                mib(stage.nbytes) if stage.n_tasks else "",
                "" if stage.cpu_s is None else f"{stage.cpu_s:,.1f} s",
            )
            for stage in self.stages
        ]

    @property
    def title(self) -> str:
        """The estimator and the size of the data."""
        return f"{self.estimator}: {self.n_rows:,} rows, {self.n_features} features"

    def remarks(self) -> Iterator[tuple[str, str]]:
        """Yield the refusals and the assumptions, each as a pair of a name and a text."""
        yield from (("refused", text) for text in self.refusals)
        yield from (("assumed", text) for text in self.notes)

    def __str__(self) -> str:
        lines = [self.title, "", *_aligned([HEAD, *self.rows()]), ""]
        lines += [f"{name:22}{value}" for name, value in self.pairs()]
        if self.refusals or self.notes:
            lines.append("")
        lines += [f"{name}: {text}" for name, text in self.remarks()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        parts = [f"<h4>{escape(self.title)}</h4>", _table([HEAD, *self.rows()])]
        parts.append(_table(self.pairs()))
        parts += [f"<p><b>{n}</b>: {escape(text)}</p>" for n, text in self.remarks()]
        return "".join(parts)


def bill_stages(
    common: Sequence[StageDemand], demand: Demand, paces: Paces | None
) -> tuple[StageBill, ...]:
    """Return the bill of each stage; without ``paces`` (nothing was timed) it has no seconds."""
    return tuple(_billed(stage, paces) for stage in (*common, *demand.stages))


def _billed(stage: StageDemand, paces: Paces | None) -> StageBill:
    """Return the bill of one stage."""
    own = StageBill(stage.name, stage.n_tasks, stage.nbytes)
    if paces is None:
        return own
    work_s = sum(seconds_of(work, paces) for work in stage.works)
    cpu_s = work_s + stage.n_tasks * stage.task_s
    # The tasks of a round run in parallel. The client's work does not: there the share is 1.
    share = max(stage.share, stage.n_rounds / max(stage.n_tasks, stage.n_rounds))
    longest_s = work_s * min(share, 1.0) + stage.n_rounds * stage.task_s
    return replace(own, cpu_s=cpu_s, longest_s=min(longest_s, cpu_s))


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows as lines: the first column is aligned left, all others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            own.rjust(width) if i else own.ljust(width)
            for i, (own, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Return the rows as an HTML table."""
    cell = "<td style='padding:1px 14px 1px 0;text-align:left'>{}</td>"
    inner = ("".join(cell.format(escape(own)) for own in row) for row in rows)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in inner)}</table>"


def format_seconds(seconds: float) -> str:
    """Format a time for people.

    >>> format_seconds(4.2), format_seconds(75), format_seconds(3720)
    ('4 s', '1 min 15 s', '1 h 2 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def mib(nbytes: int) -> str:
    """Format bytes for a message."""
    return f"{nbytes / MIB:.0f} MiB" if nbytes < 10_000 * MIB else f"{nbytes / MIB / 1024:.1f} GiB"


def check_sample(
    sampling: SamplePlan, sizes: TaskSizes, client_nbytes: int, remedy: str = ""
) -> None:
    """Raise MemoryPlanError if the client cannot hold the sample while it grows the tree on it."""
    needed = growing_nbytes(sampling, sizes)
    if needed > client_nbytes:
        raise MemoryPlanError(
            f"Cutting space by a sample of {sampling.n_sample} rows x {sizes.n_features} "
            f"features needs {mib(needed)} on the client but {mib(client_nbytes)} are free; "
            f"{remedy or 'give the client more memory'}, or use fewer features."
        )


def growing_nbytes(sampling: SamplePlan, sizes: TaskSizes) -> int:
    """Return the client's peak bytes of the sample while it grows trees on it."""
    held = 2 * sampling.n_sample * sizes.n_features * sizes.itemsize
    return held + grow_nbytes(sampling.n_sample, sizes.n_features, sampling.max_sampled_rows)


def check_block(extent: Extent, resources: Resources) -> None:
    """Raise MemoryPlanError if a task cannot regroup the largest block."""
    sizes, block_rows = extent.sizes, extent.block_rows
    block = assign_nbytes(sizes, block_rows)
    if block > resources.task_nbytes and (sizes.source_nbytes or sizes.unpack_nbytes):
        # The chunk is either cut into blocks (source_nbytes), or is itself a block.
        chunk_rows = max(sizes.source_nbytes // (sizes.n_features * sizes.itemsize), block_rows)
        rows = max(resources.task_nbytes * chunk_rows // block, 1)
        raise MemoryPlanError(
            f"A chunk of {chunk_rows} rows x {sizes.n_features} features of X is held whole, which "
            f"needs {mib(block)} but a task may use {mib(resources.task_nbytes)}; store X "
            f"uncompressed, or store or rechunk it in chunks of at most {rows} rows, or "
            f"{resources.more}"
        )
    if block > resources.task_nbytes:
        rows = largest_block(sizes, resources.task_nbytes)
        raise MemoryPlanError(
            f"A block of {block_rows} rows x {sizes.n_features} features needs {mib(block)} but "
            f"a task may use {mib(resources.task_nbytes)}; store or rechunk X in blocks of at "
            f"most {rows} rows, or {resources.more}"
        )


def check_gather(extent: Extent, resources: Resources) -> None:
    """Raise MemoryPlanError if a task cannot gather the largest leaf."""
    leaf_rows, at = extent.leaf_rows, extent.at
    leaf, usable = gather_nbytes(extent.sizes, leaf_rows), usable_nbytes(resources)
    if leaf > usable:
        raise MemoryPlanError(
            f"Gathering the largest leaf ({leaf_rows} rows {at}) needs {mib(leaf)} but a task may "
            f"use {mib(usable)} for it; use fewer features, or {resources.more}"
        )


def check_usable(what: str, needed: int, resources: Resources, remedy: str, least: int = 0) -> None:
    """Raise MemoryPlanError if ``needed`` bytes are more than a task may use.

    The message names the remedy only if it helps: if ``least``, the bytes needed with it, fit.
    """
    usable = usable_nbytes(resources)
    if needed > usable:
        remedy = f"{remedy}, or " if least <= usable else ""
        raise MemoryPlanError(
            f"{what} needs {mib(needed)} but a task may use {mib(usable)} for it; {remedy}"
            f"{resources.more}"
        )


def usable_nbytes(resources: Resources) -> int:
    """Return three quarters of a task's memory; the rest is for the rows that a process caches."""
    return resources.task_nbytes * 3 // 4
