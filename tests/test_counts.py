"""The script that counts lines, on a module that has each kind."""

from collections import Counter

from counts import kinds_of, part_of

SOURCE = '''"""Two
lines."""

import os
from a import (
    b,
)

# Alone.
X = "# no comment"  # Behind code.


def f():
    """One."""
    return """
# text
"""
'''


def test_every_line_has_one_kind():
    expected = {"docstrings": 3, "imports": 4, "comments": 1, "code": 5, "blanks": 4}
    assert Counter(kinds_of(SOURCE)) == expected


def test_parts_are_packages_and_folders():
    paths = ("daskls/cli/fit.py", "daskls/errors.py", "tests/kernels/test_gram.py", "setup.py")
    assert [part_of(path) for path in paths] == ["daskls/cli", "daskls", "tests", "."]
