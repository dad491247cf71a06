"""How often advice is right: what fits of every table are told, and the error where it is followed.

One split of each table, as `untuned` draws it. Each fit catches what it is told; then every remedy
that the sentence names, or named once, is tried on the same rows. Of dimensions all fits of two
cells or more tell how many theirs are: what is told above a limit stands beside what is not.
"""

import re
import warnings
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import LabelEncoder

from benchmarks.peers import Data
from benchmarks.suite import Experiment, Journal, Record, Run, table
from benchmarks.suite.data import class_sets, drawn
from benchmarks.suite.papers import PAPERS
from benchmarks.untuned import CUT, MOST_ROWS, SPLIT, rows
from daskls import AdviceWarning, RandomChunkSVC, VoronoiSVC
from daskls.estimators import advice
from daskls.pipeline import LEAST_FEATURES

# Rows as they are, in place of features in [0, 1].
RAW = ("hinge, rows as they are", "hinge, cells of 500, rows as they are")
HOWS: dict[str, Record] = {
    "defaults": {},
    "cells of 500": {"cell_size": 500},
    "hinge": PAPERS,
    "hinge, cells of 500": {**PAPERS, "cell_size": 500},
    **dict(zip(RAW, (PAPERS, {**PAPERS, "cell_size": 500}), strict=True)),
}
# What a sentence holds, by what it speaks of.
KINDS = {
    "dimensions": r"as in a space of (?P<number>\d+|inf) dimensions",
    "one class": r"^\d+ of \d+ cells .* hold one class alone",
    "largest C": r"took the largest C of their own grid",
    "smallest C": r"took the smallest C of their own grid",
    "largest gamma": r"took the largest gamma of their own grid",
    "smallest gamma": r"took the smallest gamma of their own grid",
    "units": r"^The spread of feature ",
}
DIMENSIONS = "dimensions"
# Minutes a fit, of which there are five.
LONG = ("mnist",)
# Of the variance, of what PCA leaves.
KEPT = 0.95


def keys(_run: Run) -> Iterator[Record]:
    names = [name for name in class_sets() if name not in LONG]
    for how in HOWS:
        yield from ({"set": CUT.get(name, name), "how": how} for name in names)


def rows_of(name: str, how: str) -> Data:
    """Return a split, its features in [0, 1] or as they are."""
    if how not in RAW:
        return rows(SPLIT, name, 0)
    file = {cut: whole for whole, cut in CUT.items()}.get(name, name)
    data = drawn(file, 0, MOST_ROWS)
    codes = LabelEncoder().fit(data.y)
    return data._replace(y=codes.transform(data.y), y_test=codes.transform(data.y_test))


def measure(run: Run, set: str, how: str) -> Record:
    data, params = rows_of(set, how), HOWS[how]
    # Of rows as they are the dimensions are those of the features of large numbers.
    model, told = fitted(VoronoiSVC, params, data, all_dimensions=how not in RAW)
    wrong = model.predict(data.X_test) != data.y_test
    found = {
        "train_rows": len(data.X),
        "features": data.X.shape[1],
        "test_rows": len(wrong),
        "cells": int(model.n_cells_),
        "error": 100 * float(wrong.mean()),
        "other": [text for text in told if kind_of(text) is None],
    }
    return {
        **found,
        "told": [followed(text, model, params, data, wrong) for text in told if kind_of(text)],
    }


def fitted(
    make: Any, params: Record, data: Data, *, all_dimensions: bool = False
) -> tuple[Any, list[str]]:
    """Return a model and what its fit was told; of dimensions perhaps however many they are."""
    limit = 0.0 if all_dimensions else advice.MOST_DIMENSIONS
    with (
        warnings.catch_warnings(record=True) as caught,
        patch.object(advice, "MOST_DIMENSIONS", limit),
    ):
        warnings.simplefilter("always")
        model = make(random_state=0, **params).fit(data.X, data.y)
    return model, [str(w.message) for w in caught if issubclass(w.category, AdviceWarning)]


def kind_of(text: str) -> str | None:
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, text)), None)


def followed(text: str, model: Any, params: Record, data: Data, wrong: np.ndarray) -> Record:
    """Return a piece of advice with what each of its remedies makes of the same rows."""
    kind = kind_of(text)
    number = re.search(KINDS[kind], text).groupdict().get("number")
    found = {}
    for name, (make, changed, reduce) in remedies(kind, model, params).items():
        given = reduced(data) if reduce else data
        other, _ = fitted(make, changed, given)
        found[name] = compared(other.predict(given.X_test) != data.y_test, wrong)
    return {
        "kind": kind,
        "text": text,
        **({"number": float(number)} if number else {}),
        "tried": found,
    }


def remedies(kind: str, model: Any, params: Record) -> dict[str, tuple[Any, Record, bool]]:
    """Return what advice asks for: a class, its parameters, whether PCA comes first."""
    report = model.fit_report_
    size = int(report.n_rows.max())
    larger = ("larger cells", VoronoiSVC, {**params, "cell_size": 2 * size + 1}, False)
    spread = ('feature_scale="spread"', VoronoiSVC, {**params, "feature_scale": "spread"}, False)
    learned = ('feature_scale="learned"', VoronoiSVC, {**params, "feature_scale": "learned"}, False)
    gammas = np.array([float(report.gamma[report.n_trained > 0].min()), float(report.gamma.max())])
    chunks = {name: value for name, value in params.items() if name != "cell_size"}
    chunks = {**chunks, "chunk_size": params.get("cell_size")}
    asked = {
        "dimensions": [
            larger,
            ("PCA", VoronoiSVC, params, True),
            ("RandomChunkSVC", RandomChunkSVC, chunks, False),
            *([learned] if params.get("feature_scale", "") is None else []),
        ],
        "one class": [larger],
        "largest C": [spread, ("larger C", VoronoiSVC, {**params, "C": [100, 1000, 10000]}, False)],
        "smallest C": [("smaller C", VoronoiSVC, {**params, "C": [1e-5, 1e-4, 1e-3, 1e-2]}, False)],
        "largest gamma": [
            learned,
            ("larger gamma", VoronoiSVC, {**params, "gamma": wider(gammas[1], 2.0)}, False),
        ],
        "smallest gamma": [
            ("smaller gamma", VoronoiSVC, {**params, "gamma": wider(gammas[0], 0.5)}, False),
            ('kernel="linear"', VoronoiSVC, {**params, "kernel": "linear"}, False),
        ],
        "units": [spread, learned],
    }
    return {name: tuple(rest) for name, *rest in asked[kind]}


def wider(end: float, step: float) -> list[float]:
    """Return gammas from an end of a grid on."""
    return sorted(end * step**i for i in range(5))


def reduced(data: Data) -> Data:
    pca = PCA(KEPT, svd_solver="full").fit(data.X)
    X, X_test = (pca.transform(part).astype(np.float32) for part in (data.X, data.X_test))
    return data._replace(X=X, X_test=X_test)


def compared(wrong: np.ndarray, before: np.ndarray) -> Record:
    """Return the error, and the points that it fell by with their paired standard error."""
    fell = before.astype(float) - wrong
    return {
        "error": 100 * float(wrong.mean()),
        "fell": 100 * float(fell.mean()),
        "std": 100 * float(fell.std() / np.sqrt(len(fell))),
    }


# The report


def is_told(piece: Record) -> bool:
    """Whether a fit would say so by itself."""
    return piece["kind"] != DIMENSIONS or piece["number"] > advice.MOST_DIMENSIONS


def pieces(journal: Journal, *, told: bool = True) -> list[Record]:
    """Return a row for each remedy of each piece of advice that is told, or is not."""
    return [
        {
            **r,
            **piece,
            "remedy": name,
            "then": tried["error"],
            **{k: tried[k] for k in ("fell", "std")},
        }
        for r in journal.latest("set", "how")
        for piece in r.get("told", [])
        if is_told(piece) == told
        for name, tried in piece["tried"].items()
    ]


def counted(found: list[Record], *fields: str) -> list[Record]:
    """Return how often each remedy lowered the error, left it, raised it; a row a combination."""
    groups: dict[tuple[str, ...], list[Record]] = {}
    for r in found:
        groups.setdefault(tuple(r[field] for field in (*fields, "kind", "remedy")), []).append(r)
    return [
        {
            **{field: own[0][field] for field in (*fields, "kind", "remedy")},
            "fits": len(own),
            "sets": len({r["set"] for r in own}),
            "lower": sum(r["fell"] > 0 for r in own),
            "same": sum(r["fell"] == 0 for r in own),
            "higher": sum(r["fell"] < 0 for r in own),
            "beyond": sum(r["fell"] > 2 * r["std"] for r in own),
            "against": sum(r["fell"] < -2 * r["std"] for r in own),
            "mean": float(np.mean([r["fell"] for r in own])),
        }
        for own in groups.values()
    ]


COUNTS = """
told of = kind | remedy = remedy | fits = fits | tables = sets | error lower = lower
the same = same | higher = higher | lower by two standard errors = beyond
higher by two = against | points it fell by, mean = mean:+.2f
"""
EACH = """
set = set | fit = how | cells = cells | told of = kind | remedy = remedy | error % = error:.2f
then = then:.2f | fell by = fell:+.2f | standard error = std:.2f
"""
SPACES = """
set = set | fit = how | features = features | cells = cells | dimensions = number:.0f
remedy = remedy | error % = error:.2f | then = then:.2f | fell by = fell:+.2f
standard error = std:.2f
"""


def silent(journal: Journal) -> str:
    """Return of how many fits nothing is told, way by way."""
    parts = []
    for how in HOWS:
        own = journal.latest("set", how=how)
        quiet = sum(not any(map(is_told, r.get("told", []))) for r in own)
        parts.append(f"{how} {quiet} of {len(own)}")
    return "; ".join(parts)


def report(journal: Journal) -> str:
    told, rest = pieces(journal), pieces(journal, told=False)
    rest = sorted(rest, key=lambda r: (r["how"], -r["number"]))
    n_sets = len({r["set"] for r in journal.records})
    by_way = f"fit = how | {COUNTS.strip()}"
    return (
        "# How often advice is right\n\n"
        f"`benchmarks/advice.py`; {journal.machine}. One split of each of {n_sets} tables, at most "
        f"{MOST_ROWS:,} rows to train; features in [0, 1], but where rows stay as they are. "
        '"hinge" is the paper\'s: '
        f"{', '.join(f'{k}={v!r}' for k, v in PAPERS.items())}. Where a fit is told something, the "
        "remedies of the sentence, and those that it named once, are tried on the same rows, each "
        f"by itself. Larger cells have at least twice the rows; PCA keeps {KEPT:.0%} of the "
        "variance; larger or smaller values go on from the end of the grid. Standard errors are "
        "of the differences of the same test rows.\n\nFits that are told nothing: "
        f"{silent(journal)}.\n\n"
        f"## How often\n\n{table(COUNTS, counted(told))}\n"
        f"## Way by way\n\n{table(by_way, counted(told, 'how'))}\n"
        f"## Each\n\n{table(EACH, told)}\n"
        "## Dimensions that are told nowhere\n\nAll fits of features in [0, 1] with two cells or "
        f"more, at least {LEAST_FEATURES} features and at most {advice.MOST_DIMENSIONS:.0f} "
        "dimensions.\n\n"
        f"{table(by_way, counted(rest, 'how'))}\n{table(SPACES, rest)}"
    )


EXPERIMENT = Experiment(keys, measure, report)
