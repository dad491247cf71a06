"""Tables of experiments on pages: what stands between two comments is a table of the results.

    <!-- table of methods: Error, % -->
    <!-- end of the table -->

names the page ``benchmarks/results/methods.md`` and the heading there. `make docs-results` writes
the tables; a test compares the pages with them.
"""

import re
from pathlib import Path

from benchmarks.suite.book import RESULTS, sections

__all__ = ["filled", "pages"]

ROOT = Path(__file__).parents[2]
EXCERPT = re.compile(
    r"(?P<begin><!-- table of (?P<name>\w+): (?P<heading>.+?) -->\n)"
    r".*?(?P<end><!-- end of the table -->)",
    re.DOTALL,
)


def pages() -> list[Path]:
    """Return the pages that hold tables of experiments."""
    every = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in every if EXCERPT.search(page.read_text(encoding="utf-8"))]


def filled(text: str) -> str:
    """Return a page with its tables written anew."""
    return EXCERPT.sub(_excerpt, text)


def _excerpt(found: re.Match[str]) -> str:
    return f"{found['begin']}\n{_table(found['name'], found['heading'])}\n\n{found['end']}"


def _table(name: str, heading: str) -> str:
    """Return the table below a heading of a page of results.

    Raises
    ------
    ValueError : when that page has none there
    """
    text = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    for own, lines in sections(text):
        if own == heading:
            return "\n".join(lines)
    raise ValueError(f"{name}.md has no table below the heading {heading!r}")


if __name__ == "__main__":
    for page in pages():
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
