"""Intervals of six sets, five splits each: coverage, deciles, and width beside MAPIE's.

Four fifths of the rows to train, of which a fit with intervals holds a fifth out. MAPIE's split
conformal has the same fitted model, and the same rows that were held out: its absolute residuals
are not scaled. What scales daskls's, the size of residuals in a cell, is mixed with so many rows of
all: other numbers of them are compared by the width at the rows that were held out, never by test
rows.

    python -m benchmarks intervals --only set=houses
"""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.peers import Data
from benchmarks.regression import rows
from benchmarks.suite import Experiment, Journal, Record, Run, table
from benchmarks.suite.apart import begin_limit, run_forked
from benchmarks.suite.defaults import LIMIT_S
from benchmarks.suite.measure import cpu_of
from benchmarks.suite.tables import mean_of, versions
from daskls import VoronoiSVR
from daskls.methods import reserved
from daskls.methods.predict import cells_of, sizes_of_rows
from daskls.partition.shuffle import row_keys
from daskls.seeds import THRESHOLD_ROWS

SETS = ("cpu-act", "pol", "houses", "house-16h", "fried", "mv")
COVERAGE, N_SPLITS, OFF = 0.9, 5, 0.01
OURS, PEER = "VoronoiSVR", "MAPIE"
# Rows of all that a cell's own are mixed with; the last is as if there were one cell.
MIXED = (0, 20, 50, 100, 200, 500, 10**12)


def keys(run: Run) -> Iterator[Record]:
    """Yield a split of every set, then the other splits."""
    for seed in range(N_SPLITS):
        for name in SETS:
            yield {"set": name, "seed": seed}


def measure(run: Run, set: str, seed: int) -> Record:
    data = rows(set, seed)
    shape = {"train_rows": len(data.X), "features": data.X.shape[1], "test_rows": len(data.X_test)}
    return {**shape, **run_forked(fitted, data, seed, limit_s=LIMIT_S)}


def fitted(data: Data, seed: int) -> Record:
    """Fit and predict in this process; what first ones load and compile comes before."""
    few = np.random.default_rng(0).permutation(len(data.X))[:400]
    first = VoronoiSVR(interval=COVERAGE, random_state=seed).fit(data.X[few], data.y[few])
    first.predict_interval(data.X[few])
    begin_limit(LIMIT_S)
    made = VoronoiSVR(interval=COVERAGE, random_state=seed)
    model, fit_s = cpu_of(lambda: made.fit(data.X, data.y))
    answers, predict_s = cpu_of(lambda: model.predict(data.X_test))
    ends, interval_s = cpu_of(lambda: model.predict_interval(data.X_test))
    held = np.argsort(row_keys(np.arange(len(data.X)), THRESHOLD_ROWS(seed)))
    held = held[: model.interval_.n_rows]
    theirs, version = mapie_ends(model, data, held)
    deviation = float(data.y.std())
    return {
        "held_out": model.interval_.n_rows,
        "rank": model.interval_.rank,
        "cells": model.n_cells_,
        "error": float(np.sqrt(np.mean((answers - data.y_test) ** 2)) / deviation),
        "found": {
            OURS: told_of(ends, answers, data.y_test, deviation),
            PEER: told_of(theirs, answers, data.y_test, deviation),
        },
        "mixed": mixed_widths(model, data, held, deviation),
        "fit_cpu_s": fit_s,
        "predict_cpu_s": predict_s,
        "interval_cpu_s": interval_s,
        "versions": {"MAPIE": version},
    }


def mapie_ends(model: Any, data: Data, held: np.ndarray) -> tuple[np.ndarray, str]:
    """Return MAPIE's intervals of test rows, from the same model and rows, and its version."""
    # Not everywhere is it installed, and a report needs it not.
    from importlib.metadata import version

    from mapie.regression import SplitConformalRegressor

    peer = SplitConformalRegressor(model, confidence_level=COVERAGE, prefit=True)
    _, ends = peer.conformalize(data.X[held], data.y[held]).predict_interval(data.X_test)
    return ends[:, :, 0], version("mapie")


def told_of(ends: np.ndarray, answers: np.ndarray, y: np.ndarray, deviation: float) -> Record:
    """Return coverage, over all and by deciles of the answer, and the mean width."""
    within = (ends[:, 0] <= y) & (y <= ends[:, 1])
    # By their order: answers that are equal are dealt out, so that deciles are of equal size.
    deciles = np.array_split(np.argsort(answers, kind="stable"), 10)
    return {
        "coverage": float(within.mean()),
        "deciles": [float(within[own].mean()) for own in deciles],
        "width": float((ends[:, 1] - ends[:, 0]).mean() / deviation),
    }


def mixed_widths(model: Any, data: Data, held: np.ndarray, deviation: float) -> list[float]:
    """Return the mean width at the rows that were held out, by how much cells are mixed."""
    reader, rank = model._reader, model.interval_.rank
    cells = cells_of(reader, data.X[held])
    missed = np.abs(data.y[held] - model.predict(data.X[held]))
    widths = []
    for n_mixed in MIXED:
        with patch.object(reserved, "OF_ALL", n_mixed):
            sizes = sizes_of_rows(reserved.sizes_of_cells(reader.report), cells)
        half = np.sort(missed / sizes)[rank - 1]
        widths.append(float(2 * half * sizes.mean() / deviation))
    return widths


# The report


def allowed(r: Record) -> float:
    """Return what a split's coverage may be off by."""
    error = np.sqrt(COVERAGE * (1 - COVERAGE) * (1 / r["held_out"] + 1 / r["test_rows"]))
    return float(max(OFF, 2 * error))


def by_set(journal: Journal) -> list[tuple[str, list[Record]]]:
    found = [(name, [r for r in journal.where(set=name) if "found" in r]) for name in SETS]
    return [(name, own) for name, own in found if own]


def spread(values: Any, digits: int) -> str:
    return mean_of(list(values), digits, ddof=1)


def covered_line(name: str, own: list[Record], contender: str) -> Record:
    """Return a contender's coverage of a set."""
    found = [r["found"][contender] for r in own]
    deciles = np.array([f["deciles"] for f in found])
    n_of_decile = np.mean([r["test_rows"] for r in own]) / 10
    near = [abs(f["coverage"] - COVERAGE) <= allowed(r) for r, f in zip(own, found, strict=True)]
    return {
        "set": name,
        "estimator": contender,
        "coverage": spread((f["coverage"] for f in found), 3),
        "allowed": np.mean([allowed(r) for r in own]),
        "near": f"{sum(near)} of {len(near)}",
        "largest": np.abs(deciles - COVERAGE).max(axis=1).mean(),
        "deviation": np.sqrt(((deciles - COVERAGE) ** 2).mean()),
        "binomial": np.sqrt(COVERAGE * (1 - COVERAGE) / n_of_decile),
    }


def width_line(name: str, own: list[Record]) -> Record:
    """Return widths of a set, paired over splits."""
    ours, theirs = ([r["found"][c]["width"] for r in own] for c in (OURS, PEER))
    ratios = np.divide(ours, theirs)
    return {
        "set": name,
        "train": own[0]["train_rows"],
        "held": own[0]["held_out"],
        "cells": own[0]["cells"],
        "error": spread((r["error"] for r in own), 4),
        "ours": spread(ours, 4),
        "theirs": spread(theirs, 4),
        "ratio": spread(ratios, 3),
        "fit": spread((r["fit_cpu_s"] for r in own), 1),
        "predict": np.mean([r["predict_cpu_s"] for r in own]),
        "interval": np.mean([r["interval_cpu_s"] for r in own]),
    }


def report(journal: Journal) -> str:
    sets = by_set(journal)
    covered = [covered_line(name, own, c) for name, own in sets for c in (OURS, PEER)]
    columns = """
    set = set | intervals of = estimator | coverage = coverage | may be off by = f'{allowed:.3f}'
    splits within = near | largest distance of a decile = f'{largest:.3f}'
    deviation of deciles = f'{deviation:.3f}' | a binomial's = f'{binomial:.3f}'
    """
    widths = """
    set = set | train rows = f'{train:,}' | of them held out = f'{held:,}' | cells = cells
    error = error | width = ours | MAPIE's = theirs | ratio = ratio | fit, CPU s = fit
    predict = f'{predict:.2f}' | predict_interval = f'{interval:.2f}'
    """
    heads = [*(f"{n:,}" for n in MIXED[:-1]), "one cell"]
    mixed = [
        {"set": name, "widths": np.mean([r["mixed"] for r in own], axis=0)} for name, own in sets
    ]
    by_mix = " | ".join(f"{head} = f'{{widths[{i}]:.4f}}'" for i, head in enumerate(heads))
    return (
        "# Intervals\n\n"
        f"`benchmarks/intervals.py`; {journal.machine}, {versions(journal.records)}. "
        f"`VoronoiSVR(interval={COVERAGE:g})` with its defaults, beside MAPIE's split conformal "
        "of absolute residuals on the same fitted model and the same rows held out. One process "
        "of one thread, after a fit of 400 rows; beside other work. Random splits, four fifths to "
        "train; mean and deviation.\n\n"
        f"## Coverage, of {COVERAGE:g}\n\nA split may be off by {OFF:g}, or two standard errors "
        "of calibration and test rows together. Deciles are of the answer, each of a tenth of the "
        "test rows; the largest distance is the mean of splits', the deviation is around "
        f"{COVERAGE:g}, as the binomial one of so many rows.\n\n{table(columns.strip(), covered)}\n"
        "## Width\n\nMean width and error (root of the mean square) over the deviation of y among "
        "training rows; the ratio is paired over splits.\n\n"
        f"{table(widths.strip(), [width_line(*own) for own in sets])}\n"
        "## Rows of all that cells are mixed with\n\nMean width at the rows that were held out: "
        f"no test row was looked at.\n\n{table(f'set = set | {by_mix}', mixed)}"
    )


EXPERIMENT = Experiment(keys, measure, report)
