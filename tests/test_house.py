"""Rules of the code itself: layers, registers, one home a name, pages that name what there is."""

import ast
import pkgutil
import re
import subprocess
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from daskls.kernels.kernel import KERNELS, find_kernel
from daskls.registry import METHODS, load_object
from daskls.run.contract import Method
from daskls.solvers.registry import LOSSES
from daskls.store.contents import SHARED_PARTS

pytestmark = pytest.mark.always

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "daskls"
TREES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(PACKAGE.rglob("*.py"))
}


def test_imports_keep_to_the_layers():
    """As pyproject.toml lists them; in a process of its own, as it sets up logging."""
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stdout


# Registers

SOLVERS = [place for loss in LOSSES.values() for place in (loss.solver, loss.neighborhoods)]
ENTRIES = [*KERNELS.values(), *filter(None, SOLVERS)]
REGISTERS = {"kernels/kernel.py", "solvers/registry.py"}
HOMES = REGISTERS | {place.partition(":")[0].replace(".", "/") + ".py" for place in ENTRIES}
# Parameters and fields whose value a name is, where it is handed on and not asked for.
VALUES = {"kernel", "loss", "name"}
# What is a name in another sense: the paper's two projections, and a measure of errors.
ALLOWED = {
    "estimators/landmark.py": {"linear", "rbf"},
    "scaling/candidates.py": {"squared_error"},
    "cli/info.py": {"squared_error"},
}


def values_of(tree):
    """Return the ids of the constants that are a default, or a parameter's value in a call."""
    values = []
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            values += [*node.defaults, *node.kw_defaults]
        elif isinstance(node, ast.ClassDef):
            values += [field.value for field in node.body if isinstance(field, ast.AnnAssign)]
        elif isinstance(node, ast.Call) and called(node) not in ("find_kernel", "find_loss"):
            values += [word.value for word in node.keywords if word.arg in VALUES]
    return {id(value) for value in values}


def lines_that_ask(tree, names):
    """Return the lines that hold one of some names other than as a value that is handed on."""
    values = values_of(tree)
    return [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Constant) and node.value in names and id(node) not in values)
        or (isinstance(node, ast.keyword) and node.arg in names)
    ]


def called(call):
    """Return the last part of the name of what is called."""
    return getattr(call.func, "attr", getattr(call.func, "id", None))


def test_no_code_asks_for_a_kernel_or_a_loss_by_its_name():
    names = {*KERNELS, *(name for _, name in LOSSES)}
    found = {place: lines_that_ask(tree, names - ALLOWED.get(place, set())) for place, tree in
             TREES.items() if place not in HOMES}  # fmt: skip
    assert {place: lines for place, lines in found.items() if lines} == {}
    for source in ('kernel == "poly"', '{"rbf": 2.0}[kernel]', "dict(rbf=1)", 'P = ("rbf",)'):
        assert lines_that_ask(ast.parse(source), names)
    assert not lines_that_ask(ast.parse('def fit(loss="hinge"): Spec(kernel="rbf")'), names)


def test_no_code_compares_a_method_with_its_name():
    names = {entry.name for entry in METHODS} - {""}
    compared = [
        (place, node.lineno)
        for place, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        and names & {getattr(part, "value", None) for part in ast.walk(node)
                     if isinstance(getattr(part, "value", None), str)}
    ]  # fmt: skip
    assert compared == []


def test_stores_know_no_method():
    """No key that only one method's parts have is named in store/."""
    tables = {load_object(entry.method).parts() for entry in METHODS}
    keys = {part.top for table in tables for part in table} - {part.top for part in SHARED_PARTS}
    assert {"joint", "landmarks", "centers", "sampling"} <= keys
    for place, tree in TREES.items():
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            if place.startswith("store/") and id(node) not in docs
        ]
        assert not keys & {word for text in texts for word in re.findall(r"[\w-]+", text)}, place


def test_every_method_calls_itself_as_its_register_does():
    for entry in METHODS:
        method = load_object(entry.method)
        assert issubclass(method, Method)
        assert method.name == entry.name
        assert load_object(entry.estimator).__name__ == entry.estimator.partition(":")[2]


@pytest.mark.parametrize("name", KERNELS)
def test_traits_of_a_kernel_go_together(name):
    kernel = find_kernel(name)
    # What has a width is of distances, 0 between equal rows.
    assert not kernel.has_width or kernel.unit_diagonal
    assert not kernel.is_raced or (kernel.has_width and kernel.has_slopes)
    # Whatever methods of neighborhoods take, they can search: they have Euclidean distances.
    assert not kernel.is_everywhere or kernel.is_euclidean or kernel.is_power
    assert kernel.has_gamma or kernel.gamma_of(2.0) == 1.0


# Names


def bound_names(tree):
    """Yield the classes and upper-case constants that a module binds for others."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
        for target in targets if isinstance(node, ast.Assign | ast.AnnAssign) else ():
            for name in ast.walk(target):
                # One letter is a type variable.
                if isinstance(name, ast.Name) and name.id.isupper() and len(name.id) > 1:
                    yield name.id


def test_every_public_class_and_constant_has_one_home():
    homes = defaultdict(set)
    for place, tree in TREES.items():
        for name in bound_names(tree):
            if not name.startswith("_"):
                homes[name].add(place)
    assert len(homes) > 300
    assert {name: sorted(at) for name, at in homes.items() if len(at) > 1} == {}


# Where names of the package are written as text, which no import of the file would find missing.
WRITTEN = (
    *("tests/**/*.py", "tests/mutations.json", "benchmarks/**/*.py", "examples/*.py"),
    *("docs/**/*.md", "docs/*.py", "docs/examples/*.patch", "README.md", "CONTRIBUTING.md"),
)
DOTTED = re.compile(r"\bdaskls(?:\.[A-Za-z_]\w*)+")
# In scripts within strings, and where tests that run rarely import inside of a function.
IMPORTED = re.compile(r"\bfrom (daskls[.\w]*) import (\([^)]*\)|[^\n#;`\"'\\]+)")
# Names that lead nowhere, and why; what a module of these holds does so, too.
ELSEWHERE = {
    "daskls.patience": "a key of Dask's configuration",
    "daskls.kernels.made": "tests/kernels/test_new_kernels.py registers it",
    "daskls.sources.json_lines": "tests/tables/test_formats.py registers it",
    # Modules that the worked examples of CONTRIBUTING add.
    "daskls.estimators.means": "added by mean_of_labels.patch",
    "daskls.methods.means.fit": "added by mean_of_labels.patch",
    "daskls.methods.means.method": "added by mean_of_labels.patch",
    "daskls.methods.cells.clusters": "added by kmeans_cells.patch",
    "daskls.partition.clusters": "added by kmeans_cells.patch",
}


def written_names(text, is_code=False):
    """Return the dotted names of the package that a text writes, imports or replaces parts of."""
    # A page of the site has the name of what it describes.
    written = {name.removesuffix(".rst") for name in DOTTED.findall(text)}
    for module, names in IMPORTED.findall(text):
        firsts = (re.match(r"[\s(+]*(\w+)", name) for name in names.split(","))
        written |= {f"{module}.{first[1]}" for first in firsts if first}
    return written | set(replaced_names(ast.parse(text)) if is_code else ())


def replaced_names(tree):
    """Yield the dotted names of the attributes that monkeypatch replaces, or tests count."""
    imported = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("daskls"):
            imported |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node) in {"setattr", "object", "Calls"}:
            for owner, name in pairwise(node.args):
                place = imported.get(getattr(owner, "id", None))
                value = getattr(name, "value", None)
                if place and isinstance(value, str) and value.isidentifier():
                    yield f"{place}.{value}"


def leads_nowhere(name):
    """Whether neither a module nor what it holds has this name."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return True
    return False


@pytest.mark.slow
def test_names_that_are_written_as_text_lead_somewhere():
    places = defaultdict(set)
    for file in {path for pattern in WRITTEN for path in ROOT.glob(pattern)} - {Path(__file__)}:
        for name in written_names(file.read_text(encoding="utf-8"), file.suffix == ".py"):
            places[name].add(str(file.relative_to(ROOT)))
    lost = {name: sorted(at) for name, at in places.items() if leads_nowhere(name)}
    # No exception outlives its reason.
    assert set(ELSEWHERE) <= set(lost)
    elsewhere = {n for n in lost if n in ELSEWHERE or n.rpartition(".")[0] in ELSEWHERE}
    assert {name: at for name, at in lost.items() if name not in elsewhere} == {}


def missing_of(page, words):
    """Return what a page names in backticks that no source names, and files that are not there."""
    names = re.findall(r"`((?:\w+\.)*[A-Za-z_]\w*)`", page)
    files = re.findall(r"`([\w./-]+\.(?:py|json|patch))`", page)
    lost = {name for name in names if name.rpartition(".")[2] not in words | {"py", "json"}}
    return lost | {file for file in files if not any(ROOT.glob(f"**/{file}"))}


@pytest.mark.slow
def test_pages_for_developers_name_what_there_is():
    patterns = ("daskls/**/*.py", "tests/**/*.py", "docs/*.py", "Makefile", "*.toml")
    sources = {path for pattern in patterns for path in ROOT.glob(pattern)} - {Path(__file__)}
    words = {word for path in sources for word in re.findall(r"[A-Za-z_]\w*", path.read_text())}
    for page in ("CONTRIBUTING.md", "docs/design.md"):
        assert missing_of((ROOT / page).read_text(), words) == set(), page
    assert missing_of("by `store.no_such`, `BaseStore.put`", words) == {"store.no_such"}


def test_only_the_aliases_leave_the_dtype_of_an_array_open():
    sources = [path for path in PACKAGE.rglob("*.py") if "NDArray[Any]" in path.read_text("utf-8")]
    assert [path.name for path in sources] == ["records.py"]
