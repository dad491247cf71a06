"""The suite's strictness is live: a warning, an unexpected pass and an unknown marker each fail."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
PLANTED = {
    "warning": "import warnings\ndef test_it():\n    warnings.warn('planted')\n",
    "unexpected_pass": "import pytest\n@pytest.mark.xfail\ndef test_it():\n    pass\n",
    "unknown_marker": "import pytest\n@pytest.mark.planted\ndef test_it():\n    pass\n",
    "clean": "def test_it():\n    assert True\n",
}


@pytest.mark.slow
def test_what_is_planted_fails_and_a_clean_test_passes(tmp_path):
    for name, source in PLANTED.items():
        (tmp_path / f"test_{name}.py").write_text(source)
    command = [sys.executable, "-m", "pytest", "-c", str(PROJECT), "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-rA", "--continue-on-collection-errors", str(tmp_path)],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    found = re.findall(r"^(PASSED|FAILED|ERROR) .*?test_(\w+)\.py", done.stdout, re.MULTILINE)
    assert {name: came for came, name in found} == {
        "warning": "FAILED",
        "unexpected_pass": "FAILED",
        "unknown_marker": "ERROR",
        "clean": "PASSED",
    }
    assert done.returncode
