"""Compilation before workers start, in a process that ends: once a machine, and once, not in each.

A process that compiles keeps some 200 MiB that one which reads the cache never takes.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import typer

__all__ = ["compile_ahead", "is_compiled"]


def is_compiled() -> bool:
    """Whether the solver of SVMs lies in the cache; also where no folder for one can be written."""
    from daskls.kernels.line import line_solver

    solver: Any = line_solver(unit=True, with_offset=False)
    kernel = getattr(solver, "func", solver)
    folder = getattr(getattr(kernel, "stats", None), "cache_path", None)
    return folder is None or any(Path(folder).glob(f"*.{kernel.__name__}-*.nbi"))


def compile_ahead(call: str) -> None:
    """Run a Python expression in a process of its own, unless this machine has compiled before.

    Parameters
    ----------
    call : str. Imports and runs what compiles.
    """
    if is_compiled():
        return
    typer.echo("Compiling, once on this machine.")
    # What fails here fails in the workers too, and is told from there.
    subprocess.run([sys.executable, "-c", call], capture_output=True, check=False)
