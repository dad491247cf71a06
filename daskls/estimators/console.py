"""Progress on a terminal or in a notebook."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

from daskls.plan.words import format_seconds
from daskls.run.progress import STAGE_LABELS, Progress

__all__ = ["progress_bars"]

# No stage is called so.
WHOLE_FIT = ""


@contextmanager
def progress_bars(
    *, show: bool = True, console: Console | None = None
) -> Iterator[Callable[[Progress], None] | None]:
    """Yield a listener that draws one bar a stage, with the time left; None if not shown."""
    if not show:
        yield None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    tasks: dict[str, TaskID] = {}
    with Bars(*columns, console=console or Console(stderr=True)) as bars:

        def tell_all(left_s: float) -> None:
            """Show what is left of the whole, below its stages."""
            if WHOLE_FIT in tasks:
                bars.remove_task(tasks[WHOLE_FIT])
            told = f"the whole fit: {format_seconds(left_s)} left, expected"
            tasks[WHOLE_FIT] = bars.add_task(told, total=None)

        def listen(progress: Progress) -> None:
            if progress.stage not in tasks:
                label = STAGE_LABELS.get(progress.stage, progress.stage)
                tasks[progress.stage] = bars.add_task(label, total=progress.total)
            # Without a count the bar pulses until the stage ends.
            total = progress.total if progress.done is not None else None
            bars.update(tasks[progress.stage], completed=progress.done or 0, total=total)
            if progress.left_s is not None:
                tell_all(progress.left_s)

        yield listen
