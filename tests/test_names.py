"""One name, one thing: no class or constant has two homes, and names written as text have one."""

import ast
import json
import pkgutil
import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import mutations
import pytest

pytestmark = pytest.mark.always

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "daskls"
# Where names of the package are written as text, which no import of the file would find missing.
WRITTEN = (
    *("tests/**/*.py", "tests/mutations.json", "benchmarks/**/*.py", "examples/*.py"),
    *("docs/**/*.md", "docs/*.py", "docs/examples/*.patch", "README.md", "CONTRIBUTING.md"),
)
DOTTED = re.compile(r"\bdaskls(?:\.[A-Za-z_]\w*)+")
# In scripts within strings, and where tests that run rarely import inside of a function.
IMPORTED = re.compile(r"\bfrom (daskls[.\w]*) import (\([^)]*\)|[^\n#;`\"'\\]+)")
# What calls replace or count, given as an object and the name of one of its attributes.
REPLACING = {"setattr", "object", "Calls"}
# Names that lead nowhere, and why; what a module of these holds does so, too.
ELSEWHERE = {
    "daskls.patience": "a key of Dask's configuration",
    "daskls.estimators.x": "made up: test_layers.py plants imports of it",
    "daskls.extra": "made up: test_layers.py plants imports of it",
    "daskls.solvers.cell": "made up: test_layers.py plants imports of it",
    "daskls.kernels.made": "tests/kernels/test_new_kernels.py registers it",
    "daskls.sources.json_lines": "tests/tables/test_formats.py registers it",
    # Modules that the worked examples of CONTRIBUTING add.
    "daskls.estimators.means": "added by mean_of_labels.patch",
    "daskls.methods.means.fit": "added by mean_of_labels.patch",
    "daskls.methods.means.method": "added by mean_of_labels.patch",
    "daskls.methods.cells.clusters": "added by kmeans_cells.patch",
    "daskls.partition.clusters": "added by kmeans_cells.patch",
}


def bound_names(tree):
    """Yield the public names of the classes and upper-case constants that a module binds."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
        for target in targets if isinstance(node, ast.Assign | ast.AnnAssign) else ():
            for name in ast.walk(target):
                # One letter is a type variable; a leading underscore is of its module alone.
                if isinstance(name, ast.Name) and name.id.isupper() and len(name.id) > 1:
                    yield name.id


def homes_of(sources):
    """Return the modules of each name, given (module, source) of all."""
    homes = defaultdict(set)
    for module, source in sources:
        for name in bound_names(ast.parse(source)):
            if not name.startswith("_"):
                homes[name].add(module)
    return homes


def test_every_public_class_and_constant_has_one_home():
    files = sorted(PACKAGE.rglob("*.py"))
    homes = homes_of((str(f.relative_to(PACKAGE)), f.read_text(encoding="utf-8")) for f in files)
    assert len(homes) > 300
    assert {name: sorted(at) for name, at in homes.items() if len(at) > 1} == {}


def test_a_second_home_is_found():
    sources = [
        ("a", "STEP, N_ROWS = 1, 2\nclass Search: ...\n_U = 1"),
        ("b", "N_ROWS: int = 2\n_U = 2"),
    ]
    homes = homes_of([*sources, ("c", "class Search(int): ...\nP = 1")])
    assert homes == {"STEP": {"a"}, "N_ROWS": {"a", "b"}, "Search": {"a", "c"}}


# Names as text


def written_names(text, is_code=False):
    """Return the dotted names of the package that a text writes, imports or replaces parts of."""
    # A page of the site has the name of what it describes.
    found = {name.removesuffix(".rst") for name in DOTTED.findall(text)}
    for module, names in IMPORTED.findall(text):
        firsts = (re.match(r"[\s(+]*(\w+)", name) for name in names.split(","))
        found |= {f"{module}.{first[1]}" for first in firsts if first}
    return found | set(replaced_names(ast.parse(text)) if is_code else ())


def replaced_names(tree):
    """Yield the dotted names of the attributes that calls replace, of what a module imports."""
    imported = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("daskls"):
            imported |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node) in REPLACING:
            for owner, name in pairwise(node.args):
                place = imported.get(getattr(owner, "id", None))
                value = getattr(name, "value", None)
                if place and isinstance(value, str) and value.isidentifier():
                    yield f"{place}.{value}"


def called(call):
    """Return the last part of the name of what is called."""
    return getattr(call.func, "attr", getattr(call.func, "id", None))


def leads_nowhere(name):
    """Whether neither a module nor what it holds has this name."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return True
    return False


def is_elsewhere(name):
    """Whether a name is an exception, or of one."""
    return name in ELSEWHERE or name.rpartition(".")[0] in ELSEWHERE


@pytest.mark.slow
def test_names_that_are_written_as_text_lead_somewhere():
    places = defaultdict(set)
    files = {path for pattern in WRITTEN for path in ROOT.glob(pattern)} - {Path(__file__)}
    for file in files:
        for name in written_names(file.read_text(encoding="utf-8"), file.suffix == ".py"):
            places[name].add(str(file.relative_to(ROOT)))
    assert len(places) > 500
    lost = {name: sorted(at) for name, at in places.items() if leads_nowhere(name)}
    assert {name: at for name, at in lost.items() if not is_elsewhere(name)} == {}
    # No exception outlives its reason.
    assert set(ELSEWHERE) <= set(lost)


def missing_of(page, words):
    """Return what a page names in backticks that no source names, and files that are not there."""
    names = re.findall(r"`((?:\w+\.)*[A-Za-z_]\w*)`", page)
    files = re.findall(r"`([\w./-]+\.(?:py|json|patch))`", page)
    lost = {name for name in names if name.rpartition(".")[2] not in words | {"py", "json"}}
    return lost | {file for file in files if not any(ROOT.glob(f"**/{file}"))}


@pytest.mark.slow
def test_pages_for_developers_name_what_there_is():
    sources = [
        path
        for pattern in ("daskls/**/*.py", "tests/**/*.py", "docs/*.py", "Makefile", "*.toml")
        for path in ROOT.glob(pattern)
        if path != Path(__file__)
    ]
    words = {word for path in sources for word in re.findall(r"[A-Za-z_]\w*", path.read_text())}
    for page in ("CONTRIBUTING.md", "docs/design.md"):
        assert missing_of((ROOT / page).read_text(), words) == set(), page
    gone = "by `zarr_place`, `store.no_such`, `BaseStore.put` of `store/objects.py`, `no_such.py`"
    assert missing_of(gone, words) == {"zarr_place", "store.no_such", "no_such.py"}


def test_every_mutation_has_a_place():
    """One that no longer applies would count as caught by nobody."""
    known = json.loads(mutations.RECORD.read_text(encoding="utf-8"))["mutations"]
    sources = mutations.read_package(ROOT)
    assert [own["name"] for own in known if not mutations.find_place(own, sources)] == []


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("patch.setattr('{}.run.gather.N_GATHERS', 1)", ["run.gather.N_GATHERS"]),
        ("# As {}.run.regroup.BUNDLE_BYTES says.", ["run.regroup.BUNDLE_BYTES"]),
        ("def f():\n    from {}.run import gather, regroup", ["run.gather"]),
        ("SCRIPT = 'from {}.run import gather; gather'", ["run.gather"]),
        ("from {}.run.scan import (\n    TargetScan,\n    held,\n)", ["run.scan.held"]),
        (
            "from {}.run import regroup as r\npatch.setattr(r, 'BUNDLE_BYTES', 1)",
            ["run.regroup.BUNDLE_BYTES"],
        ),
        ("from {}.run import regroup\nCalls(patch, regroup, 'held')", ["run.regroup.held"]),
        ("'{0}.VoronoiSVC.fit', '{0}.VoronoiSVC.rst', '{0}.plan.checks.N_GATHERS'", []),
    ],
)
def test_a_name_that_leads_nowhere_is_found(text, lost):
    names = written_names(text.format(PACKAGE.name), is_code=True)
    assert names
    assert [n.removeprefix("daskls.") for n in sorted(names) if leads_nowhere(n)] == lost
