"""What came of a trial: its class, its line in the journal, the tables."""

import json
import os
import re
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# "ours" is a process that the trial itself killed: it cannot say anything.
CLASSES = ("same bits", "clear", "ours", "unclear", "wrong", "hung", "crashed")
FAILED = ("unclear", "wrong", "hung", "crashed")

# What a clear error tells people to do, in the words that daskls uses.
REMEDY = re.compile(
    r"\b(again|free some space|remove|give|copy|train|set|lower|raise|use|pass|start|wait"
    r"|mount|make|upgrade|check|restart|move|choose|call)\b",
    re.IGNORECASE,
)
NAMED = re.compile(
    r"/|\bworkers?\b|\bcluster\b|\bscheduler\b|\bclient\b|\bdisk\b|tcp:|cancel|stopped", re.I
)
MAX_MESSAGE = 1500


@dataclass
class Result:
    """What a process reported, or what was seen of it from outside.

    ``kind`` is "value", "daskls" (a DasklsError), "error" (any other exception), "interrupt" (a
    KeyboardInterrupt that we asked for), "ours" (killed by the trial), "hung" or "signal".
    """

    kind: str
    value: Any = None
    message: str = ""
    name: str = ""
    where: str = ""


def result_of_error(error):
    from daskls import DasklsError

    frames = traceback.extract_tb(error.__traceback__)[-4:]
    where = " < ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in reversed(frames))
    kind = "daskls" if isinstance(error, DasklsError) else "error"
    return Result(kind, message=str(error)[:3000], name=type(error).__name__, where=where)


def outcome_of(task):
    try:
        return Result("value", value=task())
    except KeyboardInterrupt:
        return Result("interrupt")
    except BaseException as error:  # whatever ends a fit is what a campaign looks for
        return result_of_error(error)


def classify(result, expected):
    if result.kind == "value":
        return "same bits" if result.value == expected else "wrong"
    simple = {"interrupt": "clear", "ours": "ours", "hung": "hung", "signal": "crashed"}
    if result.kind in simple:
        return simple[result.kind]
    return "clear" if result.kind == "daskls" and is_clear(result.message) else "unclear"


def is_clear(message):
    """Whether a message names what is wrong and what to do, in a length that people read."""
    return bool(REMEDY.search(message) and NAMED.search(message) and len(message) <= MAX_MESSAGE)


class Journal:
    """One JSON line a trial, written as it ends; a campaign that was stopped goes on behind it."""

    def __init__(self, path):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.records = [json.loads(line) for line in lines]

    def done(self, seed):
        return {record["trial"] for record in self.records if record["seed"] == seed}

    def add(self, record):
        self.records.append(record)
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")


def has_failed(record):
    """Whether a trial shows a broken promise: in itself, or in the fit after it."""
    return record["outcome"] in FAILED or record["again"] != "same bits"


def write_table(path, about, records):
    tables = [table(records, by) for by in ("kind", "estimator", "stage")]
    failed = [json.dumps(record) + "\n" for record in records if has_failed(record)]
    text = "\n".join([f"# Faults while a cluster works\n\n{about}\n", *tables])
    path.write_text("\n".join([text, *(["## What failed\n", *failed] if failed else [])]))
    print(text, f"{len(failed)} failed: see {path}")


def table(records, by):
    """Return a Markdown table: a line a value of the field ``by``, a column a class.

    The last columns are the fits that followed.
    """
    rows = [[by, "trials", *CLASSES, "then: same bits", "then: other"]]
    rows.append(["---"] * len(rows[0]))
    for group in [*sorted({record[by] for record in records}), None]:
        chosen = [r for r in records if group is None or r[by] == group]
        rows.append(["all" if group is None else group, len(chosen), *_counts(chosen)])
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows) + "\n"


def _counts(records):
    classes = Counter(record["outcome"] for record in records)
    same = sum(record["again"] == "same bits" for record in records)
    return [*(classes[name] for name in CLASSES), same, len(records) - same]
