"""Classes of the package as their sources have them, read without importing them.

The help of the command line comes from docstrings, whose modules take seconds to import: NumPy,
Numba, scikit-learn, Zarr and Dask come with them.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent


@cache
def _read(module: str) -> ast.Module:
    path = PACKAGE.joinpath(*module.split(".")).with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8"))


def class_at(place: str) -> ast.ClassDef:
    """Return the class at ``module:class``, both below the package."""
    module, _, name = place.partition(":")
    classes = (node for node in _read(module).body if isinstance(node, ast.ClassDef))
    return next(node for node in classes if node.name == name)


def _lineage(place: str) -> Iterator[ast.ClassDef]:
    """Yield a class, and those of the package that it is derived from, nearest first."""
    definition, module = class_at(place), place.partition(":")[0]
    yield definition
    tree = _read(module)
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    places = {
        name.name: f"{node.module.removeprefix('daskls.')}:{name.name}"
        for node in imports
        if node.module and node.module.startswith("daskls.")
        for name in node.names
    }
    places |= {n.name: f"{module}:{n.name}" for n in tree.body if isinstance(n, ast.ClassDef)}
    for base in definition.bases:
        if isinstance(base, ast.Name) and base.id in places:
            yield from _lineage(places[base.id])


def defaults_of(place: str) -> dict[str, Any]:
    """Return the parameters of a class, in the order of its signature, with their defaults.

    >>> defaults_of("estimators.chunks:RandomChunkSVC")["cv"]
    5
    """
    bodies = (node for definition in _lineage(place) for node in definition.body)
    functions = (node for node in bodies if isinstance(node, ast.FunctionDef))
    arguments = next(node for node in functions if node.name == "__init__").args
    by_place = dict(zip(arguments.args[::-1], arguments.defaults[::-1], strict=False))
    by_name = dict(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
    pairs = [(arg, by_place.get(arg)) for arg in arguments.args[1:]] + [*by_name.items()]
    return {arg.arg: _value_of(node) for arg, node in pairs}


def _value_of(node: ast.expr | None) -> Any:
    """Return a literal; of an expression its text, and None of nothing."""
    if node is None:
        return None
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)


def _bound_in(body: list[ast.stmt]) -> dict[str, Any]:
    """Return the names that a module or a class binds, with their values."""
    bound = [node for node in body if isinstance(node, ast.Assign | ast.AnnAssign)]
    targets = [node.targets[0] if isinstance(node, ast.Assign) else node.target for node in bound]
    pairs = zip(targets, bound, strict=True)
    return {name.id: _value_of(node.value) for name, node in pairs if isinstance(name, ast.Name)}


def constants_of(place: str) -> dict[str, Any]:
    """Return the attributes of a class that are literals, inherited ones too.

    >>> constants_of("kernels.standard:Exponential")["is_raced"]
    True
    """
    by_class = [_bound_in(node.body) for node in _lineage(place)]
    return {name: value for constants in reversed(by_class) for name, value in constants.items()}


def constant_of(module: str, name: str) -> Any:
    return _bound_in(_read(module).body)[name]
