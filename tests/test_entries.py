"""Kernels and losses are entries of registries: no other code asks for one by its name.

Read from the syntax trees, as the layers are.
"""

import ast
from pathlib import Path

import pytest

from daskls.kernels.kernel import KERNELS, find_kernel, kernels_with
from daskls.solvers.registry import LOSSES, losses_of

pytestmark = pytest.mark.always

PACKAGE = Path(__file__).parents[1] / "daskls"
NAMES = {*KERNELS, *(name for _, name in LOSSES)}
SOLVERS = [own for loss in LOSSES.values() for own in (loss.solver, loss.neighborhoods) if own]
ENTRIES = [*KERNELS.values(), *SOLVERS]
CLASSES = {entry.partition(":")[2] for entry in ENTRIES}
# Where the names and the classes are at home.
REGISTRIES = {"kernels/kernel.py", "solvers/registry.py"}
HOMES = {entry.partition(":")[0].replace(".", "/") + ".py" for entry in ENTRIES}
# Parameters and fields whose value a name is, where it is given and not asked for.
VALUES = {"kernel", "loss", "name"}
# What is a name in another sense, file by file.
ALLOWED = {
    # The paper's two projections, one of which is linear.
    "estimators/landmark.py": {"linear", "rbf"},
    # A measure of errors.
    "scaling/candidates.py": {"squared_error"},
    "cli/info.py": {"squared_error"},
}


def given_values(tree):
    """Return the ids of the constants that are a default, or a value of a parameter in a call."""
    given = []
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            given += [*node.defaults, *node.kw_defaults]
        elif isinstance(node, ast.ClassDef):
            given += [own.value for own in node.body if isinstance(own, ast.AnnAssign)]
        elif isinstance(node, ast.Call) and not is_lookup(node.func):
            given += [own.value for own in node.keywords if own.arg in VALUES]
    return {id(own) for own in given if own is not None}


def is_lookup(function):
    """Whether a function looks an entry up: what it then gives is asked."""
    return isinstance(function, ast.Name) and function.id in ("find_kernel", "find_loss")


def is_a_name(node):
    """Whether an expression holds the name of a kernel or of a loss, by what it is called."""
    last = getattr(node, "attr", getattr(node, "id", ""))
    owner = getattr(getattr(node, "value", None), "attr", getattr(node, "value", None))
    owner = getattr(owner, "id", owner)
    return last in ("kernel", "loss") or (last == "name" and owner in ("kernel", "loss", "spec"))


def asked_for(tree, allowed=()):
    """Yield the line of each place that may branch on a name, or on what has it.

    A name is a value where it is given as one; all else could be a branch: a comparison, a table,
    a constant that stands for it.
    """
    given = given_values(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            is_asking = isinstance(node.value, str) and node.value in NAMES.difference(allowed)
            is_asking = is_asking and id(node) not in given
        elif isinstance(node, ast.keyword):
            # A table made by dict().
            is_asking = node.arg in NAMES.difference(allowed)
        elif isinstance(node, ast.Call):
            function = node.func
            # A method of text.
            is_asking = isinstance(function, ast.Attribute) and hasattr(str, function.attr)
            is_asking = is_asking and is_a_name(function.value)
        elif isinstance(node, ast.Name):
            is_asking = node.id in CLASSES
        elif isinstance(node, ast.Attribute):
            is_asking = node.attr in CLASSES
        elif isinstance(node, ast.alias):
            is_asking = node.name.rpartition(".")[2] in CLASSES
        else:
            continue
        if is_asking:
            yield node.lineno


def test_no_code_asks_for_a_kernel_or_a_loss_by_its_name():
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        if place not in REGISTRIES | HOMES:
            lines = asked_for(ast.parse(path.read_text()), ALLOWED.get(place, ()))
            found += [f"{place}:{line}" for line in lines]
    assert found == []


def test_what_is_allowed_is_there():
    for place, names in ALLOWED.items():
        tree = ast.parse((PACKAGE / place).read_text())
        assert names <= {own.value for own in ast.walk(tree) if isinstance(own, ast.Constant)}


@pytest.mark.parametrize(
    "source",
    [
        'kernel == "poly"',
        'spec.loss in ("hinge", other)',
        'match loss:\n    case "hinge":\n        pass',
        '{"rbf": 2.0, "exponential": 1.0}[kernel]',
        # The same by another name.
        'PRODUCTS = ("linear", "poly")\nkernel in PRODUCTS',
        'POLY = "poly"\nkernel == POLY',
        'POLY: str = "poly"\nkernel == POLY',
        'frozenset({"rbf", "exponential"})',
        # Tables.
        '{"rbf": 1}[kernel]',
        '{"rbf": 1, "auto": 2}[kernel]',
        "dict(rbf=1)[kernel]",
        '[("rbf", 1), ("other", 2)]',
        '("rbf",).index(kernel)',
        # Other ways to compare.
        'kernel.startswith("exp")',
        'spec.kernel.endswith("y")',
        'model.kernel.name.startswith("exp")',
        'kernel.__eq__("rbf")',
        'operator.eq(kernel, "rbf")',
        'find_kernel("rbf") is find_kernel(kernel)',
        'find_kernel(name="rbf")',
        "isinstance(find_kernel(kernel), Polynomial)",
        "from daskls.kernels.standard import Polynomial",
        "isinstance(kernel, inner.Polynomial)",
        # Hand-written lists of what is taken.
        'StrOptions({"rbf", "linear"})',
        'StrOptions({"rbf"})',
        'evaluate(steps, spread, ("rbf",), grid)',
    ],
)
def test_whoever_asks_is_seen(source):
    assert list(asked_for(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        'SolverSpec(kernel="linear", loss="hinge")',
        'def fit(kernel="rbf", *, loss: str = "hinge"):\n    pass',
        'class Spec:\n    kernel: str = "rbf"',
        "f'pass kernel=\"rbf\", not {kernel!r}'",
        '"""Of "rbf" alone."""',
    ],
)
def test_what_names_a_value_is_not_asking(source):
    assert not list(asked_for(ast.parse(source)))


@pytest.mark.parametrize("name", KERNELS)
def test_traits_of_a_kernel_go_together(name):
    kernel = find_kernel(name)
    # What has a width is of distances, 0 between equal rows.
    assert not kernel.has_width or kernel.unit_diagonal
    assert not kernel.is_raced or (kernel.has_width and kernel.has_slopes)
    # Whatever methods of neighborhoods take, they can search: they have Euclidean distances.
    assert not kernel.is_everywhere or kernel.is_euclidean or kernel.is_power
    assert not (kernel.has_width and kernel.is_everywhere) or kernel.is_euclidean
    assert kernel.has_gamma or kernel.gamma_of(2.0) == 1.0


def test_names_come_in_the_order_of_the_registries():
    everywhere = kernels_with("is_everywhere")
    assert {"rbf", "linear", "poly"} <= {*everywhere} < {*KERNELS}
    assert [name for name in KERNELS if name in everywhere] == list(everywhere)
    assert {"hinge", "squared_error"} <= {*losses_of("classes")}
