"""Every public name is described: parameters, shapes, units, errors, source, an example."""

import doctest
import inspect
import re
from pathlib import Path

import pytest

import daskls
import daskls.datasets
import daskls.plotting

pytestmark = pytest.mark.always

PAGE = Path(__file__).parents[1] / "docs" / "api" / "index.md"
MODULES = (daskls, daskls.plotting, daskls.datasets)
NAMES = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in MODULES
    for name in module.__all__
    if name != "__version__"
}
ERRORS = {n for n, own in NAMES.items() if inspect.isclass(own) and issubclass(own, Exception)}
DISPLAYS = {n for n in NAMES if n.startswith("daskls.plotting.")}
DESCRIBED = sorted(NAMES)
# Ours alone: there is no paper to name.
NO_SOURCE = {
    *ERRORS, *DISPLAYS,
    "daskls.TableEncoder", "daskls.load", "daskls.datasets.bayes_accuracy",
    "daskls.datasets.convert", "daskls.datasets.write",
}  # fmt: skip
ENTRY = re.compile(r"^(?P<names>\*{0,2}\w[\w, *]*?)( : (?P<type>.*)|,)?$")


def sections(own):
    """Return a docstring's sections by title; what stands before them is ''."""
    found = {"": []}
    title = ""
    lines = (inspect.getdoc(own) or "").splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if below and set(below) == {"-"} and len(below) == len(line):
            title = line
            found[title] = []
        elif set(line) != {"-"} or not line:
            found[title].append(line)
    return found


def entries(section):
    """Return what a section says of each name, type and text in one."""
    found, current = {}, ()
    for line in section:
        match = None if line.startswith(" ") else ENTRY.match(line)
        if match:
            current = tuple(name.strip(" *") for name in match["names"].split(",") if name)
            found.update(dict.fromkeys(current, match["type"] or ""))
        else:
            for name in current:
                found[name] += " " + line.strip()
    return found


def parameters(own):
    """Return the names that a call takes, without self."""
    return set(inspect.signature(own).parameters) - {"self", "cls"}


def public_methods(own):
    """Return the methods of a class that daskls defines."""
    return {
        name: method
        for name, method in inspect.getmembers(own, inspect.isroutine)
        if name[0] != "_" and (method.__module__ or "").startswith("daskls.")
    }


METHODS = {
    f"{name}.{method}": function
    for name, own in NAMES.items()
    if inspect.isclass(own) and name not in ERRORS
    for method, function in public_methods(own).items()
}


@pytest.mark.parametrize("name", sorted(set(DESCRIBED) - ERRORS))
def test_every_parameter_is_described_and_no_other(name):
    assert set(entries(sections(NAMES[name]).get("Parameters", []))) == parameters(NAMES[name])


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_parameter_of_a_method_is_described_and_no_other(name):
    assert set(entries(sections(METHODS[name]).get("Parameters", []))) == parameters(METHODS[name])


@pytest.mark.parametrize("name", sorted(set(DESCRIBED) - NO_SOURCE))
def test_the_source_is_named(name):
    parts = sections(NAMES[name])
    notes = " ".join(parts.get("Notes", []))
    assert parts.get("References") or re.search(r"Source:|Ours|paper", notes)


@pytest.mark.parametrize("name", DESCRIBED)
def test_an_example_runs(name):
    own = NAMES[name]
    examples = doctest.DocTestParser().get_examples("\n".join(sections(own)["Examples"]))
    assert not any(doctest.SKIP in example.options for example in examples)
    assert own.__name__ in "".join(example.source + example.want for example in examples)
    # Modules are collected by pytest with their doctests; what they import is not theirs.
    assert own.__module__.startswith("daskls.")


def test_the_site_lists_every_public_name_and_no_other():
    listed = set()
    for part in PAGE.read_text("utf-8").split(".. currentmodule:: ")[1:]:
        module, *lines = part.split("```")[0].splitlines()
        listed |= {f"{module}.{x.strip()}" for x in lines if re.fullmatch(r" {3}[A-Za-z]\w*", x)}
    assert listed == set(NAMES)
