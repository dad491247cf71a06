"""What `make notebooks` would not let pass: errors, warnings, red text."""

import subprocess
import sys
from pathlib import Path

import pytest
from support import python_env

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def execute(notebook):
    """Execute a notebook as `make notebooks` does."""
    env = python_env()
    # With it a kernel does not show what other processes write.
    env.pop("PYTEST_CURRENT_TEST", None)
    command = [sys.executable, str(NOTEBOOKS / "execute.py"), str(notebook)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("import warnings; warnings.warn('mind the gap')", "UserWarning: mind the gap"),
        # Its reader is a thread: what arrives between two cells belongs to none.
        ("import os, time; os.write(2, b'from a worker'); time.sleep(3)", "from a worker"),
        ("raise KeyError('gone')", "gone"),
    ],
    ids=["warning", "another process", "error"],
)
def test_what_is_red_is_seen(cell, said, tmp_path):
    notebook = tmp_path / "one.py"
    notebook.write_text(f"# %%\n{cell}\n\n# %%\n1 + 1\n")
    done = execute(notebook)
    assert done.returncode == 1
    assert said in done.stderr


@pytest.mark.slow
def test_what_is_clean_passes(tmp_path):
    notebook = tmp_path / "one.py"
    notebook.write_text("# %%\nprint('as it should be')\n")
    done = execute(notebook)
    assert not done.returncode
    assert "one.py" in done.stdout
