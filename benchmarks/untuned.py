"""Classifiers as they are on every table: five splits each, no parameter is chosen by hand.

All sets of the folder that DASKLS_DATA names whose labels are classes. Features in [0, 1] by the
training rows, for all contenders alike: support vector machines need some scale, trees none.

    python -m benchmarks untuned --quick                       # one split of the smaller tables
    python -m benchmarks untuned --only set=car estimator=VoronoiSVC part=split
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
from sklearn.preprocessing import LabelEncoder

from benchmarks.peers import Data
from benchmarks.suite import Experiment, Journal, Record, Run, table
from benchmarks.suite import standing as st
from benchmarks.suite.data import class_sets, drawn, has_test, in_training_range, official
from benchmarks.suite.defaults import CONTENDERS, DEFAULT, LIMIT_S, OTHERS, OURS, cost_of
from benchmarks.suite.figures import Figure, plain_log, plt
from benchmarks.suite.tables import versions

MOST_ROWS, N_SPLITS, QUICK_ROWS = 50_000, 5, 10_000
# Of several times MOST_ROWS so many are drawn, and the name says so.
CUT = {"covtype": "covtype-50k"}
# Rules over categories, which trees write down as they are.
OF_RULES = ("car", "nursery", "tic-tac-toe")
SHARE, POINTS = 0.3, 0.3
# Seconds below which nobody minds how much faster another is.
LEAST_S = 0.1
SPLIT, OFFICIAL = "split", "official"


def keys(run: Run) -> Iterator[Record]:
    """Yield a split of every set, then the other splits, then the official ones."""
    n_rows = class_sets()
    quick = bool(run.settings["quick"])
    names = [name for name, n in n_rows.items() if n < QUICK_ROWS or not quick]
    for seed in range(1 if quick else N_SPLITS):
        yield from keys_of(SPLIT, names, seed)
    if not quick:
        yield from keys_of(OFFICIAL, [n for n in names if n not in CUT and has_test(n)], 0)


def keys_of(
    part: str, names: Iterable[str], seed: int, contenders: Iterable[str] = tuple(CONTENDERS)
) -> Iterator[Record]:
    for name in names:
        for contender in contenders:
            yield {"part": part, "set": CUT.get(name, name), "estimator": contender, "seed": seed}


@lru_cache(maxsize=1)
def rows(part: str, name: str, seed: int) -> Data:
    """Return the rows of a split with scaled features, labels as codes."""
    file = {cut: whole for whole, cut in CUT.items()}.get(name, name)
    data = drawn(file, seed, MOST_ROWS) if part == SPLIT else official(file, MOST_ROWS)
    codes = LabelEncoder().fit(data.y)
    data = data._replace(y=codes.transform(data.y), y_test=codes.transform(data.y_test))
    return in_training_range(data)


def measure(run: Run, part: str, set: str, estimator: str, seed: int) -> Record:
    data = rows(part, set, seed)
    shape = {"train_rows": len(data.X), "features": data.X.shape[1], "test_rows": len(data.X_test)}
    first = run.journal.find(part=part, set=set, estimator=estimator, seed=0)
    if seed and first and st.is_ended(first):
        # It is last there whatever it makes of the other splits.
        return {**shape, "failure": first["failure"]}
    return {**shape, **cost_of(data, estimator, seed)}


# The report


def present(journal: Journal, part: str = SPLIT) -> list[str]:
    """Return the contenders with defaults that a journal knows."""
    return [c for c in (DEFAULT, *OTHERS) if journal.where(part=part, estimator=c)]


def plugin_of(journal: Journal, contender: str) -> dict[str, st.Splits]:
    """Return the sets on which a contender and the default ones of other libraries are done."""
    others = [c for c in present(journal) if c not in OURS]
    return st.board(journal, SPLIT, [contender, *others])


def ranked(journal: Journal) -> list[Record]:
    """Return a row for each contender: mean rank and medians over sets."""
    known = present(journal)
    boards = st.board(journal, SPLIT, known) if known else {}
    # With other parameters one stands in the place of the default, not beside it.
    ours = {c: plugin_of(journal, c) for c in OURS if c != DEFAULT}
    return [
        *(standing_of(boards, contender) for contender in known if boards),
        *(standing_of(own, contender) for contender, own in ours.items() if own),
    ]


def standing_of(boards: Mapping[str, st.Splits], contender: str) -> Record:
    own = [splits[contender] for splits in boards.values()]
    means = {f: [st.mean(s, f, LIMIT_S) for s in own] for f in ("fit_cpu_s", "predict_cpu_s")}
    return {
        "estimator": contender,
        "sets": len(own),
        "rank": st.mean_ranks(boards)[contender],
        "first": sum(is_first(splits, contender) for splits in boards.values()),
        **{field: float(np.median(values)) for field, values in means.items()},
    }


def is_first(splits: st.Splits, contender: str) -> bool:
    """Whether nobody has a lower mean error; several may have the lowest."""
    errors = {c: st.mean(own, "error") for c, own in splits.items()}
    return errors[contender] == min(errors.values())


def ranks_text(journal: Journal) -> str:
    columns = """
    estimator = estimator | sets = sets | mean rank = rank:.2f | least error on = first
    median fit, CPU s = fit_cpu_s:.2f | median predict, CPU s = predict_cpu_s:.3f
    """
    text = (
        "\n## Mean ranks\n\nOf the mean errors on each set, equal ones share theirs, and each of "
        "them is counted where they are the least; over the sets and splits that all of these "
        "have done.\n\n"
    )
    return text + table(columns.strip(), ranked(journal))


def wide(journal: Journal, part: str, field: str, digits: int) -> str:
    """Return a table of mean values, a row a set, a column a contender."""
    known = present(journal, part)
    columns = "set = set | train rows = train_rows:, | splits = splits"
    found = st.every(journal, part, known)
    return st.wide(found, columns, lambda own: told(own, field, digits))


def told(records: Sequence[Record], field: str, digits: int) -> str:
    if not records:
        return "not measured"
    ended = any(st.is_ended(r) for r in records)
    return f"> {LIMIT_S} s" if ended else f"{st.mean(records, field):,.{digits}f}"


def besides(journal: Journal, ours: str) -> list[Record]:
    """Return a row for each set: a contender beside the best of the others, and what it chose."""
    boards = plugin_of(journal, ours)
    return [{"set": name, **row(own, ours)} for name, own in boards.items() if len(own) > 1]


def row(own: st.Splits, ours: str) -> Record:
    found = st.beside(own, ours)
    return {
        **found._asdict(),
        "error": st.mean(own[ours], "error"),
        "worse": found.is_worse(SHARE, POINTS),
        "times": times_of(own, ours),
        "chosen": counted([words(r.get("choice", {})) for r in own[ours]]),
    }


def times_of(own: st.Splits, ours: str) -> float | None:
    """Return the CPU seconds of a fit over XGBoost's, which count as LEAST_S at the least."""
    if "XGBoost" not in own:
        return None
    theirs = st.mean(own["XGBoost"], "fit_cpu_s", LIMIT_S)
    return st.mean(own[ours], "fit_cpu_s", LIMIT_S) / max(theirs, LEAST_S)


def counted(values: Sequence[str]) -> str:
    return ", ".join(f"{value} {values.count(value)}" for value in dict.fromkeys(values))


def words(choice: Record) -> str:
    """Return the coding, the scale and the kernel that were chosen."""
    chosen = choice.get("summary", {}).get("chosen", {})
    return " ".join(chosen[name] for name in ("coding", "scale", "kernel") if name in chosen)


def beside_text(journal: Journal, ours: str) -> str:
    rows = besides(journal, ours)
    if not rows:
        return ""
    columns = """
    set = set | error % = error:.2f | best of the others = best | difference = difference:+.2f
    two standard errors = two_errors:.2f | ratio = ratio:.2f
    fit over XGBoost's = times and '%.1f' % times or '' | chosen = chosen
    """
    text = (
        f"\n## {ours} beside the best of the others\n\nPoints of error, paired over splits; the "
        "best is the least mean error of the same splits. CPU seconds of a fit over XGBoost's, "
        f"which count as {LEAST_S} s at the least.\n\n"
    )
    return text + table(columns.strip(), rows) + f"\n{worse_text(rows)}{times_text(rows)}"


def worse(rows: Iterable[Record]) -> list[str]:
    """Return the sets on which a contender is worse than the best of the others, but for rules."""
    return [r["set"] for r in rows if r["worse"] and r["set"] not in OF_RULES]


def worse_text(rows: list[Record]) -> str:
    return (
        f"Worse by more than the largest of {SHARE:.0%}, two paired standard errors and {POINTS} "
        f"points, but for {', '.join(OF_RULES)}: {', '.join(worse(rows)) or 'no set'}.\n"
    )


def times_text(rows: list[Record]) -> str:
    times = {r["set"]: r["times"] for r in rows if r["times"] is not None}
    if not times:
        return ""
    most = max(times, key=lambda name: times[name])
    return (
        f"\nCPU seconds of a fit over XGBoost's: {np.median(list(times.values())):.1f} in the "
        f"median, {times[most]:.1f} at the most ({most}).\n"
    )


def about(journal: Journal) -> str:
    return (
        "# Classifiers as they are, on every table\n\n"
        f"`benchmarks/untuned.py`; {journal.machine}, {versions(journal.records)}. Every estimator "
        "with its defaults but for what its name says, features in [0, 1] by the training rows, "
        "one process of one thread, after a fit and a prediction of 400 rows, which load and "
        f"compile; beside other work. Means over up to {N_SPLITS} stratified splits of all rows of "
        "a set, official test rows among them, four fifths to train; at most "
        f"{MOST_ROWS:,} rows to train and {MOST_ROWS // 4:,} to test are drawn. What takes "
        f"more than {LIMIT_S} CPU seconds is ended, not tried on other splits, and ranks last.\n"
    )


def report(journal: Journal) -> str:
    text = about(journal) + ranks_text(journal)
    text += beside_text(journal, DEFAULT)
    for title, part, field, digits in (
        ("Error, %", SPLIT, "error", 2),
        ("Fit, CPU seconds", SPLIT, "fit_cpu_s", 2),
        ("Prediction of all test rows, CPU seconds", SPLIT, "predict_cpu_s", 3),
        ("Official test rows: error, %", OFFICIAL, "error", 2),
    ):
        if journal.where(part=part):
            text += f"\n## {title}\n\n{wide(journal, part, field, digits)}"
    return text


def draw(journal: Journal) -> Figure:
    """Draw mean rank against the median CPU seconds of a fit, a point a contender."""
    figure, axes = plt.subplots(figsize=(7, 4.5))
    points = {r["estimator"]: (r["fit_cpu_s"], r["rank"]) for r in ranked(journal)}
    for contender, point in points.items():
        marker, color = ("o", "C0") if contender in OURS else ("s", "C1")
        axes.plot(*point, marker, color=color)
        # A budget beside the default is too near for both names on one side.
        above = -14 if contender == DEFAULT else 4
        axes.annotate(contender, point, (5, above), textcoords="offset points", fontsize=8)
    budgets = sorted(point for contender, point in points.items() if contender in OURS)
    axes.plot([s for s, _ in budgets], [rank for _, rank in budgets], color="C0", zorder=0)
    axes.set(xscale="log", xlabel="fit, CPU s, median over sets", ylabel="mean rank of mean errors")
    # Names stand to the right of their points.
    low, high = axes.get_xlim()
    axes.set_xlim(low, high * 3)
    axes.margins(y=0.1)
    plain_log(axes.xaxis)
    figure.tight_layout()
    return figure


EXPERIMENT = Experiment(keys, measure, report, draw, settings={"quick": False})
