"""A store is handed on as its back end or its location: no `.path` is asked for outside `Folder`.

Read from the syntax trees; each exception is a file, what of it has a path, and the reason.
"""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "daskls"
MODULE = "store/folder.py"
# Of the standard library.
MODULES = {"os", "sys"}
# Files of users: what is read as tables and arrays, and what is written of them.
USERS = ("datasets/", "sources/")
DATA_SET = "a data set of a user"
ARRAY = "an array of a user, or predictions"
EXCEPTIONS = {
    "estimators/tables.py": {"dataset": DATA_SET, "write_features": DATA_SET},
    "live/dashboard.py": {"link": "a URL in parts"},
    "methods/to_zarr.py": {"output": ARRAY},
    "run/blocks.py": {"handle": ARRAY},
    "run/confusion.py": {"dataset": DATA_SET},
    "run/rows.py": {"handle": ARRAY, "dataset": DATA_SET},
    "store/arrays.py": {"self": ARRAY, "source.store_path": "Zarr's"},
    "store/dataset.py": {"self": DATA_SET},
}


def owner_of(node):
    """Return what an attribute is of: a dotted name, or the name of what is called."""
    value = node.value.func if isinstance(node.value, ast.Call) else node.value
    return ast.unparse(value)


def paths_in(root):
    """Return, by file, what is asked for its `.path`."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        file = path.relative_to(root).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr == "path"]
        own = {owner_of(node) for node in nodes} - MODULES
        if own and file != MODULE and not file.startswith(USERS):
            found[file] = own
    return found


def test_no_path_is_asked_for_outside_the_folder():
    # Nothing beside the exceptions, and no exception that is needed no more.
    assert paths_in(PACKAGE) == {file: set(own) for file, own in EXCEPTIONS.items()}


@pytest.mark.parametrize(
    "source",
    ["root.path / 'x'", "f(reader.path)", "self.path = 1", "Root.open(x).path", "f'{a.b.path}'"],
)
def test_a_planted_path_is_found(tmp_path, source):
    (tmp_path / "a.py").write_text(source)
    assert list(paths_in(tmp_path)) == ["a.py"]


@pytest.mark.parametrize("source", ["os.path.join(a)", "sys.path", "path.name", "x.paths"])
def test_other_names_are_none(tmp_path, source):
    (tmp_path / "a.py").write_text(source)
    assert paths_in(tmp_path) == {}
