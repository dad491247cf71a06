"""Breaks the code at random places, one at a time: each must fail the test that it names.

PYTHONPATH=tests python -m mutations [NAME ...]

`mutations.json` holds them: a piece of source, unique in the package, what takes its place, and a
test of `make test`. The pieces were drawn at random from kernels, solvers, partitions, stores and
fits.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Tests that `make nojit` runs.
PLAIN = ("tests/kernels/", "tests/solvers/")
MUTATIONS = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def find_place(mutation):
    """Return the one file of the package that holds a mutation's piece, below the root."""
    places = [
        path.relative_to(ROOT)
        for path in sorted((ROOT / "daskls").rglob("*.py"))
        for _ in range(path.read_text(encoding="utf-8").count(mutation["old"]))
    ]
    if len(places) != 1:
        raise LookupError(f"{mutation['name']}: its piece is in {len(places)} places, not in one.")
    return places[0]


def is_caught(mutation):
    """Whether the test that a mutation names, which passes without it, fails with it."""
    place = find_place(mutation)
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(ROOT / "daskls", Path(copy, "daskls"))
        source = (ROOT / place).read_text(encoding="utf-8")
        Path(copy, place).write_text(source.replace(mutation["old"], mutation["new"]))
        # Kernels run as Python, where their own tests are made for it: to compile takes a minute.
        plain = place.parts[1] == "kernels" and mutation["test"].startswith(PLAIN)
        return not passes(mutation["test"], copy, NUMBA_DISABLE_JIT=str(int(plain)))


def passes(test, package, **environment):
    """Whether a test passes with the package that lies in a folder."""
    options = ("-p", "no:cacheprovider", "-c", ROOT / "pyproject.toml", f"--rootdir={ROOT}")
    command = [sys.executable, "-m", "pytest", "-x", "-q", *options, ROOT / test]
    path = os.pathsep.join([package, str(ROOT / "tests")])
    env = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "", "OMP_NUM_THREADS": "1"}
    env |= environment
    text = {"capture_output": True, "text": True}
    done = subprocess.run([*map(str, command)], cwd=package, env=env, **text)
    # Neither passed nor failed: the test is not there.
    if done.returncode not in (0, 1, 2):
        raise LookupError(done.stdout[-2000:] + done.stderr[-2000:])
    return done.returncode == 0


if __name__ == "__main__":
    wanted = [m for m in MUTATIONS if not sys.argv[1:] or m["name"] in sys.argv[1:]]
    survived = []
    for mutation in wanted:
        if not is_caught(mutation):
            survived.append(mutation["name"])
        print(mutation["name"], "SURVIVED" if survived[-1:] == [mutation["name"]] else "caught")
    sys.exit(f"survived: {', '.join(survived)}" if survived else 0)
