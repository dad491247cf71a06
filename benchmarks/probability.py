"""Probabilities of classifiers as they are: log loss, Brier score and calibration on every table.

Sets, splits and scale of `untuned`. VoronoiSVC by its defaults, and calibrated by scikit-learn's
CalibratedClassifierCV in place of its own maps, beside boosting. Counts of reliability curves.

    python -m benchmarks probability --quick                   # one split of the smaller tables
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV

from benchmarks import untuned
from benchmarks.peers import Data
from benchmarks.suite import Experiment, Journal, Record, Run, cpu_of, table
from benchmarks.suite import standing as st
from benchmarks.suite.apart import begin_limit, run_forked
from benchmarks.suite.data import class_sets
from benchmarks.suite.defaults import DEFAULT, LIMIT_S, OTHERS, OURS, cells, few_rows, versions_of
from benchmarks.suite.figures import Figure, plain_log, plt
from benchmarks.suite.proper import N_BINS, loss_of, reliability, scores
from benchmarks.suite.tables import mean_of, versions

CALIBRATED = "CalibratedClassifierCV"
LIGHTGBM = "LightGBM"
BOOSTING = (LIGHTGBM, "XGBoost", "HistGradientBoosting")
CONTENDERS: dict[str, Callable[[int], Any]] = {
    DEFAULT: OURS[DEFAULT],
    CALIBRATED: lambda seed: CalibratedClassifierCV(cells(probability=False)(seed), cv=3),
    **{name: OTHERS[name] for name in BOOSTING},
}
PART = untuned.SPLIT
# Of the page of reliability curves. Sets: trees are ahead, behind; noise; six classes; binary
# features; many rows.
DRAWN = (DEFAULT, CALIBRATED, LIGHTGBM)
CURVES = ("churn", "phoneme", "waveform-40", "satimage", "a9a", "covtype-50k")
# Fewer pairs in a bin say nothing.
LEAST_PAIRS = 10
# Of the log loss of who knows nothing: what is below is drawn there.
LEAST_SHARE = 0.003


def keys(run: Run) -> Iterator[Record]:
    """Yield a split of every set, then the other splits; the small sets first."""
    quick = bool(run.settings["quick"])
    names = [name for name, n in class_sets().items() if n < untuned.QUICK_ROWS or not quick]
    for seed in range(1 if quick else untuned.N_SPLITS):
        yield from untuned.keys_of(PART, names, seed, CONTENDERS)


def measure(run: Run, part: str, set: str, estimator: str, seed: int) -> Record:
    data = untuned.rows(part, set, seed)
    shape = {
        "train_rows": len(data.X),
        "test_rows": len(data.X_test),
        "classes": int(data.y.max()) + 1,
        "prior": prior_loss(data),
    }
    return {**shape, **run_forked(fitted, data, estimator, seed, limit_s=LIMIT_S)}


def prior_loss(data: Data) -> float:
    """Return the log loss of who answers each row with the shares of the training classes."""
    shares = np.bincount(data.y) / len(data.y)
    return loss_of(np.tile(shares, (len(data.y_test), 1)), data.y_test)


def fitted(data: Data, contender: str, seed: int) -> Record:
    """Fit and ask in this process; what first ones load and compile comes before."""
    X, y = few_rows(data)
    if contender == CALIBRATED:
        # Few rows of a rare class cannot be parted into folds.
        y = y == np.bincount(y).argmax()
    CONTENDERS[contender](seed).fit(X, y).predict_proba(X)
    model = CONTENDERS[contender](seed)
    begin_limit(LIMIT_S)
    _, fit_s = cpu_of(lambda: model.fit(data.X, data.y))
    found, predict_s = cpu_of(lambda: np.asarray(model.predict_proba(data.X_test)))
    return {
        **scores(found, data.y_test),
        "fit_cpu_s": fit_s,
        "predict_cpu_s": predict_s,
        "curve": reliability(found, data.y_test),
        **versions_of(contender),
    }


# The report


SEVERAL = "of sets of several splits the least, or within two paired standard errors of it,"
FIELDS = {"log_loss": "log loss", "brier": "Brier score", "ece": "calibration error"}


def present(journal: Journal) -> list[str]:
    return [c for c in CONTENDERS if journal.where(part=PART, estimator=c)]


def boards_of(journal: Journal) -> dict[str, st.Splits]:
    """Return the sets that all contenders of a journal have done."""
    known = present(journal)
    return st.board(journal, PART, known) if known else {}


def standing(own: st.Splits, ours: str, field: str) -> str:
    """Return whether the mean of a field is the least, within two paired errors of it, or above."""
    if len(own) == 1:
        return "least"
    found = st.beside(own, ours, field)
    if found.difference <= 0:
        return "least"
    return "within" if found.difference <= found.two_errors else "above"


def ranked(journal: Journal) -> list[Record]:
    """Return a row for each contender: mean ranks, how often it is the best, median seconds."""
    boards = boards_of(journal)
    ranks = {field: st.mean_ranks(boards, field) for field in (*FIELDS, "error")}
    return [rank_of(boards, ranks, c) for c in present(journal) if boards]


def rank_of(
    boards: dict[str, st.Splits], ranks: dict[str, dict[str, float]], contender: str
) -> Record:
    places = [standing(own, contender, "log_loss") for own in boards.values()]
    records = [own[contender] for own in boards.values()]
    return {
        "estimator": contender,
        "sets": len(boards),
        "rank": {field: own[contender] for field, own in ranks.items()},
        "least": places.count("least"),
        "within": places.count("within"),
        **{
            f"median_{field}": float(np.median([st.mean(own, field) for own in records]))
            for field in ("fit_cpu_s", "predict_cpu_s")
        },
    }


def ranks_text(journal: Journal) -> str:
    columns = """
    estimator = estimator | sets = sets | rank by log loss = rank['log_loss']:.2f
    by Brier score = rank['brier']:.2f | by calibration error = rank['ece']:.2f
    by error = rank['error']:.2f | least log loss on = least | within two errors of it = within
    median fit, CPU s = median_fit_cpu_s:.2f
    median predict_proba, CPU s = median_predict_cpu_s:.3f
    """
    return (
        "\n## Mean ranks\n\nOf the means over the splits of each set, over the sets and splits "
        "that all of these have done. Two errors are two paired standard errors over splits; of "
        "sets of one split there are none.\n\n" + table(columns.strip(), ranked(journal))
    )


def beside_text(journal: Journal) -> str:
    boards = boards_of(journal)
    if DEFAULT not in present(journal):
        return ""
    rows = [row(name, own) for name, own in boards.items()]
    columns = """
    set = set | splits = splits | log loss = mine:.4f | best of the others = best
    difference = difference:+.4f
    two standard errors = splits > 1 and '%.4f' % two_errors or '' | place = place
    """
    boosted = {n: {c: r for c, r in own.items() if c != CALIBRATED} for n, own in boards.items()}
    beside_boosting = [row(name, own) for name, own in boosted.items()]
    return (
        f"\n## {DEFAULT} beside the best of the others\n\nLog loss, paired over splits.\n\n"
        f"{table(columns.strip(), rows)}\nBeside all: {places_text(rows)}"
        f"\nBeside boosting alone: {places_text(beside_boosting)}"
    )


def places_text(rows: list[Record]) -> str:
    """Tell on how many sets the default is the best, or not told from it."""
    told = []
    for splits, words, good in (
        ([r for r in rows if r["splits"] > 1], SEVERAL, ("least", "within")),
        ([r for r in rows if r["splits"] == 1], "of one split the least", ("least",)),
    ):
        above = [r["set"] for r in splits if r["place"] not in good]
        if splits:
            n_good = len(splits) - len(above)
            named = f" (not on {', '.join(above)})" if above else ""
            told.append(f"{words} on {n_good} of {len(splits)}{named}")
    return f"{'; '.join(told)}.\n"


def row(name: str, own: st.Splits) -> Record:
    """Return the default beside the best of the others on one set."""
    if len(own) == 1:
        return {"set": name, "splits": len(own[DEFAULT]), "place": "least"}
    found = st.beside(own, DEFAULT, "log_loss")
    return {
        **found._asdict(),
        "set": name,
        "splits": len(own[DEFAULT]),
        "mine": st.mean(own[DEFAULT], "log_loss"),
        "place": standing(own, DEFAULT, "log_loss"),
    }


def wide(journal: Journal, field: str, digits: int) -> str:
    """Return a table of means and deviations, a row a set, a column a contender."""
    columns = "set = set | train rows = train_rows:, | classes = classes | splits = splits"
    found = st.every(journal, PART, present(journal))
    return st.wide(found, columns, lambda own: shown(own, field, digits))


def shown(records: Sequence[Record], field: str, digits: int) -> str:
    values = [r[field] for r in records if field in r]
    if len(values) < len(records):
        return f"> {LIMIT_S} s"
    return mean_of(values, digits, ddof=1) if values else "not measured"


def curves_text(journal: Journal) -> str:
    """Return a table of what the figure of reliability curves shows."""
    rows = []
    for name in CURVES:
        found = {c: journal.find(part=PART, set=name, estimator=c, seed=0) or {} for c in DRAWN}
        if all("ece" in r for r in found.values()):
            told = {c: f"{r['log_loss']:.4f} ({r['ece']:.4f})" for c, r in found.items()}
            rows.append({**found[DEFAULT], **told})
    columns = "set = set | classes = classes | test rows = test_rows:,"
    return (
        "\n## Reliability curves\n\nOf one split each: log loss (calibration error).\n\n"
        + table(" | ".join([columns, *(f"{c} = r[{c!r}]" for c in DRAWN)]), rows)
        + "\n![Reliability curves](reliability.png)\n"
    )


def about(journal: Journal) -> str:
    return (
        "# Probabilities of classifiers as they are\n\n"
        f"`benchmarks/probability.py`; {journal.machine}, {versions(journal.records)}. Sets, "
        "splits and scale of [untuned](untuned.md): up to "
        f"{untuned.N_SPLITS} stratified splits, four fifths to train, features in [0, 1] by the "
        "training rows; one process of one thread, after a first fit of 400 rows; beside other "
        f"work. Every estimator with its defaults; {CALIBRATED} is scikit-learn's with cv=3 and "
        f"{DEFAULT}(probability=False). Log loss in nats, no probability below 1.2e-7; the Brier "
        f"score sums over classes; calibration error: {N_BINS} bins of the largest probability. "
        "Mean and deviation over splits.\n"
    )


def report(journal: Journal) -> str:
    text = about(journal) + ranks_text(journal) + beside_text(journal)
    for title, field, digits in (
        *((title[0].upper() + title[1:], field, 4) for field, title in FIELDS.items()),
        ("Error of the likeliest class, %", "error", 2),
        ("Fit, CPU seconds", "fit_cpu_s", 2),
    ):
        text += f"\n## {title}\n\n{wide(journal, field, digits)}"
    return text + curves_text(journal)


# Figures


STYLES = dict(zip(CONTENDERS, ("oC0", "^C9", "sC1", "Dk", "vC2"), strict=True))


def draw(journal: Journal) -> Figure:
    """Draw log loss over that of the classes' shares, a line a set, a mark a contender."""
    names = st.sets(journal, PART)
    figure, axes = plt.subplots(figsize=(8, 1.6 + 0.24 * len(names)))
    for contender, style in STYLES.items():
        points = [
            (max(st.mean(own, "log_loss") / st.mean(own, "prior"), LEAST_SHARE), place)
            for place, name in enumerate(names)
            if (own := list(st.done(journal, PART, name, contender).values()))
        ]
        x, y = np.array(points or [(np.nan, np.nan)]).T
        own = {"color": style[1:], "alpha": 0.8, "zorder": 3 if contender == DEFAULT else 2}
        axes.plot(x, y, style[0], label=contender, fillstyle=fill_of(contender), **own)
    axes.set_yticks(range(len(names)), names)
    axes.axvline(1, color="0.6", linestyle=":")
    axes.set(xlabel="log loss over that of the classes' shares alone", xscale="log")
    axes.set(ylim=(len(names) - 0.4, -0.6))
    plain_log(axes.xaxis)
    axes.grid(axis="y", alpha=0.3)
    figure.legend(loc="upper center", ncols=3)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.65 / figure.get_figheight()))
    return figure


def fill_of(contender: str) -> str:
    return "full" if contender == DEFAULT else "none"


def draw_curves(journal: Journal) -> Figure:
    """Draw how often a class comes true against its probability, a panel a set, of one split."""
    figure, grid = plt.subplots(2, 3, figsize=(9.5, 6.9), sharex=True, sharey=True)
    for axes, name in zip(grid.flat, CURVES, strict=True):
        axes.plot([0, 1], [0, 1], color="0.6", linestyle=":")
        for contender in reversed(DRAWN):
            found = journal.find(part=PART, set=name, estimator=contender, seed=0)
            if found and "curve" in found:
                draw_curve(axes, found, contender)
                n_rows, k = found["test_rows"], found["classes"]
                axes.set_title(f"{name}: {k} classes, {n_rows:,} rows", fontsize=10)
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    figure.supxlabel("probability that was predicted")
    figure.supylabel("share that came true")
    handles, labels = (told[::-1] for told in grid[0, 0].get_legend_handles_labels())
    figure.legend(handles, labels, loc="upper center", ncols=3, fontsize=11)
    figure.tight_layout(rect=(0, 0, 1, 0.95))
    return figure


def draw_curve(axes: Any, record: Record, contender: str) -> None:
    pairs, sums, hits = (np.array(record["curve"][name]) for name in ("pairs", "sums", "hits"))
    told = pairs >= LEAST_PAIRS
    n, p, share = pairs[told], sums[told] / pairs[told], hits[told] / pairs[told]
    # Two standard errors, had the predictions been right.
    bars = 2 * np.sqrt(p * (1 - p) / n) if contender == DEFAULT else None
    marker, color = STYLES[contender][0], STYLES[contender][1:]
    axes.errorbar(
        p, share, bars, fmt=f"{marker}-", color=color, markersize=4, linewidth=1.2, label=contender,
        fillstyle=fill_of(contender), elinewidth=0.8, capsize=2, zorder=2 + (contender == DEFAULT),
    )  # fmt: skip


EXPERIMENT = Experiment(
    keys, measure, report, draw, settings={"quick": False}, figures={"reliability": draw_curves}
)
