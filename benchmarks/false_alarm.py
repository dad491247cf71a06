"""How often false alarms exceed a bound, and what is found within it, beside training scores.

Each run draws other training and test rows from all rows of a set, 10,000 and 80,000: fewer than
there are, for thirty runs. One fit with a bound has the threshold of every bound: of so many rows
the same ones are held out for each, and of their scores another is taken. Beside it the default
model of all the training rows, whose threshold is the score that its own training rows of the first
class exceed no more often than the bound. A rate of test rows varies by itself: how often it would
exceed the bound by the order statistic alone is a beta-binomial's. Delta itself is measured on
scores of known rates, a thousand draws.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.suite import Experiment, Journal, Record, Run, cpu_of, grid, table
from benchmarks.suite.real import load_real
from daskls import VoronoiSVC
from daskls.methods.reserved import threshold_of
from daskls.records import FalseAlarmSpec
from daskls.solvers.order_statistic import rows_needed
from daskls.store.choices import read_reserved

RATES = (0.1, 0.03, 0.01)
DELTA = 0.05
SETS = {"ijcnn1": 1, "covtype": 4}
SCORES = "scores"
N_RUNS, N_TRAIN, N_TEST = 30, 10_000, 80_000
N_DRAWS = 1000
# Rows that a threshold is taken from: as few as there may be, and more.
CALIBRATED = ("needed", 1500, 20_000)


def drawn(name: str, run: int, settings: Record) -> tuple[Any, Any, Any, Any]:
    """Return training and test rows of a set, whether each is of the class to be found."""
    data = load_real(name)
    X, y = np.asarray(data.X, np.float64), data.y == SETS[name]
    if data.X_test is not None and data.y_test is not None:
        X = np.concatenate([X, np.asarray(data.X_test, np.float64)])
        y = np.concatenate([y, data.y_test == SETS[name]])
    order = np.random.default_rng(run).permutation(len(X))
    ends = settings["train"], settings["train"] + settings["test"]
    train, test = order[: ends[0]], order[ends[0] : ends[1]]
    return X[train], y[train], X[test], y[test]


def measure(run: Run, set: str, run_number: int) -> Record:
    if set == SCORES:
        return {"draws": N_DRAWS, "found": list(known_rates(N_DRAWS))}
    X, y, X_test, y_test = drawn(set, run_number, run.settings)
    bounded = VoronoiSVC(max_false_alarm=RATES[0], delta=DELTA, random_state=run_number)
    model, cpu_s = cpu_of(lambda: bounded.fit(X, y))
    plain, plain_cpu_s = cpu_of(lambda: VoronoiSVC(random_state=run_number).fit(X, y))
    kept = read_reserved(model._reader.root)
    assert kept is not None
    scores, codes = kept
    # Before any threshold, as the scores that are kept.
    asked = model.decision_function(X_test) + model.false_alarm_.threshold
    own, plain_asked = plain.decision_function(X)[~y], plain.decision_function(X_test)
    found = []
    for rate in RATES:
        bound = threshold_of(scores, codes == 0, FalseAlarmSpec(rate, DELTA))
        naive = np.sort(own)[len(own) - 1 - int(rate * len(own))]
        found.append(
            {
                "rate": rate,
                "rank": bound.rank,
                "delta": bound.delta,
                **rates_of(asked > bound.threshold, y_test, ""),
                **rates_of(plain_asked > naive, y_test, "plain_"),
            }
        )
    return {
        "negatives": int((codes == 0).sum()),
        "train_positives": int(y.sum()),
        "test_negatives": int((~y_test).sum()),
        "test_positives": int(y_test.sum()),
        "cpu_s": cpu_s,
        "plain_cpu_s": plain_cpu_s,
        "found": found,
    }


def rates_of(called: Any, y: Any, prefix: str) -> Record:
    """Return the share of false alarms, and of rows that are found."""
    return {
        f"{prefix}alarm": float(called[~y].mean()),
        f"{prefix}detected": float(called[y].mean()),
    }


def known_rates(n_draws: int) -> Iterator[Record]:
    """Yield how often the threshold of normal scores has a rate above each bound."""
    rng = np.random.default_rng(0)
    for rate in RATES:
        for given in CALIBRATED:
            n = rows_needed(rate, DELTA) if given == "needed" else int(given)
            spec, everyone = FalseAlarmSpec(rate, DELTA), np.ones(n, bool)
            bounds = [threshold_of(rng.normal(size=n), everyone, spec) for _ in range(n_draws)]
            true = stats.norm.sf([bound.threshold for bound in bounds])
            yield {
                "rate": rate,
                "n": n,
                "rank": bounds[0].rank,
                "delta": bounds[0].delta,
                "exceeded": float((true > rate).mean()),
                "mean": float(true.mean()),
            }


# The report


def expected_share(r: Record, one: Record) -> float:
    """Return how likely test rows exceed the bound, by the order statistic alone."""
    n, k = r["negatives"], one["rank"]
    most = int(np.floor(one["rate"] * r["test_negatives"] + 1e-9))
    return float(stats.betabinom(r["test_negatives"], n - k + 1, k).sf(most))


def summed_up(journal: Journal) -> list[Record]:
    """Return a row a set and bound."""
    rows = []
    for name in SETS:
        runs = [r for r in journal.latest("set", "run_number") if r["set"] == name]
        for i, rate in enumerate(RATES):
            own = [r["found"][i] for r in runs]
            expected = [expected_share(r, one) for r, one in zip(runs, own, strict=True)]
            if own:
                rows.append({"set": name, "rate": rate, "expected": sum(expected), **means(own)})
    return rows


def means(own: list[Record]) -> Record:
    """Return counts of what exceeds the bound, and means of all rates with their deviations."""
    found: Record = {"runs": len(own)}
    for prefix in ("", "plain_"):
        alarms = [one[f"{prefix}alarm"] for one in own]
        found[f"{prefix}above"] = sum(one[f"{prefix}alarm"] > one["rate"] for one in own)
        found[f"{prefix}alarms"] = [100 * alarm for alarm in alarms]
        found[f"{prefix}found"] = [100 * one[f"{prefix}detected"] for one in own]
    return found


def sizes(journal: Journal) -> list[Record]:
    """Return a row a set: rows, and CPU seconds."""
    rows = []
    for name in SETS:
        runs = [r for r in journal.latest("set", "run_number") if r["set"] == name]
        names = ("negatives", "train_positives", "test_negatives", "test_positives")
        names += ("cpu_s", "plain_cpu_s")
        if runs:
            rows.append({"set": name, **{n: float(np.mean([r[n] for r in runs])) for n in names}})
    return rows


COLUMNS = """set = set | bound % = 100 * rate:g | runs = runs
test rows exceed it, runs = above | expected = expected:.1f
false alarms % = mean_of(alarms, 2) | found % = mean_of(found, 1)
training scores: runs = plain_above | false alarms % = mean_of(plain_alarms, 2)
found % = mean_of(plain_found, 1)"""
SIZES = """set = set | negatives held out = negatives:,.0f
positives among the training rows = train_positives:.0f
test negatives = test_negatives:,.0f | test positives = test_positives:,.0f
CPU s = cpu_s:.1f | without a bound = plain_cpu_s:.1f"""
KNOWN = """bound % = 100 * rate:g | scores = n:,d | rank = rank:,d | delta of the rank = delta:.4f
draws above = exceeded:.3f | true rate %, mean = 100 * mean:.3f"""


TEXT = f"""`VoronoiSVC(max_false_alarm=..., delta={DELTA:g})`; {N_TRAIN:,} training and {N_TEST:,}
test rows of each set are drawn anew in each run, from all of its rows, which runs therefore share;
ijcnn1's class 1, and covtype's class 4, are to be found. Expected: runs in which test rows exceed
the bound by the order statistic alone, a beta-binomial of the rows that were held out and of the
test rows. The three bounds of a run are of one model. Training scores: the default model of all
training rows, its threshold the score that its own training rows exceed no more often than the
bound. A model knows these rows too well for that: what it finds more, it finds by more alarms than
were allowed."""


def report(journal: Journal) -> str:
    """Return the page."""
    known = [own for r in journal.latest("set") if r["set"] == SCORES for own in r["found"]]
    return f"""# A bound on false alarms

`benchmarks/false_alarm.py`, {journal.machine}.

{TEXT}

{table(COLUMNS, summed_up(journal))}
Means of the runs:

{table(SIZES, sizes(journal))}
## Of scores of known rates

Normal scores, {N_DRAWS:,} draws a row; a draw is above where the true rate of its threshold is.

{table(KNOWN, known)}"""


KEYS = [{"set": SCORES, "run_number": 0}, *grid(run_number=range(N_RUNS), set=SETS)]
EXPERIMENT = Experiment(KEYS, measure, report, settings={"train": N_TRAIN, "test": N_TEST})
