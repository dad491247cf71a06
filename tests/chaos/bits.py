"""The same bits on every scheduler: each fit in a process without any limit of BLAS threads.

Run as ``python -m chaos.bits NAME WHERE DATA`` it prints one digest.
"""

import os
import subprocess
import sys
from pathlib import Path

import dask

from chaos import methods
from chaos.outcomes import markdown

WHERE = ("threads", "synchronous", "processes", "Client(processes=False)", "LocalCluster")
TIMEOUT_S = 300


def main():
    """Train on one scheduler and print the digest."""
    name, where, data = sys.argv[1:]
    if where in WHERE[:3]:
        with dask.config.set(scheduler=where, num_workers=2):
            print(methods.digest(methods.make(name, "noisy").fit(data)))
        return
    from distributed import Client

    two = {"n_workers": 2, "threads_per_worker": 2, "dashboard_address": None}
    with Client(processes=where == "LocalCluster", **two) as client:
        print(methods.digest(methods.make(name, "noisy", client=client).fit(data)))


def digest_of(name, where, data):
    """Train in a process of its own; return the digest, or how it ended."""
    env = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    command = [sys.executable, "-m", "chaos.bits", name, where, data]
    try:
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return f"no end after {TIMEOUT_S} s"
    if done.returncode:
        return f"ended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"
    return done.stdout.strip()


def run(folder, results, names=methods.NAMES):
    """Compare all schedulers for each estimator; write a table; return how many differ."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    records, n_different = [], 0
    for name in names:
        found = {
            where: digest_of(name, where, methods.write_data(folder, "noisy", name))
            for where in WHERE
        }
        n_different += len(set(found.values())) > 1
        verdict = "equal" if len(set(found.values())) == 1 else "DIFFERENT"
        records.append([name, *found.values(), verdict])
        print(records[-1], flush=True)
    n, _, d = methods.SIZES["noisy"]
    text = (
        f"# The same bits on every scheduler\n\n{n} x {d} noisy rows, no `*_NUM_THREADS` set, "
        f"{os.cpu_count()} cores; digests of the decision values of {methods.N_QUERIES} queries "
        "and of the report.\n\n" + markdown(["estimator", *WHERE, "bits"], records)
    )
    (Path(results) / "chaos_bits.md").write_text(text)
    print(text)
    return n_different


if __name__ == "__main__":
    main()
