"""Markdown tables of records, and the pages they stand on.

The columns of a table are written as ``header = expression:format``, ``|`` or a new line between
them; an expression sees the fields of a record, the record itself as ``r``, and `mean_of`.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from types import CodeType
from typing import Any

import numpy as np

from benchmarks.suite.journal import Journal, Record

PEAK = "peak MiB (before) = f'{peak_mib:.0f} ({before_mib:.0f})'"


def table(columns: str, records: Iterable[Record], **names: Any) -> str:
    """Return a Markdown table; what a record does not have stays empty.

    >>> print(table("set = set | error % = 100 * error:.1f", [{"set": "usps"}]), end="")
    | set | error % |
    |---|---|
    | usps |  |
    """
    parts = columns.strip().replace("\n", " | ").split(" | ")
    # The first header of some tables is empty.
    shown = [f" {part.strip()}".rsplit(" = ", 1) for part in parts]
    lines = [
        f"| {' | '.join(header.strip() for header, _ in shown)} |",
        f"|{'---|' * len(shown)}",
        *(
            f"| {' | '.join(cell(show, record, **names) for _, show in shown)} |"
            for record in records
        ),
    ]
    return "\n".join(lines) + "\n"


def cell(show: str, record: Record, **names: Any) -> str:
    """Return what an expression and its format make of a record; nothing where a field is not."""
    try:
        return str(eval(_compiled(show), {"mean_of": mean_of, "r": record, **names}, record))
    except (KeyError, NameError):
        return ""


@cache
def _compiled(show: str) -> CodeType:
    return compile(f"f'''{{{show}}}'''", show, "eval")


def page(
    title: str,
    text: str,
    columns: str,
    rows: str | Callable[[Journal], Iterable[Record]],
    tail: str = "",
    **names: Any,
) -> Callable[[Journal], str]:
    """Return a report of one table; ``{machine}`` in its text is where it was measured.

    Rows are a function of the journal, or the last records of all values of some fields.
    """

    def report(journal: Journal) -> str:
        about = text.replace("{machine}", journal.machine)
        found = journal.latest(*rows.split()) if isinstance(rows, str) else rows(journal)
        return f"# {title}\n\n{about}\n\n{table(columns, found, **names)}{tail}"

    return report


def mean_of(values: Sequence[float], digits: int, sign: str = "±", ddof: int = 0) -> str:
    """Return a value, or the mean and deviation of several.

    >>> mean_of([1.0], 1), mean_of([1.0, 2.0], 1)
    ('1.0', '1.5 ± 0.5')
    """
    mean = f"{np.mean(values):,.{digits}f}"
    if len(values) == 1:
        return mean
    return f"{mean} {sign} {np.std(values, ddof=ddof):,.{digits}f}"


def versions(records: Iterable[Record]) -> str:
    """Return the packages that the records were measured with, in one line."""
    found = {pair for r in records for pair in r.get("versions", {}).items()}
    return ", ".join(f"{name} {number}" for name, number in sorted(found))
