"""Excess risk of VoronoiSVC on the 2017 paper's two Gaussians as n grows, beside its rate.

Figure 2 of Thomann et al., AISTATS 2017: dimensions 4, 8 and 16, dashed the rate n^(-2 / (3 + d))
scaled to the first point. As there, cells shrink as theorem 3.2 says: a radius of n^(-1 / (3 + d))
leaves a cell a share n^(3 / (3 + d)) of the rows, so ``cell_size`` grows by that power. Writes
``benchmarks/results/learning_rate.png`` and ``.md``.

    python benchmarks/learning_rate.py [largest n]
"""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from measure import machine

from daskls import VoronoiSVC
from daskls.datasets import make_two_gaussians, two_gaussians_bayes_risk

RESULTS = Path(__file__).parent / "results"
DIMENSIONS = (4, 8, 16)
N_TEST = 200_000
N_RUNS = 3
SMALLEST = 1000


def cell_size(d: int, n: int) -> int:
    """Return the theorem's rows of a cell; all rows at `SMALLEST`."""
    return round(SMALLEST * (n / SMALLEST) ** (3 / (3 + d)))


def excess_risk(d: int, n: int, run: int) -> float:
    X, y = make_two_gaussians(n, d=d, random_state=1 + run)
    X_test, y_test = make_two_gaussians(N_TEST, d=d, random_state=10_001 + run)
    model = VoronoiSVC(cell_size=cell_size(d, n), random_state=run).fit(X, y)
    return float(np.mean(model.predict(X_test) != y_test)) - two_gaussians_bayes_risk(d)


def main() -> None:
    largest = int(sys.argv[1]) if len(sys.argv) > 1 else 32_000
    sizes = [n for n in (1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000) if n <= largest]
    figure, axes = plt.subplots(figsize=(7, 5))
    lines = ["| d | n | cell_size | excess risk (mean) | deviation | slope so far | paper's rate |"]
    lines.append("|---|---|---|---|---|---|---|")
    for d, color in zip(DIMENSIONS, ("C0", "C1", "C2"), strict=True):
        runs = np.array([[excess_risk(d, n, run) for n in sizes] for run in range(N_RUNS)])
        mean, deviation = runs.mean(axis=0), runs.std(axis=0, ddof=1)
        rate = -2 / (3 + d)
        axes.errorbar(sizes, mean, deviation, fmt="o-", color=color, capsize=3, label=f"d = {d}")
        axes.plot(sizes, mean[0] * (np.array(sizes) / sizes[0]) ** rate, "--", color=color)
        for i, n in enumerate(sizes):
            slope = np.polyfit(np.log(sizes[: i + 1]), np.log(mean[: i + 1]), 1)[0] if i else 0
            lines.append(
                f"| {d} | {n} | {cell_size(d, n)} | {mean[i]:.5f} | {deviation[i]:.5f} | "
                f"{f'{slope:.3f}' if i else ''} | {rate:.3f} |"
            )
            print(lines[-1], flush=True)
    axes.set(xscale="log", yscale="log", xlabel="training rows", ylabel="excess risk")
    axes.set_title("Two Gaussians: excess risk, and the paper's rate (dashed)")
    axes.legend()
    figure.tight_layout()
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / "learning_rate.png", dpi=120)
    text = f"# Excess risk on two Gaussians\n\n{machine()}; {N_RUNS} runs, {N_TEST} test rows\n\n"
    (RESULTS / "learning_rate.md").write_text(text + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
