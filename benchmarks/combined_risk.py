"""Selection in a cell by the risk of its combined fold models, beside that by held-out rows.

Algorithm 1 of the 2017 paper (lines 10 to 18) combines the fold models of a candidate, with weights
that fall exponentially with their validation risks, and takes the candidate whose combination errs
least on the cell's rows, which its folds trained on. daskls counts the errors of held-out rows, and
averages the chosen fold models. Ten sets, five splits, two thirds to train; cells of 2000 rows, the
full grid.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from unittest import mock

import numpy as np

from benchmarks.many_sets import rows_of
from benchmarks.suite import Experiment, Journal, Record, Run, table
from benchmarks.suite.papers import PaperSVC
from benchmarks.suite.tables import mean_of
from daskls.solvers.evaluate import total
from daskls.solvers.rows import Choice
from daskls.solvers.search import CVResult, GridSearch
from daskls.solvers.width import PathSolutions

SETS = (
    *("australian", "cmc", "diabetes", "german.numer", "heart"),
    *("ionosphere", "satimage", "spambase", "splice", "svmguide1"),
)
SEEDS = range(5)
METHODS = ("held-out", "combined", "weighted")
COLUMNS = """
set = set | training rows = rows:, | held-out rows = mean_of(held_out, 2)
combined risk = mean_of(combined, 2) | difference = difference
held-out rows, weighted models = mean_of(weighted, 2) | difference = weighted_difference
"""


@contextmanager
def selecting(method: str) -> Iterator[None]:
    """Select by another rule in all cells that are trained meanwhile."""
    offer, choice = GridSearch._offer, GridSearch._choice

    def offered(search: GridSearch, trained: CVResult) -> None:
        whole = slice(0, len(search.weights))
        wrong = search.width.decide(combined(search, trained), whole)[0] != search.cell.codes
        offer(search, replace(trained, error=total(search.weights * wrong)))

    def chosen(search: GridSearch, best: CVResult, *, finish: bool) -> Choice:
        found = choice(search, best, finish=finish)
        betas, offsets = (weights_of(search, best) @ own for own in search.models)
        coef = search.pairs.coefficients(betas[None].astype(np.float32))[0]
        return replace(found, coef=coef, intercepts=offsets)

    patched = {"combined": {"_offer": offered, "_choice": chosen}, "weighted": {"_choice": chosen}}
    with mock.patch.multiple(GridSearch, **patched[method]) if method in patched else nullcontext():
        yield


def weights_of(search: GridSearch, trained: CVResult) -> np.ndarray:
    """Return the weights of a candidate's fold models."""
    risks = []
    for fold in search.folds:
        own = slice(search.fold_ptr[fold], search.fold_ptr[fold + 1])
        risks.append(total(trained.wrong[own]) / total(search.weights[own]))
    weights = np.exp(-np.array(risks))
    return np.asarray(weights / weights.sum())


def combined(search: GridSearch, trained: CVResult) -> PathSolutions:
    """Return the combination of a candidate's fold models."""
    weights = weights_of(search, trained)[:, None]
    betas = (weights * np.concatenate([line.betas for line in trained.lines])).sum(axis=0)
    offsets = (weights * np.concatenate([line.offsets for line in trained.lines])).sum(axis=0)
    return PathSolutions(betas[None].astype(np.float32), offsets[None].astype(np.float32))


def keys(run: Run) -> Iterator[Record]:
    for name in SETS:
        for seed in SEEDS:
            yield from ({"set": name, "seed": seed, "method": method} for method in METHODS)


def measure(run: Run, set: str, seed: int, method: str) -> Record:
    X, y, X_test, y_test = rows_of(set, seed)
    model = PaperSVC(search="full", random_state=seed)
    with selecting(method):
        model.fit(X, y)
    return {"rows": len(X), "error": 100 * float((model.predict(X_test) != y_test).mean())}


def report(journal: Journal) -> str:
    lines, both = [], {method: [] for method in METHODS[1:]}
    for name in SETS:
        found = {m: journal.latest("seed", set=name, method=m) for m in METHODS}
        if not all(found.values()):
            continue
        errors = {m: [r["error"] for r in own] for m, own in found.items()}
        line = {"set": name, "rows": found["held-out"][0]["rows"]}
        line |= {m.replace("-", "_"): own for m, own in errors.items()}
        for method, key in (("combined", "difference"), ("weighted", "weighted_difference")):
            gained = np.subtract(errors[method], errors["held-out"])
            line[key] = mean_of(gained.tolist(), 2)
            both[method].append(gained.mean() / np.mean(errors["held-out"]))
        lines.append(line)
    means = {m: f"{100 * np.mean(own):+.1f} %" for m, own in both.items()}
    return (
        "# Selection by combined models\n\n"
        f"`benchmarks/combined_risk.py`; {journal.machine}; one process, one thread. Test errors "
        "in % of hinge-loss SVMs in cells of 2000 rows, the full grid of 10 x 10 candidates and "
        f"5 folds: means and deviations of {len(SEEDS)} splits or seeds.\n\n"
        + table(COLUMNS, lines, mean_of=mean_of)
        + f"\nError beside selection by held-out rows, mean of the sets: {means['combined']} by "
        f"the combined risk, {means['weighted']} by held-out rows with weighted models.\n"
    )


EXPERIMENT = Experiment(keys, measure, report, warm=lambda: [PaperSVC()])
