"""What an experiment measured, as JSON lines that are written as they are measured."""

import json
from pathlib import Path
from typing import Any

# How a failure begins that another try would only repeat.
TOO_SLOW = "not done"

Record = dict[str, Any]


class Journal:
    """The records of one experiment. An interrupted run goes on where it was.

    Of records with the same key the last one counts. A line with nothing but a machine says where
    the lines after it were measured.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        whole, _, torn = (path.read_text() if path.exists() else "").rpartition("\n")
        if torn:
            # Its writer was killed: the next line must not be glued to it.
            path.write_text(f"{whole}\n" if whole else "")
        lines: list[Record] = [json.loads(line) for line in whole.splitlines()]
        self.machine = next((r["machine"] for r in reversed(lines) if "machine" in r), "")
        self.records = [record for record in lines if record.keys() != {"machine"}]

    def where(self, **key: Any) -> list[Record]:
        """Return all records with these values, in the order in which they were measured."""
        return [record for record in self.records if key.items() <= record.items()]

    def find(self, **key: Any) -> Record | None:
        """Return the last record with these values."""
        return next(iter(self.where(**key)[::-1]), None)

    def latest(self, *fields: str, **key: Any) -> list[Record]:
        """Return the last record of each combination of ``fields``, the first measured first."""
        return list({tuple(r.get(f) for f in fields): r for r in self.where(**key)}.values())

    def ordered(self, *fields: str, **key: Any) -> list[Record]:
        """Return the last record of each combination of ``fields``, by their values."""
        return sorted(self.latest(*fields, **key), key=lambda r: [r[field] for field in fields])

    def is_done(self, **key: Any) -> bool:
        """Whether there is nothing to measure; what failed may have been mended since."""
        record = self.find(**key)
        return record is not None and record.get("failure", TOO_SLOW).startswith(TOO_SLOW)

    def on(self, machine: str) -> None:
        """Note what the next records are measured on, unless it is known."""
        if machine != self.machine:
            self._write({"machine": machine})
            self.machine = machine

    def add(self, record: Record) -> Record:
        self._write(record)
        self.records.append(record)
        return record

    def _write(self, line: Record) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
