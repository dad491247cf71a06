"""The worked examples of CONTRIBUTING: they apply, touch few files, and keep every promise."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import few

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "docs" / "examples"
# Of each: the existing files it may change, those it adds at least, and what of it runs through the
# contract.
WORKED = {
    "mean_of_labels": (3, 1, {"CellMeanClassifier": {}}),
    "kmeans_cells": (2, 1, {"ClusterSVC": {"C": [1.0, 10.0], "gamma": [5.0, 20.0]}}),
    "squared_hinge": (1, 1, {"VoronoiSVC": {"loss": "squared_hinge"}}),
    "cauchy": (1, 1, {"VoronoiSVC": {"kernel": "cauchy"}}),
    "c_unit": (1, 0, {"VoronoiSVC": {"C_unit": "cell", "C": [60.0, 600.0]}}),
}
# What holds of them: the layers, the registries, the command line, every promise.
KEPT = (
    "tests/test_house.py::test_imports_keep_to_the_layers",
    "tests/test_house.py::test_no_code_asks_for_a_kernel_or_a_loss_by_its_name",
    "tests/test_cli_options.py",
    "tests/contract",
)
PARTS = ("daskls", "tests", "docs", "pyproject.toml")


def changed_files(patch):
    """Return the files that a patch changes, and those it adds."""
    pairs = re.findall(r"^--- (\S+)\n\+\+\+ b/(\S+)$", patch.read_text(), re.MULTILINE)
    changed = [new for old, new in pairs if old != "/dev/null"]
    return changed, [new for old, new in pairs if old == "/dev/null"]


def run(*command, cwd, **environment):
    """Run a command in a copy of the tree; fail with what it says."""
    done = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": f"{cwd}{os.pathsep}{cwd / 'tests'}", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.fixture
def copy(tmp_path):
    """Return a copy of the tree, with compiled code that its sources' content still names."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed, which applies the patches")
    for part in PARTS:
        source, target = ROOT / part, tmp_path / part
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.pyc*", "*.tmp.*"))
        else:
            shutil.copy(source, target)
    return tmp_path


def test_every_example_is_worked():
    assert {path.stem for path in EXAMPLES.glob("*.patch")} == set(WORKED)
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert all(f"docs/examples/{name}.patch" in text for name in WORKED)


@pytest.mark.parametrize("name", few(WORKED))
def test_an_example_applies_and_touches_few_files(name, copy):
    patch = EXAMPLES / f"{name}.patch"
    changed, added = changed_files(patch)
    most, least, _ = WORKED[name]
    assert 1 <= len(changed) <= most
    assert len(added) >= least
    run("git", "apply", patch, cwd=copy)
    assert all((copy / file).exists() for file in added)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKED)
def test_an_example_keeps_every_promise(name, copy):
    run("git", "apply", EXAMPLES / f"{name}.patch", cwd=copy)
    *_, variant = WORKED[name]
    command = (sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", *KEPT)
    run(*command, cwd=copy, DASKLS_CONTRACT=json.dumps(variant))
