"""Counts what the house is made of, part by part, at one revision or between two.

    PYTHONPATH=tests python -m counts [REVISION [REVISION]]

Files, and lines of code, docstrings, comments, imports and blanks; without a revision, of the
files as they lie here. A line that is code and comment is code.
"""

import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
KINDS = ("files", "code", "docstrings", "comments", "imports", "blanks")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def kinds_of(source):
    """Return the kind of every line of a module."""
    lines = source.splitlines()
    kinds = ["code" if line.strip() else "blanks" for line in lines]

    def mark(node, kind):
        kinds[node.lineno - 1 : node.end_lineno] = [kind] * (node.end_lineno - node.lineno + 1)

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            mark(node, "imports")
        elif isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            mark(node.body[0], "docstrings")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and lines[token.start[0] - 1].lstrip().startswith("#"):
            kinds[token.start[0] - 1] = "comments"
    return kinds


def part_of(path):
    """Return the part of the house that a file belongs to: a package of daskls, or a folder."""
    folders = Path(path).parts[:-1]
    return "/".join(folders[: 2 if folders[:1] == ("daskls",) else 1]) or "."


def sources(revision):
    """Yield the path and the text of every module, at a revision or as it lies here."""
    run = {"cwd": ROOT, "capture_output": True, "text": True, "check": True}
    if revision is None:
        listing = subprocess.run(["git", "ls-files", "*.py"], **run).stdout.splitlines()
        yield from ((path, (ROOT / path).read_text(encoding="utf-8")) for path in listing)
        return
    tree = subprocess.run(["git", "ls-tree", "-r", "--name-only", revision], **run).stdout
    for path in tree.splitlines():
        if path.endswith(".py"):
            shown = subprocess.run(["git", "show", f"{revision}:{path}"], **run)
            yield path, shown.stdout


def count(revision):
    """Return the counts of each part, and of the whole package."""
    parts = defaultdict(Counter)
    for path, source in sources(revision):
        own = Counter(files=1) + Counter(kinds_of(source))
        parts[part_of(path)] += own
        if path.startswith("daskls/"):
            parts["daskls, all"] += own
    return parts


def main():
    """Print the counts, or how they moved."""
    revisions = sys.argv[1:] or [None]
    before, after = count(revisions[0]), count(revisions[-1])
    print(f"{'':<20}" + "".join(f"{kind:>18}" for kind in KINDS))
    for part in sorted({*before, *after}):
        told = (
            f"{before[part][kind]} -> {after[part][kind]}"
            if before[part][kind] != after[part][kind]
            else str(after[part][kind])
            for kind in KINDS
        )
        print(f"{part:<20}" + "".join(f"{text:>18}" for text in told))


if __name__ == "__main__":
    main()
