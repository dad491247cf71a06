"""The page of results: the papers' tables and figures beside ours, from the tables of experiments.

    python -m benchmarks.suite.book > docs/results.md

The tables are those of ``benchmarks/results``, which are made of the journals there, byte for byte
(``python -m benchmarks --report``). A test compares the page with what this writes.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.suite.contents import PAPERS, Item

__all__ = ["book", "sections"]

RESULTS = Path(__file__).parents[1] / "results"
# Longer tables are linked, not shown.
MOST_LINES = 45


TODAY = (
    ("methods", "All methods on the same sets"),
    ("regression", "Regressors as they are"),
    ("mixed", "Tables of text, categories, dates and gaps as they are"),
    ("quantiles", "Quantiles as they are"),
    ("intervals", "Intervals"),
    ("advice", "How often advice is right"),
    ("neighborhoods", "C and gamma, selected and as they were, of version 0.1"),
    ("probability", "Probabilities of classifiers as they are"),
    ("probability_maps", "Maps to probabilities by a second fit, of version 0.1"),
)


def book() -> str:
    """Return the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Results"
    yield ""
    yield (
        "The tables and figures of the five papers, as far as the data at hand allow, and what "
        "today's peers make of the same sets. Every number is of a journal in "
        "`benchmarks/results`, but for some of version 0.1, which are kept as tables alone; "
        "`python -m benchmarks` measures what is missing, `python -m benchmarks.suite.book` writes "
        "this page."
    )
    yield from _parts()
    yield from _more_rows()
    for paper in PAPERS:
        yield from ["", f"## {paper.title}", "", paper.cited]
        for item in paper.items:
            yield from _item(item)
    yield from ["", "## More of daskls", ""]
    yield from (f"- [{title}](../benchmarks/results/{name}.md)" for name, title in TODAY)


def _more_rows() -> Iterator[str]:
    text = _read("more_rows")
    yield from ["", "## Classifiers as they are, on larger tables", "", *_about(text), ""]
    for _, lines in sections(text):
        yield from lines


def _item(item: Item) -> Iterator[str]:
    yield from ["", f"### {item.names}", "", item.about]
    if item.figure:
        yield from ["", f"![{item.names}](../benchmarks/results/{item.source}.png)"]
    found = [(h, own) for h, own in sections(_read(item.source)) if item.heading in ("", h)]
    if item.heading and not found:
        raise ValueError(f"{item.source}.md has no table below the heading {item.heading!r}")
    if sum(len(own) for _, own in found) <= MOST_LINES:
        for heading, own in found:
            shown = heading != item.heading
            yield from ["", *([f"**{heading}**", ""] if shown else []), *own]
    yield from ["", f"[How, and on what machine](../benchmarks/results/{item.source}.md)."]


def _parts() -> Iterator[str]:
    yield from [
        "",
        "## The papers, part by part",
        "",
        "| paper | part | standing |",
        "|---|---|---|",
    ]
    for paper in PAPERS:
        short = paper.title.partition(" (")[0]
        for part, standing in paper.parts:
            yield f"| {short} | {part} | {standing} |"


def _read(name: str) -> str:
    return (RESULTS / f"{name}.md").read_text(encoding="utf-8")


def _about(text: str) -> list[str]:
    """Return the first paragraph below the title."""
    return text.split("\n\n")[1].splitlines()


def sections(text: str) -> list[tuple[str, list[str]]]:
    """Return the headings of a report, and the lines of the tables below each."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in text.splitlines():
        if match := re.match(r"#{2,} (.*)", line):
            found.append((match[1], []))
        elif line.startswith("|"):
            found[-1][1].append(line)
    return [(heading, lines) for heading, lines in found if lines]


if __name__ == "__main__":
    print(book(), end="")
