"""One name, one thing: no two modules define a class or a constant of the same name."""

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "daskls"


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
