"""Every block of code on a page of the site, and in the README, runs as it is printed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pages import read_blocks

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
RUNNER = ROOT / "tests" / "pages.py"
# Made by `make docs`, and the journal of changes; CONTRIBUTING's commands are run by other tests.
MADE = ("api/generated", "commands.md", "gallery", "measured")
PAGES = [
    path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if not path.relative_to(ROOT / "docs" if path.name != "README.md" else ROOT)
    .as_posix()
    .startswith(MADE)
]
CODED = [page for page in PAGES if any(not block.excuse for block in read_blocks(page))]
# Of what keeps a block from running.
EXCUSES = ("installs", "needs", "the whole suite")


def run_page(page, folder):
    """Run a page as a person would who copies its blocks into an empty folder."""
    here = Path(sys.executable).parent
    env = {
        **os.environ,
        "PATH": f"{here}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "MPLBACKEND": "agg",
    }
    command = [sys.executable, "-W", "error", str(RUNNER), str(page)]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("page", CODED, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_code_of_a_page_runs(page, tmp_path):
    done = run_page(page, tmp_path)
    assert not done.returncode, done.stdout[-3000:] + done.stderr[-3000:]


def test_blocks_that_do_not_run_say_why():
    excuses = [block.excuse for page in PAGES for block in read_blocks(page) if block.excuse]
    assert all(excuse.startswith(EXCUSES) for excuse in excuses), excuses


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("```python\n1 + 1  # -> 3\n```\n", "gives 2, the page says 3"),
        ("```python\nraise KeyError('gone')\n```\n", "KeyError: 'gone'"),
        ("```bash\nfalse | cat\n```\n", "ended with 1"),
    ],
)
def test_what_fails_is_seen(code, said, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# A page\n\n{code}")
    done = run_page(page, tmp_path)
    assert done.returncode
    assert said in done.stderr
