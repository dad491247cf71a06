"""What came of a trial: its class, its line in the journal, the tables."""

import json
import os
import re
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daskls import DasklsError

# "ours" is a process that the trial itself killed: it cannot say anything.
CLASSES = ("same bits", "clear", "ours", "unclear", "wrong", "hung", "crashed")
FAILED = CLASSES[3:]

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


def outcome_of(task):
    try:
        return Result("value", value=task())
    except KeyboardInterrupt:
        return Result("interrupt")
    except BaseException as error:  # whatever ends a fit is what a campaign looks for
        frames = traceback.extract_tb(error.__traceback__)[-4:]
        where = " < ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in reversed(frames))
        kind = "daskls" if isinstance(error, DasklsError) else "error"
        return Result(kind, None, str(error)[:3000], type(error).__name__, where)


def classify(result, expected):
    if result.kind == "value":
        return "same bits" if result.value == expected else "wrong"
    simple = {"interrupt": "clear", "ours": "ours", "hung": "hung", "signal": "crashed"}
    # A clear message names what is wrong and what to do, in a length that people read.
    message = result.message
    is_clear = REMEDY.search(message) and NAMED.search(message) and len(message) <= MAX_MESSAGE
    is_told = result.kind == "daskls" and is_clear
    return simple.get(result.kind, "clear" if is_told else "unclear")


class Journal:
    """One JSON line a trial, written as it ends; a campaign that was stopped goes on behind it."""

    def __init__(self, path):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.records = [json.loads(line) for line in lines]

    def add(self, record):
        self.records.append(record)
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")


def has_failed(record):
    return record["outcome"] in FAILED or record["again"] != "same bits"


def write_table(path, about, records):
    lines = [f"# Faults while a cluster works\n\n{about}"]
    for by in ("kind", "estimator", "stage"):
        rows = [[by, "trials", *CLASSES, "then: same bits"]]
        rows.append(["---"] * len(rows[0]))
        for group in [*sorted({record[by] for record in records}), "all"]:
            own = [record for record in records if group in (record[by], "all")]
            classes = Counter(record["outcome"] for record in own)
            same = sum(record["again"] == "same bits" for record in own)
            rows.append([group, len(own), *(classes[name] for name in CLASSES), same])
        lines += ["", *(f"| {' | '.join(map(str, row))} |" for row in rows)]
    failed = [json.dumps(record) for record in records if has_failed(record)]
    text = "\n".join(lines + ["\n## What failed\n", *failed] * bool(failed)) + "\n"
    path.write_text(text)
    print(text, f"{len(failed)} failed: see {path}")
