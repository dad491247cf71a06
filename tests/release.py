"""Build the wheel and the sdist, install each in a clean environment, and use it there.

`python tests/release.py` (`make release-check`): the wheel and the sdist with the newest
dependencies, and the wheel with the oldest that pyproject.toml allows. `--only oldest` does one of
them. Everything is made in build/release; pip fetches what it needs.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build" / "release"
EXTRAS = ("plots", "tables")
BOUND = re.compile(r"^(?P<name>[\w.-]+)(\[[\w,]+\])?\s*>=\s*(?P<version>[\d.]+)$")


def read_project() -> dict:
    """Return the project's table of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def oldest_pins(project: dict) -> list[str]:
    """Return the oldest version of each dependency that is allowed, as pip's constraints.

    >>> oldest_pins({"dependencies": ["zarr>=3.1"], "optional-dependencies": {}})
    ['zarr==3.1']
    """
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(line for name in EXTRAS for line in extras.get(name, []))]
    return [pin_oldest(line) for line in wanted]


def pin_oldest(requirement: str) -> str:
    """Return the requirement at its lower bound; a requirement without one is an error."""
    bound = BOUND.match(requirement)
    if bound is None:
        raise ValueError(f"{requirement!r} has no lower bound; write it as name>=version.")
    return f"{bound['name']}=={bound['version']}"


def run(*command: object, cwd: Path = ROOT) -> None:
    """Run a command that must succeed, outside the tree's own environment."""
    print("$", *command, flush=True)
    subprocess.run([str(part) for part in command], cwd=cwd, check=True, env=bare_environment())


def bare_environment() -> dict[str, str]:
    """Return the environment without what would put the tree in front of the installation."""
    import os

    dropped = {"PYTHONPATH", "VIRTUAL_ENV"}
    return {name: value for name, value in os.environ.items() if name not in dropped}


def make_environment(name: str) -> Path:
    """Make a new virtual environment and return its Python."""
    folder = PLACE / name
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


def build() -> dict[str, Path]:
    """Build the sdist, and the wheel from it."""
    python = make_environment("tools")
    run(python, "-m", "pip", "install", "--quiet", "build")
    dist = PLACE / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    run(python, "-m", "build", "--outdir", dist, ROOT)
    return {"wheel": next(dist.glob("*.whl")), "sdist": next(dist.glob("*.tar.gz"))}


def try_out(name: str, package: Path, pins: list[str]) -> None:
    """Install a package in an environment of its own, and use it in an empty folder."""
    python = make_environment(name)
    constraints = PLACE / f"{name}.txt"
    constraints.write_text("\n".join([*pins, ""]))
    pip = (python, "-m", "pip")
    run(*pip, "install", "--quiet", "-c", constraints, f"{package}[{','.join(EXTRAS)}]")
    run(*pip, "check")
    empty = PLACE / f"{name}-folder"
    shutil.rmtree(empty, ignore_errors=True)
    empty.mkdir()
    shutil.copy(ROOT / "tests" / "smoke.py", empty)
    run(python, "smoke.py", empty, cwd=empty)


def main() -> None:
    """Build, install, use."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("wheel", "sdist", "oldest"))
    only = parser.parse_args().only
    built = build()
    tries = {
        "wheel": (built["wheel"], []),
        "sdist": (built["sdist"], []),
        "oldest": (built["wheel"], oldest_pins(read_project())),
    }
    for name, (package, pins) in tries.items():
        if only in (None, name):
            try_out(name, package, pins)
    print(f"{', '.join([only] if only else tries)}: installed and used, Python {sys.version[:6]}")


if __name__ == "__main__":
    main()
