"""Run the examples of a page: `python tests/pages.py docs/start.md`, in an empty folder.

Blocks of Python and of bash run from top to bottom; Python's share one namespace. A line that ends
in `# -> value` must give that value. A block after a comment `<!-- not run: why -->` is left out.
"""

import ast
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: (.+?) -->\s*$")
RUN = ("python", "bash")


class Block(NamedTuple):
    """A block of code, where it begins, and why it is not run, if it is not."""

    language: str
    code: str
    line: int
    excuse: str


def read_blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page that could run."""
    text = page.read_text("utf-8")
    for found in FENCE.finditer(text):
        before = text[: found.start()]
        excuse = NOT_RUN.search(before)
        if found[2] in RUN:
            line = before.count("\n") + 2
            yield Block(found[2], textwrap.dedent(found[3]), line, excuse[1] if excuse else "")


def run_python(block: Block, page: Path, names: dict[str, Any]) -> None:
    """Run a block, and compare what its lines say that they give."""
    lines = block.code.splitlines()
    for node in ast.parse(block.code).body:
        ast.increment_lineno(node, block.line - 1)
        expected = lines[node.end_lineno - block.line].partition("# -> ")[2]
        if isinstance(node, ast.Expr) and expected:
            value = eval(compile(ast.Expression(node.value), str(page), "eval"), names)
            plain = value.item() if isinstance(value, np.generic) else value
            if repr(plain) != expected:
                sys.exit(f"{page.name}:{node.lineno} gives {value!r}, the page says {expected}")
        else:
            exec(compile(ast.Module([node], []), str(page), "exec"), names)


def run_bash(block: Block, page: Path) -> None:
    """Run a block; any command that fails ends it."""
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.code], check=False)
    if done.returncode:
        sys.exit(f"{page.name}:{block.line} ended with {done.returncode}")


def run_page(page: Path) -> None:
    """Run a page's blocks in the folder that is current."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in read_blocks(page):
        if block.excuse:
            continue
        if block.language == "python":
            run_python(block, page, names)
        else:
            run_bash(block, page)


if __name__ == "__main__":
    run_page(Path(sys.argv[1]).resolve())
