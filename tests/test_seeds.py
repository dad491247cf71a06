"""The register of random streams: complete, and apart but where it says otherwise.

Read from the syntax trees: seeds that are put together outside of the register are found there, and
who draws from which stream is compared with what the register says.
"""

import ast
from itertools import combinations
from pathlib import Path

import pytest

from daskls.seeds import KeyStream, Stream, register

PACKAGE = Path(__file__).parents[1] / "daskls"
REGISTER = "seeds.py"
# Rows and seeds reach less far than this, so offsets of hashed row numbers must be farther apart.
REACH = 2**47
# Left out of searches: a seed, a number of folds and a fold, which travel together.
NO_STREAM = {"fold"}


def parsed(root):
    """Yield (module below the package, syntax tree) of every file but the register."""
    for path in sorted(root.rglob("*.py")):
        where = path.relative_to(root)
        if where.as_posix() != REGISTER:
            yield ".".join(where.with_suffix("").parts), ast.parse(path.read_text("utf-8"))


def is_seed(node):
    """Whether a node is a seed, going by its name."""
    name = getattr(node, "id", None) or getattr(node, "attr", "")
    return name == "seed" or name.endswith("_seed")


def holds_seed(node):
    """Whether a seed goes into a value, converted or not."""
    return any(is_seed(part) for part in ast.walk(node))


def complaint(node):
    """Return what is wrong with a node, or None."""
    if isinstance(node, (ast.Tuple, ast.List)) and isinstance(node.ctx, ast.Load):
        several = len(node.elts) > 1 and holds_seed(node.elts[0])
        return "a seed of several numbers" if several else None
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, (ast.Add, ast.Mult, ast.BitXor, ast.LShift)):
            return "a seed that is moved" if any(map(is_seed, (node.left, node.right))) else None
        return None
    if isinstance(node, ast.Call):
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if called in {"RandomState", "SeedSequence", "PCG64", "MT19937"}:
            return f"a {called} of its own"
        if called == "default_rng" and any(not isinstance(a, ast.Name) for a in node.args):
            return "a generator whose seed is put together here"
    if isinstance(node, ast.Constant) and type(node.value) is int and node.value in {2**48, 2**52}:
        return "an offset of a stream"
    return None


def seeded(root):
    """Return one line for each seed that is put together outside of the register."""
    found = []
    for module, tree in parsed(root):
        skipped = {
            id(keyword.value)
            for keyword in ast.walk(tree)
            if isinstance(keyword, ast.keyword) and keyword.arg in NO_STREAM
        }
        for node in ast.walk(tree):
            reason = None if id(node) in skipped else complaint(node)
            is_offset = isinstance(node, ast.BinOp) and ast.unparse(node) in {"1 << 48", "1 << 52"}
            if reason or is_offset:
                found.append(f"{module}:{node.lineno}: {reason or 'an offset of a stream'}")
    return found


@pytest.mark.slow
def test_seeds_are_put_together_in_the_register_alone():
    assert seeded(PACKAGE) == []


def meeting(a, b):
    """Return numbers for which two streams of NumPy's generator are equal, or None."""
    values, parts = [], []
    for stream in (a, b):
        parts.append((*stream.drawn_from, 0, 0, 0)[:3])
        values.append({})
    for own, other in zip(*parts, strict=True):
        if not isinstance(own, str) and not isinstance(other, str) and own != other:
            return None
        # Names are of numbers from 0, or from 1; a tag above 0 is one of either.
        shared = next((part for part in (own, other) if not isinstance(part, str)), 1)
        for part, given in zip((own, other), values, strict=True):
            if isinstance(part, str):
                given[part] = shared
    return values


def meet(a, b):
    """Whether two streams may draw the same numbers."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Stream):
        return meeting(a, b) is not None
    if isinstance(a, KeyStream):
        return a.permutes == b.permutes and abs(a.offset - b.offset) < REACH
    return True


def test_streams_meet_where_they_are_marked_and_nowhere_else():
    streams = register()
    pairs = combinations(streams, 2)
    found = {frozenset((a, b)) for a, b in pairs if meet(streams[a], streams[b])}
    marked = [frozenset((name, other)) for name in streams for other in streams[name].meets]
    assert len(marked) == len(set(marked))
    assert set(marked) == found
