"""Rows of a table as JSON lines, written as they are measured; Markdown tables from them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

# How a failure begins that another try would only repeat.
TOO_SLOW = "not done"

Record = dict[str, Any]
Column = tuple[str, Callable[[Record], Any]]


class Journal:
    """The records of one table. An interrupted run goes on where it was; the last record counts."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.records: list[Record] = [json.loads(line) for line in lines]

    def find(self, **key: Any) -> Record | None:
        for record in reversed(self.records):
            if key.items() <= record.items():
                return record
        return None

    def is_done(self, **key: Any) -> bool:
        """Whether there is nothing to measure; what failed may have been mended since."""
        record = self.find(**key)
        return record is not None and record.get("failure", TOO_SLOW).startswith(TOO_SLOW)

    def add(self, record: Record) -> Record:
        self.records.append(record)
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        return record


def table(columns: list[Column], records: list[Record]) -> str:
    """Return a Markdown table; what a record does not have stays empty."""
    lines = [
        f"| {' | '.join(name for name, _ in columns)} |",
        f"|{'---|' * len(columns)}",
        *(f"| {' | '.join(cell(show, r) for _, show in columns)} |" for r in records),
    ]
    return "\n".join(lines) + "\n"


def cell(show: Callable[[Record], Any], record: Record) -> str:
    try:
        return str(show(record))
    except KeyError:
        return ""


def versions(records: list[Record]) -> str:
    """Return the packages that the records were measured with, in one line."""
    found = {pair for r in records for pair in r.get("versions", {}).items()}
    return ", ".join(f"{name} {number}" for name, number in sorted(found))
