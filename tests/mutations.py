"""Breaks the code on purpose, one place at a time, and tells which test notices.

    python -m mutations list                  which mutations apply to the code as it stands
    python -m mutations run [NAME ...]        run the tests against each, in a copy of the tree
    python -m mutations report                what each was caught by, as a table
    python -m mutations record                keep what the journal says in mutations.json
    python -m mutations draw TREE [TREE ...]  draw more, which apply to all of these trees

`mutations.json` holds them: a piece of source, unique in the package, and what takes its place. A
piece is looked for in all files, so that it may move; where it was rewritten, several pieces are
tried in turn. A run goes on where its journal, outside of the tree, ends. One label names one suite
(``--label``), and what follows ``--`` goes to pytest.
"""

import argparse
import ast
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

RECORD = Path(__file__).with_suffix(".json")
HERE = Path(__file__).parents[1]
WORK = Path(tempfile.gettempdir(), "daskls-mutations")
LEFT_BEHIND = (".git", ".venv*", "results", "*.egg-info", ".mypy_cache", ".ruff_cache")
# Where the tests of a layer are; those of estimators come next, then all others.
TESTS = {
    "errors": ["faults/test_damage", "estimators/test_errors", "store"],
    "records": ["test_plan", "partition", "estimators/test_partitions"],
    "memory": ["test_memory", "test_plan", "memory", "estimators/test_errors"],
    "plan": ["test_plan"],
    "run": ["estimators/test_same_seed", "estimators/test_inputs", "store", "test_blas", "faults"],
    "methods": ["estimators/test_partitions", "estimators/test_predict"],
    "cli": ["test_cli", "test_demo"],
}
LAST = ("chaos", "memory", "faults", "test_cli.py", "test_demo")
CONFIRM_S = 240
# What pytest ends with where it was given files without tests.
NO_TESTS = 5


# ---- where a mutation applies ----


def read_package(tree):
    """Return the source of each module of the package."""
    return {path: path.read_text() for path in sorted((tree / "daskls").rglob("*.py"))}


def find_place(mutation, sources):
    """Return the file that a mutation changes and its new content; None where it has no place."""
    for old, new in mutation["pieces"]:
        places = [(path, text) for path, text in sources.items() if old in text]
        if len(places) == 1 and places[0][1].count(old) == 1:
            path, text = places[0]
            return path, text.replace(old, new)
    return None


# ---- drawing ----

COMPARED = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}


LEFT_OUT = (ast.Raise, ast.JoinedStr, ast.Assert, ast.Import, ast.ImportFrom)


class Sites(ast.NodeVisitor):
    """Collects (operator, start, end, text) of all that may be mutated in one module."""

    def __init__(self, text):
        self.text, self.found = text, []
        self.starts = [0]
        for line in text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line.encode()))
        self.raw = text.encode()

    def at(self, line, column):
        return self.starts[line - 1] + column

    def span(self, node):
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def add(self, operator, start, end, text):
        self.found.append((operator, start, end, text))

    def between(self, operator, left, right, old, new):
        """Replace the operator that stands between two nodes."""
        start, end = self.span(left)[1], self.span(right)[0]
        gap = self.raw[start:end].decode()
        if gap.count(old) == 1:
            self.add(operator, start, end, gap.replace(old, new))

    def visit_FunctionDef(self, node):
        for statement in node.body:
            self.visit(statement)

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self.visit(node.value)

    def visit_ClassDef(self, node):
        for statement in node.body:
            self.visit(statement)

    def visit(self, node):
        """Leave out what errors say and what is looked up by name."""
        if not isinstance(node, LEFT_OUT):
            super().visit(node)

    def visit_If(self, node):
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self.generic_visit(node)

    def visit_Compare(self, node):
        if len(node.ops) == 1:
            old, new = COMPARED[type(node.ops[0])]
            self.between("comparison", node.left, node.comparators[0], old, new)
        self.generic_visit(node)

    def visit_BinOp(self, node):
        if isinstance(node.op, ast.Add):
            self.between("sign", node.left, node.right, "+", "-")
        elif isinstance(node.op, ast.Sub):
            self.between("sign", node.left, node.right, "-", "+")
        self.generic_visit(node)

    def visit_Constant(self, node):
        if type(node.value) in (int, float):
            self.add("constant", *self.span(node), repr(node.value + 1))

    def visit_BoolOp(self, node):
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        if len(node.values) == 2:
            self.between("and/or", *node.values, old, new)
        self.generic_visit(node)

    def visit_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            start, end = self.span(node)
            self.add("not", start, end, self.raw[start + len("not ") : end].decode())
        self.generic_visit(node)

    def visit_Return(self, node):
        if node.value is not None and not isinstance(node.value, ast.Constant):
            self.add("returned", *self.span(node), "return None")
        self.generic_visit(node)


def widen(path, site, sources):
    """Return a site as a piece of whole lines that is unique in the package, and its successor."""
    _, start, end, text = site
    raw = sources[path].encode()
    for n_around in range(6):
        first, last = start, end
        for _ in range(n_around + 1):
            first = raw.rfind(b"\n", 0, max(first - 1, 0)) + 1 if n_around else first
            last = raw.find(b"\n", last + 1)
        first = raw.rfind(b"\n", 0, first) + 1
        old = raw[first:last].decode()
        if sum(text.count(old) for text in sources.values()) == 1:
            return old, (raw[first:start] + text.encode() + raw[end:last]).decode()
    return None


def draw(trees, n, seed):
    """Return ``n`` mutations, drawn by operator, then by place, which apply to all of the trees."""
    rng = random.Random(seed)
    packages = [read_package(tree.resolve()) for tree in trees]
    by_operator = {}
    for path, text in packages[0].items():
        sites = Sites(text)
        sites.visit(ast.parse(text))
        for site in sites.found:
            by_operator.setdefault(site[0], []).append((path, site))
    found, pieces = [], set()
    while len(found) < n:
        operator = rng.choice(sorted(by_operator))
        path, site = rng.choice(by_operator[operator])
        piece = widen(path, site, packages[0])
        if piece is None or piece in pieces:
            continue
        places = [find_place({"pieces": [piece]}, sources) for sources in packages]
        if not all(places):
            continue
        pieces.add(piece)
        home = places[-1][0].relative_to(trees[-1].resolve() / "daskls")
        about = {"name": f"drawn {len(found) + 1}", "layer": home.parts[0].removesuffix(".py")}
        found.append({**about, "operator": operator, "seed": seed, "pieces": [piece]})
    return found


# ---- running ----


def order_tests(tree, mutation, module, seconds):
    """Return the files of tests in two parts, those that are likely to notice and quick first.

    The first ones are the examples in the mutated module's own docstrings.
    """
    files = sorted(path.relative_to(tree) for path in (tree / "tests").rglob("test_*.py"))
    near = [*mutation.get("first", ()), *TESTS.get(mutation["layer"], [mutation["layer"]])]

    def rank(path):
        name = path.as_posix().removeprefix("tests/")
        places = [i for i, prefix in enumerate(near) if name.startswith(prefix)]
        late = next((i + 1 for i, prefix in enumerate(LAST) if name.startswith(prefix)), 0)
        other = not name.startswith(("estimators", f"{mutation['layer']}/"))
        return min(places, default=len(near)), late, other, seconds.get(path.as_posix(), 1e9), name

    # Of a file and its folder pytest takes the folder alone, at its place.
    modules = sorted(path.relative_to(tree).as_posix() for path in (tree / "daskls").rglob("*.py"))
    others = [other for other in modules if other != module and not other.endswith("__.py")]
    files.sort(key=rank)
    # Few at first: to collect all takes longer than most mutations live.
    n_near = max(sum(rank(path)[0] < len(near) for path in files), 1)
    names = [path.as_posix() for path in files]
    return [module, *names[:n_near]], [*names[n_near:], *others]


def copy_tree(tree, mutation, target):
    """Write a copy of the tree that holds the mutation; return the mutated module.

    A compiled function's file on disk knows its own source's time alone, and that of a mutated
    kernel may be a part of others: these compile anew, those of other copies are shared.
    """
    shutil.copytree(tree, target, ignore=shutil.ignore_patterns(*LEFT_BEHIND), symlinks=True)
    path, text = find_place(mutation, read_package(target))
    path.write_text(text)
    if "_jit" in text:
        for kept in [*target.rglob("*.nbi"), *target.rglob("*.nbc")]:
            kept.unlink()
    return path.relative_to(target).as_posix()


def run_tests(tree, arguments, limit_s, log):
    """Run pytest in a tree; return its exit status, or None where the limit ended it."""
    env = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=short", *arguments]
    with log.open("w") as out:
        process = subprocess.Popen(
            command, cwd=tree, env=env, stdout=out, stderr=out, start_new_session=True
        )
        try:
            return process.wait(max(limit_s, 0))
        except subprocess.TimeoutExpired:
            return None
        finally:
            # With the workers that it started.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def try_mutation(mutation, options):
    """Run the tests against one mutation; return what came of it."""
    name = re.sub(r"\W+", "-", mutation["name"])
    copy, log = options.work / f"{name}-tree", options.work / f"{name}-{options.label}.log"
    shutil.rmtree(copy, ignore_errors=True)
    module = copy_tree(options.tree, mutation, copy)
    began = time.monotonic()
    try:
        for files in order_tests(copy, mutation, module, options.seconds):
            left_s = options.limit_s - (time.monotonic() - began)
            status = run_tests(copy, ["-x", "-v", *options.pytest, *files], left_s, log)
            if status not in (0, NO_TESTS):
                break
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    found = {"seconds": round(time.monotonic() - began), "reached": reached(log)}
    if status is None:
        return {**found, "came": f"not caught within {options.limit_s} s", "cut": options.limit_s}
    if status in (0, NO_TESTS):
        return {**found, "came": "survived"}
    by = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", log.read_text(), re.MULTILINE)
    caught = {**found, "came": "caught", "by": by[1] if by else "pytest itself"}
    if by and not passes(by[1], options, log):
        caught["came"] = "failed, and without the mutation too"
    return caught


def passes(test, options, log):
    """Whether a test passes where nothing is mutated."""
    return run_tests(options.tree, [test], CONFIRM_S, log.with_suffix(".again")) == 0


def reached(log):
    """Return how far the tests came: percent of them."""
    shares = re.findall(r"\[ *(\d+)%\]", log.read_text())
    return int(shares[-1]) if shares else 0


# ---- the command line ----


def read_record():
    return json.loads(RECORD.read_text())


def write_record(record):
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def read_journal(options):
    """Return what came of each mutation, of one label."""
    lines = options.journal.read_text().splitlines() if options.journal.exists() else []
    entries = [json.loads(line) for line in lines]
    return {e.pop("name"): e for e in entries if e.pop("label") == options.label}


def list_mutations(options):
    """Say which mutations apply; return 1 where one does not."""
    sources = read_package(options.tree)
    lost = 0
    for mutation in read_record()["mutations"]:
        place = find_place(mutation, sources)
        lost += place is None
        where = place[0].relative_to(options.tree) if place else "APPLIES NO LONGER"
        print(f"{mutation['layer']:11s} {mutation['name']:50s} {where}")
    print(f"{lost} no longer apply")
    return int(lost > 0)


def is_known(came, options):
    """Whether the journal tells what came of a mutation: within the limit, if it was cut."""
    return came is not None and came.get("cut", options.limit_s) >= options.limit_s


def run(options):
    """Try what the journal does not hold yet."""
    options.work.mkdir(parents=True, exist_ok=True)
    options.journal.parent.mkdir(parents=True, exist_ok=True)
    record, known = read_record(), read_journal(options)
    options.seconds = record.get("seconds", {})
    sources = read_package(options.tree)
    wanted = [
        m
        for m in record["mutations"]
        if not is_known(known.get(m["name"]), options)
        and (not options.names or m["name"] in options.names)
        and find_place(m, sources)
    ]

    def one(mutation):
        came = {"name": mutation["name"], "label": options.label, **try_mutation(mutation, options)}
        with options.journal.open("a") as journal:
            journal.write(json.dumps(came) + "\n")
        print(f"{came['name']}: {came['came']} {came.get('by', '')} ({came['seconds']} s)")
        sys.stdout.flush()

    with ThreadPoolExecutor(options.jobs) as threads:
        list(threads.map(one, wanted))
    return report(options)


def report(options):
    """Print a table; return 1 where a mutation was not caught."""
    record = read_record()
    came = record.get("came", {}).get(options.label, {}) | read_journal(options)
    print("| mutation | layer | came | by | s | reached |\n|---|---|---|---|---|---|")
    for mutation in record["mutations"]:
        own = came.get(mutation["name"], {"came": "not run"})
        values = own["came"], own.get("by", ""), own.get("seconds", ""), own.get("reached", "")
        print("|", " | ".join(map(str, (mutation["name"], mutation["layer"], *values))), "|")
    return int(any(own["came"] != "caught" for own in came.values()))


def keep(options):
    """Keep the journal's entries of a label in the record."""
    record = read_record()
    came = record.setdefault("came", {}).setdefault(options.label, {})
    came.update(read_journal(options))
    write_record(record)
    return 0


def add_drawn(options):
    """Add drawn mutations to the record, in place of those that were drawn before."""
    record = read_record()
    kept = [m for m in record["mutations"] if "operator" not in m]
    drawn = draw([Path(name) for name in options.names], options.count, options.seed)
    write_record({**record, "mutations": kept + drawn})
    return 0


def parse(arguments):
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(prog="python -m mutations", description=__doc__.split("\n")[0])
    parser.add_argument("action", choices=("list", "run", "report", "record", "draw"))
    parser.add_argument("names", nargs="*", help="mutations, or the trees to draw from")
    parser.add_argument("--tree", type=Path, default=HERE, help="whose code and tests")
    parser.add_argument("--label", default="suite", help="names the suite in the journal")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit-s", type=int, default=720, help="seconds for one mutation")
    parser.add_argument("--work", type=Path, default=WORK, help="folder of copies and logs")
    parser.add_argument("--journal", type=Path, default=WORK / "journal.jsonl")
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--count", type=int, default=20)
    options = parser.parse_args(arguments[:cut])
    options.tree = options.tree.resolve()
    options.pytest = arguments[cut + 1 :]
    return options


ACTIONS = {
    "list": list_mutations,
    "run": run,
    "report": report,
    "record": keep,
    "draw": add_drawn,
}


if __name__ == "__main__":
    options = parse(sys.argv[1:])
    sys.exit(ACTIONS[options.action](options))
