"""What checks the built site sees what is wrong with it; pages say no more than there is."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from daskls.registry import METHODS

ROOT = Path(__file__).parents[1]
CHECK = ROOT / "docs" / "check_links.py"


def check(site):
    command = [sys.executable, str(CHECK), str(site)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("link", "is_whole"),
    [
        ('<a href="b.html#there">', True),
        ('<a href="b.html#gone">', False),
        ('<a href="#gone">', False),
        ('<a href="c.html">', False),
        ('<img src="b.png">', False),
        ('<a href="https://zarr.dev/gone">', True),
    ],
)
def test_links_that_lead_nowhere_are_seen(link, is_whole, tmp_path):
    (tmp_path / "a.html").write_text(link)
    (tmp_path / "b.html").write_text('<p id="there">')
    done = check(tmp_path)
    assert (done.returncode == 0) == is_whole
    assert is_whole or "a.html: " in done.stdout


@pytest.mark.parametrize("name", [entry.estimator.partition(":")[2] for entry in METHODS])
def test_every_method_has_a_page_with_a_picture_and_its_papers_notation(name):
    pages = [page.read_text("utf-8") for page in (ROOT / "docs" / "methods").glob("*.md")]
    own = [text for text in pages if re.match(rf"# .*\b{name}\b", text)]
    assert len(own) == 1
    assert "](../gallery/images/" in own[0]
    assert re.search(r"## The papers?'s? notation", own[0])
    assert re.search(rf"^(?:from daskls import|    ).*\b{name}\b", own[0], re.MULTILINE)
