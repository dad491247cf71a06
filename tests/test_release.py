"""What a release says of itself is true: bounds, version, citation, classifiers."""

import re
from pathlib import Path

from release import oldest_pins, read_project

import daskls

ROOT = Path(__file__).parents[1]
CITATION = (ROOT / "CITATION.cff").read_text("utf-8")


def test_every_dependency_has_a_lower_bound():
    pins = oldest_pins(read_project())
    assert {"zarr", "numba"} < {pin.partition("==")[0] for pin in pins}


def test_the_citation_is_of_this_version():
    assert re.search(r"^version: (.+)$", CITATION, re.MULTILINE)[1] == daskls.__version__
    assert re.search(r"^license: (.+)$", CITATION, re.MULTILINE)[1] == read_project()["license"]
    for field in ("cff-version", "title", "message", "authors", "references"):
        assert re.search(rf"^{field}:", CITATION, re.MULTILINE)


def test_the_change_log_has_the_version():
    assert f"## {daskls.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")
