"""The types of arrays check: mypy refuses one where another is due."""

import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from daskls import records

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PLANTED = """
from daskls.neighbors.balls import near_balls
from daskls.records import Codes, Float32, Float64, Frame, Mask, Reals, Regions, RowNumbers


def narrow(values: Float32) -> None: ...
def name(codes: Codes) -> None: ...
def find(numbers: RowNumbers) -> None: ...
def keep(mask: Mask) -> None: ...
def read(rows: Reals) -> None: ...


def plant(
    single: Float32, double: Float64, codes: Codes, numbers: RowNumbers, mask: Mask, own: Regions
) -> None:
    narrow(single)
    narrow(double)  # refused
    name(codes)
    name(mask)  # refused
    name(numbers)  # refused
    find(numbers)
    find(codes)  # refused
    keep(mask)
    keep(codes)  # refused
    read(single)
    read(double)
    read(mask)  # refused
    Frame(double)
    Frame(single)  # refused
    near_balls(double, 1.0, own, 0)
    near_balls(single, 1.0, own, 0)  # refused
    narrow(double.astype("f4"))
    narrow(single * double)  # refused
    keep(single > double)
"""
# Users name their classes as they like, and a store moves what its metadata describes.
OF_ANY_DTYPE = {"AnyArray", "Labels"}


def refused_lines(folder, source):
    """Return the lines of a planted module that mypy refuses under the project's settings."""
    (folder / "planted.py").write_text(source)
    settings = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(folder / "cache")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *settings, "planted.py"],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        check=False,
    )
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert errors, done.stdout + done.stderr
    assert all(line.startswith("planted.py:") for line in errors), done.stdout
    return {int(line.split(":")[1]) for line in errors}


def test_one_type_for_another_is_refused(tmp_path):
    expected = {
        number
        for number, line in enumerate(PLANTED.splitlines(), start=1)
        if line.endswith("# refused")
    }
    assert refused_lines(tmp_path, PLANTED) == expected


def dtype_of(alias):
    """Return what an alias of arrays says of their dtype."""
    return get_args(get_args(alias)[1])[0]


ALIASES = [
    name
    for name, found in vars(records).items()
    if not name.startswith("_") and "ndarray" in repr(found)
]


def test_aliases_are_found():
    assert {"Float32", "Codes", "Mask", *OF_ANY_DTYPE} <= set(ALIASES)


@pytest.mark.parametrize("name", ALIASES)
def test_an_alias_names_its_dtype(name):
    is_any = repr(dtype_of(getattr(records, name))) == "typing.Any"
    assert is_any == (name in OF_ANY_DTYPE)


def test_only_the_aliases_leave_a_dtype_open():
    sources = sorted((ROOT / "daskls").rglob("*.py"))
    found = [path.name for path in sources if "NDArray[Any]" in path.read_text(encoding="utf-8")]
    assert found == ["records.py"]
