"""Tables as they are: text, categories of up to thousands of values, dates, gaps and numbers.

Every estimator with its defaults and its own handling of categories and gaps; three splits each.
`benchmarks/suite/packaged.py` has the tables, which packages ship.

    python -m benchmarks mixed --quick                         # one split
    python -m benchmarks mixed --only set=cars estimator=daskls
"""

from collections.abc import Callable, Collection, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder

from benchmarks.suite import Experiment, Journal, Record, Run, table
from benchmarks.suite import standing as st
from benchmarks.suite.apart import begin_limit, run_forked
from benchmarks.suite.defaults import LIMIT_S, choice, versions_of
from benchmarks.suite.measure import cpu_of
from benchmarks.suite.packaged import CLASSES, MOST_ROWS, TABLES, frame
from benchmarks.suite.proper import loss_of
from benchmarks.suite.tables import versions
from benchmarks.untuned import counted, standing_of, told, words
from daskls import VoronoiSVC, VoronoiSVR

PART, N_SPLITS, OURS = "split", 3, "daskls"


class Rows(NamedTuple):
    """Training and test rows without their label, and codes or numbers of that."""

    X: pd.DataFrame
    y: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray


# What peers are given


def parted(X: pd.DataFrame) -> pd.DataFrame:
    """Return rows with the usual numbers in place of dates."""
    dates = list(X.select_dtypes("datetime"))
    parts = {}
    for name in dates:
        own = X[name].dt
        for part in ("year", "month", "day", "day_of_week", "hour"):
            parts[f"{name} {part}"] = getattr(own, part).astype(float)
        parts[f"{name} seconds"] = (X[name] - pd.Timestamp(0)).dt.total_seconds()
    return X.drop(columns=dates).assign(**parts)


def categories(data: Rows, most: int | None = None) -> Rows:
    """Return text as pandas' categories of the training rows, or of their most frequent values."""
    X, X_test = parted(data.X), parted(data.X_test)
    for name in X.select_dtypes("str"):
        values = X[name].value_counts().index[:most]
        for rows in (X, X_test):
            known = rows[name].where(rows[name].isin(values))
            rows[name] = known.astype(pd.CategoricalDtype(values))
    return data._replace(X=X, X_test=X_test)


def gaps_as_text(data: Rows) -> Rows:
    """Return text whose gaps are a value: CatBoost takes no others."""
    X, X_test = parted(data.X), parted(data.X_test)
    names = list(X.select_dtypes("str"))
    X, X_test = (rows.fillna(dict.fromkeys(names, "")) for rows in (X, X_test))
    return data._replace(X=X, X_test=X_test)


# The contenders


def cells(data: Rows, is_classes: bool) -> Any:
    return VoronoiSVC(random_state=0) if is_classes else VoronoiSVR(random_state=0)


def lightgbm(data: Rows, is_classes: bool) -> Any:
    # Not everywhere are the peers installed, and a report needs them not.
    import lightgbm

    make = lightgbm.LGBMClassifier if is_classes else lightgbm.LGBMRegressor
    return make(n_jobs=1, random_state=0, verbose=-1)


def xgboost(data: Rows, is_classes: bool) -> Any:
    import xgboost

    make = xgboost.XGBClassifier if is_classes else xgboost.XGBRegressor
    return make(n_jobs=1, random_state=0, enable_categorical=True)


def catboost(data: Rows, is_classes: bool) -> Any:
    import catboost

    make = catboost.CatBoostClassifier if is_classes else catboost.CatBoostRegressor
    text = list(data.X.select_dtypes("str"))
    quiet = {"verbose": False, "allow_writing_files": False}
    return make(thread_count=1, random_seed=0, cat_features=text, **quiet)


def histograms(data: Rows, is_classes: bool) -> Any:
    make = HistGradientBoostingClassifier if is_classes else HistGradientBoostingRegressor
    return make(random_state=0)


class Contender(NamedTuple):
    """How an estimator is made, and what it is given."""

    make: Callable[[Rows, bool], Any]
    given: Callable[[Rows], Rows]


CONTENDERS = {
    OURS: Contender(cells, lambda data: data),
    "LightGBM": Contender(lightgbm, categories),
    "XGBoost": Contender(xgboost, categories),
    # It refuses columns of more than 255 values.
    "HistGradientBoosting": Contender(histograms, partial(categories, most=254)),
    "CatBoost": Contender(catboost, gaps_as_text),
}


# Measurements


def keys(run: Run) -> Iterator[Record]:
    for seed in range(1 if run.settings["quick"] else N_SPLITS):
        for name in TABLES:
            for contender in CONTENDERS:
                yield {"part": PART, "set": name, "estimator": contender, "seed": seed}


def measure(run: Run, part: str, set: str, estimator: str, seed: int) -> Record:
    data = drawn(set, seed)
    found = run_forked(fitted, data, estimator, set in CLASSES, limit_s=LIMIT_S)
    return {**shape_of(data), **found}


def fitted(data: Rows, contender: str, is_classes: bool) -> Record:
    """Fit and predict in this process; what our first ones load and compile comes before."""
    make, given = CONTENDERS[contender]
    own = given(data)
    if contender == OURS:
        few = own.X[:400]
        trained(make(own, is_classes), few, own.y[:400]).predict(few)
    begin_limit(LIMIT_S)
    model, fit_s = cpu_of(lambda: trained(make(own, is_classes), own.X, own.y))
    predicted, predict_s = cpu_of(lambda: np.asarray(model.predict(own.X_test)).ravel())
    cost = {"fit_cpu_s": fit_s, "predict_cpu_s": predict_s}
    if is_classes:
        found = {
            "error": 100 * float(np.mean(predicted != own.y_test)),
            "log_loss": loss_of(np.asarray(model.predict_proba(own.X_test)), own.y_test),
        }
    else:
        missed = float(np.sqrt(np.mean((predicted - own.y_test) ** 2)))
        found = {"error": 100 * missed / float(own.y.std())}
    return {**found, **cost, **versions_of(contender), **choice(model)}


def shape_of(data: Rows) -> Record:
    """Return what the tables hold, by the training rows."""
    text = data.X.select_dtypes("str")
    return {
        "train_rows": len(data.X),
        "features": data.X.shape[1],
        "text": text.shape[1],
        "most_values": int(text.nunique().max()),
        "dates": data.X.select_dtypes("datetime").shape[1],
        "gaps": 100 * float(data.X.isna().to_numpy().mean()),
    }


def trained(model: Any, X: pd.DataFrame, y: np.ndarray) -> Any:
    """Fit an estimator; daskls takes a table by the name of its label."""
    is_ours = isinstance(model, VoronoiSVC | VoronoiSVR)
    return model.fit(X.assign(label=y), "label") if is_ours else model.fit(X, y)


@lru_cache(maxsize=1)
def drawn(name: str, seed: int) -> Rows:
    """Return a fifth of a table to test on, the others to train on; classes stratified."""
    whole, label = frame(name), TABLES[name].label
    y, whole = whole[label].to_numpy(), whole.drop(columns=label)
    if name in CLASSES:
        y = LabelEncoder().fit_transform(y)
    X, X_test, y, y_test = train_test_split(
        whole, y, test_size=0.2, random_state=seed, stratify=y if name in CLASSES else None
    )
    X, X_test = (rows.reset_index(drop=True) for rows in (X, X_test))
    return Rows(X, y, X_test, y_test)


# The report


def present(journal: Journal) -> list[str]:
    return [c for c in CONTENDERS if journal.where(part=PART, estimator=c)]


def ranks(journal: Journal) -> list[Record]:
    """Return a row for each contender: mean ranks, of all tables and by kind, and medians."""
    known = present(journal)
    boards = st.board(journal, PART, known)
    classes = {name: own for name, own in boards.items() if name in CLASSES}
    numbers = {name: own for name, own in boards.items() if name not in CLASSES}
    parts = {
        "classes": st.mean_ranks(classes),
        "numbers": st.mean_ranks(numbers),
        "log_loss": st.mean_ranks(classes, "log_loss"),
    }
    return [
        {**standing_of(boards, c), **{part: own.get(c) for part, own in parts.items()}}
        for c in known
        if boards
    ]


def besides(journal: Journal) -> list[Record]:
    """Return a row for each table: daskls beside the best of the others, and what it chose."""
    boards = st.board(journal, PART, present(journal))
    rows = []
    for name, own in boards.items():
        chosen = [words(r.get("choice", {})) for r in own[OURS]]
        beside = st.beside(own, OURS)._asdict()
        error = st.mean(own[OURS], "error")
        rows.append({"set": name, **beside, "error": error, "chosen": counted(chosen)})
    return rows


def wide(journal: Journal, field: str, digits: int, names: Collection[str] = TABLES) -> str:
    """Return a table of mean values, a row a table, a column a contender.

    They are of the splits that all have done who have done any.
    """
    known, found = present(journal), {}
    for name in st.sets(journal, PART):
        if name in names:
            done = [c for c in known if st.done(journal, PART, name, c)]
            own = st.common(journal, PART, name, done) if done else {}
            found[name] = {c: own.get(c, []) for c in known}
    columns = "table = set | train rows = train_rows:, | splits = splits"
    return st.wide(found, columns, lambda records: told(records, field, digits))


def contents(journal: Journal) -> list[Record]:
    """Return a row for each table: where it is from, and what it holds."""
    rows = [journal.find(set=name, seed=0, estimator=OURS) for name in st.sets(journal, PART)]
    return [{**r, "from": TABLES[r["set"]].source, "y": TABLES[r["set"]].label} for r in rows if r]


def report(journal: Journal) -> str:
    text = (
        "# Tables as they are\n\n"
        f"`benchmarks/mixed.py`; {journal.machine}, {versions(journal.records)}. Every estimator "
        "with its defaults, one process of one thread, daskls after a fit and a prediction of 400 "
        "rows, which load and compile; beside other work. daskls is `VoronoiSVC` where the label "
        "is a class and `VoronoiSVR` where it is a number, and takes the table as it is. LightGBM, "
        "XGBoost and HistGradientBoosting have text as categories of pandas, the last one the 254 "
        "most frequent values of a column; CatBoost has it as text. In place of dates the four "
        "have year, month, day, weekday, hour and seconds; gaps are left to them. Means over up to "
        f"{N_SPLITS} splits of up to {MOST_ROWS:,} rows, four fifths to train, classes stratified. "
        "Error: % of rows; of numbers the root mean square over y's deviation among training rows, "
        "in %. CPU seconds of a fit hold what daskls makes of the table, not what is made of it "
        f"for the others. What takes more than {LIMIT_S} CPU seconds is ended, and ranks last.\n"
    )
    columns = """
    estimator = estimator | tables = sets | mean rank = rank:.2f | least error on = first
    of classes = classes:.2f | of numbers = numbers:.2f | by log loss = log_loss:.2f
    median fit, CPU s = fit_cpu_s:.2f | median predict, CPU s = predict_cpu_s:.3f
    """
    text += "\n## Mean ranks\n\nOf the mean errors on each table that all have done.\n\n"
    text += table(columns.strip(), ranks(journal))
    text += f"\n## Error\n\n{wide(journal, 'error', 2)}"
    columns = """
    table = set | error = error:.2f | best of the others = best | difference = difference:+.2f
    two standard errors = two_errors:.2f | ratio = ratio:.3f | chosen = chosen
    """
    text += f"\n## {OURS} beside the best of the others\n\n"
    text += table(columns.strip(), besides(journal))
    text += f"\n## Log loss\n\n{wide(journal, 'log_loss', 4, CLASSES)}"
    text += f"\n## Fit, CPU seconds\n\n{wide(journal, 'fit_cpu_s', 2)}"
    columns = """
    table = set | source = r['from'] | label = y | features = features | of text = text
    most values = most_values:, | dates = dates | gaps, % = gaps:.1f
    """
    return f"{text}\n## What they hold\n\n" + table(columns.strip(), contents(journal))


EXPERIMENT = Experiment(keys, measure, report, settings={"quick": False})
