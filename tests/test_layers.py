"""The layers of the package: no import runs back, or between two packages of one level.

Read from the syntax trees, so imports inside functions count, and nothing has to be imported.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from daskls.registry import METHODS, load_object
from daskls.run.contract import Method
from daskls.store.contents import SHARED_PARTS

pytestmark = pytest.mark.always

PACKAGE = Path(__file__).parents[1] / "daskls"
LEVELS = {
    "errors": 0,
    "records": 0,
    "seeds": 0,
    "_version": 0,
    "registry": 0,
    "parsed_code": 0,
    "kernels": 1,
    "targets": 1,
    "gaps": 1,
    "solvers": 2,
    "partition": 3,
    "neighbors": 2,
    "store": 2,
    "memory": 2,
    "plan": 3,
    "blas": 3,
    "workers": 3,
    "cluster": 4,
    "datasets": 5,
    "run": 5,
    "scaling": 6,
    "sources": 4,
    "methods": 7,
    "pipeline": 8,
    "live": 6,
    "plotting": 8,
    "estimators": 9,
    # The program on top of the library: the one user of all of it.
    "cli": 10,
    "__main__": 11,
}
# The public face names everything; the command line is built on it, as any user's code is.
FACE = "__init__"
MAY_USE_FACE = {"cli"}
ONLY_IMPORTER = {"zarr": "store", "sklearn.base": "estimators", "pynndescent": "neighbors"}


def unit_of(path, root):
    """Return the package or module of the first level that a file belongs to."""
    return path.relative_to(root).parts[0].removesuffix(".py")


def is_module(name, root):
    """Tell whether a dotted name below the package is a module, rather than something in one."""
    path = root.joinpath(*name.split(".")[1:])
    return path.is_dir() or path.with_suffix(".py").is_file()


def absolute_base(node, path, root):
    """Return the module that a ``from ... import`` names, with leading dots resolved."""
    if node.level == 0:
        return node.module
    folder = path.relative_to(root.parent).parent.parts
    folder = folder[: len(folder) - node.level + 1]
    return ".".join([*folder, node.module] if node.module else folder)


def imported_names(path, root):
    """Return (line, dotted module) of every import in a file, wherever it stands."""
    return imports_of(path.read_text(encoding="utf-8"), path, root)


@cache
def imports_of(source, path, root):
    return list(find_imports(source, path, root))


def find_imports(source, path, root):
    for node in ast.walk(ast.parse(source, str(path))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = absolute_base(node, path, root)
            ours = base.split(".")[0] == root.name
            for alias in node.names:
                full = f"{base}.{alias.name}"
                # From other packages `from a import b` may mean the module a.b.
                yield node.lineno, full if not ours or is_module(full, root) else base
        elif isinstance(node, ast.Call) and node.args:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else None
            called = node.func.id if isinstance(node.func, ast.Name) else called
            named = node.args[0]
            if called in {"import_module", "__import__"} and isinstance(named, ast.Constant):
                yield node.lineno, str(named.value)


def complaint(unit, name, root):
    """Return why ``unit`` must not import ``name``, or None."""
    if unit == FACE:
        return None
    for package, owner in ONLY_IMPORTER.items():
        if (name == package or name.startswith(f"{package}.")) and unit != owner:
            return f"only {owner}/ imports {package}"
    parts = name.split(".")
    if parts[0] != root.name:
        return None
    target = parts[1] if len(parts) > 1 else FACE
    if target == unit or (target == FACE and unit in MAY_USE_FACE):
        return None
    if target == FACE:
        return "an arrow back to the public face"
    if target not in LEVELS:
        return f"{target} has no level"
    if LEVELS[target] >= LEVELS[unit]:
        return f"L{LEVELS[unit]} {unit} -> L{LEVELS[target]} {target}"
    return None


def violations(root):
    """Return one line for each file without a level and each import that breaks a rule."""
    found = []
    for path in sorted(root.rglob("*.py")):
        unit = unit_of(path, root)
        where = path.relative_to(root.parent).as_posix()
        if unit != FACE and unit not in LEVELS:
            found.append(f"{where}: {unit} has no level")
            continue
        for line, name in imported_names(path, root):
            reason = complaint(unit, name, root)
            if reason is not None:
                found.append(f"{where}:{line}: imports {name} ({reason})")
    return found


def family_of(module):
    """Return the family that a module of methods/ belongs to, or None."""
    parts = module.split(".")
    is_family = (
        len(parts) > 2 and parts[1] == "methods" and (PACKAGE / "methods" / parts[2]).is_dir()
    )
    return parts[2] if is_family else None


def module_of(path, root):
    """Return the dotted name of a file's module."""
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def import_graph(root):
    """Return the modules of the package that each of them imports, wherever the import stands."""
    graph = {module_of(path, root): set() for path in root.rglob("*.py")}
    for path in root.rglob("*.py"):
        own = module_of(path, root)
        for _, name in imported_names(path, root):
            if name in graph and name != own:
                graph[own].add(name)
    return graph


def circles(graph):
    """Return the modules that import themselves by way of others."""
    reached = {module: set(targets) for module, targets in graph.items()}
    changed = True
    while changed:
        changed = False
        for targets in reached.values():
            more = set().union(*(reached[target] for target in targets)) - targets
            targets |= more
            changed |= bool(more)
    return sorted(module for module, targets in reached.items() if module in targets)


def test_no_family_imports_another():
    graph = import_graph(PACKAGE)
    families = {family_of(module) for module in graph} - {None}
    assert families >= {"cells", "neighborhoods", "landmarks", "sampling"}
    crossings = [
        (module, target)
        for module, targets in graph.items()
        for target in targets
        if family_of(target) and family_of(target) != family_of(module) and ".methods." in module
    ]
    assert crossings == []


def test_what_runs_work_knows_no_method():
    graph = import_graph(PACKAGE)
    users = [module for module in graph if module.split(".")[1:2] == ["run"]]
    assert len(users) > 10
    assert not [(m, t) for m in users for t in graph[m] if ".methods" in t]


def test_no_import_goes_in_a_circle():
    graph = import_graph(PACKAGE)
    assert "daskls.kernels.hinge" in set().union(*graph.values())
    # The face names all; the command line is built on it.
    own = {m: {t for t in ts if t != "daskls"} for m, ts in graph.items() if m != "daskls"}
    assert circles(own) == []
    assert circles({**own, "daskls.errors": {"daskls.cli"}}) != []


def test_methods_are_named_in_the_register_alone():
    """No name of a method is compared, or looked up, anywhere else."""
    named = {entry.name for entry in METHODS} - {""}
    found = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare):
                constants = [c for c in ast.walk(node) if isinstance(c, ast.Constant)]
                if named & {c.value for c in constants if isinstance(c.value, str)}:
                    found.append(f"{path.name}:{node.lineno}")
    assert found == []


def named_keys(source, keys):
    """Return the lines of a module that name one of some keys in a string that is no docstring."""
    tree = ast.parse(source)
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
        if keys & set(re.findall(r"[\w-]+", node.value))
    ]


def test_stores_know_no_method():
    """No key that only one method's parts have is named in store/."""
    tables = {load_object(entry.method).parts() for entry in METHODS}
    own = {part.top for table in tables for part in table} - {part.top for part in SHARED_PARTS}
    assert {"joint", "landmarks", "centers", "sampling"} <= own
    found = {
        path.name: lines
        for path in (PACKAGE / "store").rglob("*.py")
        if (lines := named_keys(path.read_text(encoding="utf-8"), own))
    }
    assert found == {}


def test_a_key_that_is_named_is_found():
    assert named_keys('"""Of centers."""\nA = "centers/x", 1', {"centers"}) == [2]
    assert named_keys('A = f"x/{a}/joint-{b}", "joints"', {"joint-", "joint"}) == [1]


def test_every_method_calls_itself_as_its_register_does():
    for entry in METHODS:
        method = load_object(entry.method)
        assert issubclass(method, Method)
        assert method.name == entry.name
        assert load_object(entry.estimator).__name__ == entry.estimator.partition(":")[2]


def test_no_import_runs_back():
    assert violations(PACKAGE) == []


def test_the_walk_sees_the_package():
    files = [path for path in PACKAGE.rglob("*.py") if path.parent.name in {"kernels", "solvers"}]
    seen = {name for path in files for _, name in imported_names(path, PACKAGE)}
    assert {"numpy", "numba", "daskls.records", "daskls.kernels.hinge"} <= seen


@pytest.fixture
def plant(tmp_path):
    """Return a function that writes one module into a small package and gives what is found."""
    root = tmp_path / "daskls"
    for name in ("kernels", "solvers", "store", "partition", "run", "estimators"):
        (root / name).mkdir(parents=True)
        (root / name / "__init__.py").touch()
    (root / "solvers" / "cell.py").write_text("import daskls.kernels\n")
    for name in ("records", "errors", "plan", "memory", "cli"):
        (root / f"{name}.py").write_text("import numpy\n")
    (root / "__init__.py").write_text("from daskls.estimators import x\nimport zarr\n")

    def write(file, source):
        (root / file).parent.mkdir(exist_ok=True)
        (root / file).write_text(source)
        return violations(root)

    return write


@pytest.mark.parametrize(
    ("file", "source", "found"),
    [
        ("kernels/a.py", "import daskls.solvers", "imports daskls.solvers (L1 kernels -> L2"),
        (
            "kernels/a.py",
            "from daskls.plan import bundles",
            "imports daskls.plan (L1 kernels -> L3",
        ),
        ("kernels/a.py", "from daskls import solvers", "imports daskls.solvers"),
        ("kernels/a.py", "from .. import solvers", "imports daskls.solvers"),
        ("kernels/a.py", "from ..solvers import cell", "imports daskls.solvers.cell"),
        ("kernels/a.py", "from ..solvers.cell import fit", "imports daskls.solvers.cell"),
        ("kernels/a.py", "import numpy, daskls.run as g", "imports daskls.run"),
        ("kernels/a.py", "def f():\n    import daskls.run", ":2: imports daskls.run"),
        ("kernels/a.py", "if 0:\n    from daskls import run", ":2: imports daskls.run"),
        ("kernels/a.py", "import_module('daskls.plan')", "imports daskls.plan"),
        ("kernels/a.py", "importlib.import_module('daskls.plan')", "imports daskls.plan"),
        ("kernels/a.py", "from daskls import VoronoiSVC", "back to the public face"),
        ("kernels/a.py", "import daskls", "back to the public face"),
        ("solvers/a.py", "import daskls.partition.tree", "L2 solvers -> L3 partition"),
        ("records.py", "import daskls.errors", "L0 records -> L0 errors"),
        ("memory.py", "import daskls.plan", "L2 memory -> L3 plan"),
        ("plotting/p.py", "import daskls.estimators", "L8 plotting -> L9 estimators"),
        ("run/a.py", "import zarr", "only store/ imports zarr"),
        ("run/a.py", "def f():\n    from zarr.errors import X", "only store/ imports zarr"),
        ("run/a.py", "from sklearn.base import clone", "only estimators/ imports sklearn.base"),
        ("run/a.py", "from sklearn import base", "only estimators/ imports sklearn.base"),
        ("run/a.py", "import sklearn.base as b", "only estimators/ imports sklearn.base"),
        ("extra/a.py", "import os", "extra has no level"),
        ("run/a.py", "import daskls.extra", "extra has no level"),
    ],
)
def test_a_planted_arrow_is_found(plant, file, source, found):
    lines = plant(file, source)
    assert len(lines) == 1
    assert lines[0].startswith(f"daskls/{file}")
    assert found in lines[0]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("kernels/a.py", "from daskls.records import KernelSpec"),
        ("kernels/a.py", "from daskls.kernels import hinge\nfrom . import b\nfrom .b import c"),
        ("store/a.py", "import zarr\nfrom zarr.storage import X"),
        ("estimators/a.py", "from sklearn.base import BaseEstimator\nimport daskls.run.scan"),
        ("solvers/a.py", "from sklearn.svm import SVC\nimport sklearn.metrics"),
        ("cli.py", "from daskls import VoronoiSVC, load"),
        ("run/a.py", "from daskls import plan, store\nimport zarrlike"),
    ],
)
def test_arrows_forward_are_allowed(plant, file, source):
    assert plant(file, source) == []


def test_each_level_of_the_design_is_planted_right(plant):
    # Every pair of units, in both directions: exactly one of them may import the other.
    for unit, level in LEVELS.items():
        file = f"{unit}.py" if level in {0, 3} else f"{unit}/planted.py"
        others = [target for target in LEVELS if target != unit]
        lines = plant(file, "\n".join(f"import daskls.{target}" for target in others))
        for number, target in enumerate(others, 1):
            refused = any(f"{file}:{number}:" in line for line in lines)
            assert refused == (LEVELS[target] >= level), (unit, target)
        plant(file, "")
