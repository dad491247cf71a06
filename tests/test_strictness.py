"""The suite's strictness is live: a warning, an unexpected pass and an unknown marker each fail."""

import subprocess
import sys
from pathlib import Path

import pytest
from support import few

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
PLANTED = {
    "a warning": "import warnings\ndef test_it():\n    warnings.warn('planted')\n",
    "an unexpected pass": "import pytest\n@pytest.mark.xfail\ndef test_it():\n    pass\n",
    "an unknown marker": "import pytest\n@pytest.mark.planted\ndef test_it():\n    pass\n",
}


def run_planted(source, folder):
    """Return the exit code of pytest on one planted test under the project's settings."""
    test = folder / "test_planted.py"
    test.write_text(source)
    command = [sys.executable, "-m", "pytest", "-c", str(PROJECT), "-p", "no:cacheprovider"]
    done = subprocess.run([*command, str(test)], capture_output=True, cwd=folder, check=False)
    return done.returncode


@pytest.mark.parametrize("kind", few(PLANTED))
def test_what_is_planted_fails(kind, tmp_path):
    assert run_planted(PLANTED[kind], tmp_path) in {1, 2}


def test_a_clean_test_passes(tmp_path):
    assert run_planted("def test_it():\n    assert True\n", tmp_path) == 0
