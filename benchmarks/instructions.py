"""Vector instructions of the compiled solver, counted in the assembly of each function."""

import json
import os
import re
import subprocess
import sys
from collections import Counter

from benchmarks.peers import FitCell
from benchmarks.suite import Experiment, Journal, Record, Run, table
from benchmarks.suite.apart import ROOT
from daskls._version import __version__
from daskls.datasets import make_noisy28

INSTRUCTIONS = {
    "zmm": r"zmm",
    "ymm": r"ymm",
    "fused": r"^vfn?m(add|sub)\w*p[sd]\b",
    "vmaxps": r"^vmaxps\b",
    "vminps": r"^vminps\b",
    "vdivps": r"^vdivps\b",
    # A maximum over 64 bit integers does half as much an instruction as one over 32 bits.
    "vpmax 32": r"^vpmax[su]d\b",
    "vpmax 64": r"^vpmax[su]q\b",
}


def measure(run: Run, version: str) -> Record:
    """Count in a process that compiles: what is loaded from the cache has no assembly."""
    code = "import json; from benchmarks import instructions as i; print(json.dumps(i.compiled()))"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(run.folder / "cache")}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return {"functions": json.loads(done.stdout)}


def compiled() -> list[Record]:
    """Return the instructions of each function that a search compiled."""
    FitCell().fit(*make_noisy28(200))
    kernels = {name: m for name, m in sys.modules.items() if name.startswith("daskls.kernels.")}
    # By identity: a function is known to each module that imports it.
    functions = {
        id(function): function
        for module in kernels.values()
        for function in vars(module).values()
        if hasattr(function, "inspect_asm")
    }
    return [
        {"name": f"{function.__module__}.{function.__name__}", **count(assembly)}
        for function in functions.values()
        for assembly in function.inspect_asm().values()
    ]


def count(assembly: str) -> Counter[str]:
    # What is left without labels, directives and comments.
    lines = [line.strip() for line in assembly.splitlines()]
    code = [line for line in lines if line and not re.match(r"[.#]|\S+:", line)]
    found = Counter(dict.fromkeys(INSTRUCTIONS, 0) | {"all": len(code)})
    for kind, pattern in INSTRUCTIONS.items():
        found[kind] = sum(bool(re.search(pattern, line)) for line in code)
    return found


def report(journal: Journal) -> str:
    shown = "function = f'`{name}`' | all = r['all'] | "
    shown += " | ".join(f"{kind} = r['{kind}']" for kind in INSTRUCTIONS)
    return (
        f"# Instructions of the compiled solver\n\n{journal.machine}\n\n"
        "Lines of assembly of each function that the search compiled: those with a 512 or 256 bit "
        "register, and those of some kinds at any width; fused are packed multiply-adds.\n\n"
        + table(shown, journal.records[-1]["functions"])
    )


EXPERIMENT = Experiment([{"version": __version__}], measure, report)
