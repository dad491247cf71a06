"""The last stage of a fit that reserved rows: what the finished model says of them is used."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from daskls.methods.false_alarm import keep_threshold, score_reserved
from daskls.methods.interval import answer_reserved, keep_interval
from daskls.records import FalseAlarmSpec, IntervalSpec, Reals, ReserveSpec
from daskls.run.compute import compute_each
from daskls.run.contract import Beginning
from daskls.run.progress import StageClock
from daskls.run.reserve import ReservedRows
from daskls.store.temporary import ModelHandle

__all__ = ["ASKED_AT_ONCE", "has_used_reserved", "stage_of", "use_reserved"]

# Rows that one task asks the model about. They lie anywhere in space: each task reads most cells,
# so that tasks are to be few.
ASKED_AT_ONCE = 4000


@dataclass(frozen=True)
class Purpose:
    """What reserved rows are asked for, and what is kept of it.

    Attributes
    ----------
    stage : str. In progress and in seconds.
    ask : the task: what a model says of some reserved rows
    keep : writes the group of the purpose's name, which is its marker, from what all tasks found
    """

    stage: str
    ask: Callable[[Reals, ModelHandle], Any]
    keep: Callable[[Beginning, ReservedRows, Any, list[Any]], None]


# By the name of the spec.
PURPOSES = {
    FalseAlarmSpec.name: Purpose("threshold", score_reserved, keep_threshold),
    IntervalSpec.name: Purpose("intervals", answer_reserved, keep_interval),
}


def stage_of(spec: ReserveSpec) -> str:
    """Return the name of the stage."""
    return PURPOSES[spec.name].stage


def has_used_reserved(begun: Beginning) -> bool:
    """Whether the store holds what rows were reserved for; also where none were."""
    spec = begun.request.reserved_for
    return spec is None or begun.root.find_group(spec.name) is not None


def use_reserved(begun: Beginning, clock: StageClock, client: Any = None) -> None:
    """Ask a model that is otherwise complete about its reserved rows, unless the store holds it.

    Parameters
    ----------
    begun : Beginning. Its sample holds the reserved rows.
    clock : StageClock
    client : distributed client, or None for the current scheduler
    """
    spec, held = begun.request.reserved_for, begun.sample.reserved
    if spec is None or held is None or has_used_reserved(begun):
        return
    purpose = PURPOSES[spec.name]
    handle = ModelHandle(begun.root.where(), begun.fingerprint)
    parts = [held.X[a : a + ASKED_AT_ONCE] for a in range(0, len(held.X), ASKED_AT_ONCE)]
    with clock.stage(purpose.stage, len(parts), None):
        found = list(compute_each(purpose.ask, [(part, handle) for part in parts], client))
    purpose.keep(begun, held, spec, found)
