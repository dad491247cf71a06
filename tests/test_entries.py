"""Kernels and losses are entries of registries: no other code asks for one by its name.

Read from the syntax trees, as the layers are.
"""

import ast
from pathlib import Path

import pytest

from daskls.kernels.registry import KERNELS, find_kernel, kernels_with
from daskls.solvers.registry import LOSSES, losses_of

PACKAGE = Path(__file__).parents[1] / "daskls"
NAMES = {*KERNELS, *(name for _, name in LOSSES)}


def names_in(node):
    """Yield the text constants of an operand: itself, or those of a tuple, list, set or dict."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def asked_for(tree):
    """Yield the line of each place that branches on a name: comparisons, cases, tables of names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            asked = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            asked = [node.value]
        elif isinstance(node, ast.Dict):
            keys = [key for key in node.keys if key is not None]
            asked = keys if all(NAMES.intersection(names_in(key)) for key in keys) else []
        else:
            continue
        if any(NAMES.intersection(names_in(own)) for own in asked):
            yield node.lineno


def test_no_code_asks_for_a_kernel_or_a_loss_by_its_name():
    registries = {PACKAGE / "kernels" / "registry.py", PACKAGE / "solvers" / "registry.py"}
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path not in registries
        for line in asked_for(ast.parse(path.read_text()))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        'kernel == "poly"',
        'spec.loss in ("hinge", other)',
        'match loss:\n    case "hinge":\n        pass',
        '{"rbf": 2.0, "exponential": 1.0}[kernel]',
    ],
)
def test_whoever_asks_is_seen(source):
    assert list(asked_for(ast.parse(source)))


@pytest.mark.parametrize(
    "source", ['SolverSpec(kernel="linear", loss="hinge")', '{"squared_error": 0.1, "error": 0.2}']
)
def test_what_names_a_value_is_not_asking(source):
    assert not list(asked_for(ast.parse(source)))


@pytest.mark.parametrize("name", KERNELS)
def test_traits_of_a_kernel_go_together(name):
    kernel = find_kernel(name)
    # What has a width is of distances, 0 between equal rows; searches have Euclidean ones.
    assert not kernel.has_width or kernel.unit_diagonal
    assert not (kernel.has_width and kernel.is_everywhere) or kernel.is_euclidean
    assert not kernel.is_raced or kernel.has_width
    assert kernel.has_gamma or kernel.gamma_of(2.0) == 1.0


def test_names_come_in_the_order_of_the_registries():
    everywhere = kernels_with("is_everywhere")
    assert {"rbf", "linear", "poly"} <= {*everywhere} < {*KERNELS}
    assert [name for name in KERNELS if name in everywhere] == list(everywhere)
    assert {"hinge", "squared_error"} <= {*losses_of("classes")}
