"""Numbers as people write them, and blanks among numbers: Python's own parsing is the oracle."""

import re
from itertools import pairwise, product

import hypothesis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import strategies as st

import daskls
from daskls import DataError, TableEncoder
from daskls.sources.base import TableOptions, TableSource
from daskls.sources.encoding import ColumnEncoding, TableEncoding, UnseenCounts
from daskls.sources.scan import scan_table
from daskls.sources.signs import with_numbers

few = hypothesis.settings(max_examples=60, deadline=None, derandomize=True, database=None)
BLANKS = [None, "", " ", "\t ", "\u00a0"]
# Numbers in the two ways, as countries with points and with commas write them.
POINTS = re.compile(r"\d+(\.\d*)?|[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
COMMAS = re.compile(r"\d+(,\d*)?|[1-9]\d{0,2}(\.\d{3})+(,\d*)?")


def table_of(values, cuts=(), *, is_typed=True):
    bounds = [0, *sorted(cut for cut in cuts if cut < len(values)), len(values)]
    batches = [pa.table({"a": pa.array(values[a:b], pa.string())}) for a, b in pairwise(bounds)]
    return TableSource("t", batches[0].schema, lambda _: iter(batches), is_typed=is_typed)


def column_of(values, cuts=(), **options):
    (column,) = scan_table(table_of(values, cuts, **options), None, TableOptions()).encoding.columns
    return column


def column_or_error(*given, **options):
    try:
        return column_of(*given, **options)
    except DataError as error:
        return str(error)


def coded(column, values):
    return TableEncoding((column,)).encode(pa.table({"a": values}), 0, UnseenCounts())


CUTS = st.lists(st.integers(0, 12), max_size=4)
NUMBERS = st.one_of(st.integers(-9999, 9999), st.floats(-1e6, 1e6))


@few
@hypothesis.given(
    st.lists(st.one_of(NUMBERS.map(str), st.sampled_from(BLANKS)), min_size=1, max_size=12),
    CUTS,
    st.booleans(),
)
def test_blanks_among_numbers_are_gaps(values, cuts, is_typed):
    numbers = [float(own) if own and own.strip() else np.nan for own in values]
    hypothesis.assume(not np.isnan(numbers).all())
    column = column_of(values, cuts, is_typed=is_typed)
    assert column == column_of(values, is_typed=is_typed)
    has_blank = any(own is not None and not own.strip() for own in values)
    # A frame tells numbers from text, unless blanks among them made text of all.
    if is_typed and not has_blank:
        assert column.kind == "category"
        return
    gaps, median = np.isnan(numbers), float(np.nanmedian(numbers))
    assert column.kind == "number"
    assert (column.fill, column.usual) == ((median, None) if gaps.any() else (None, median))
    X = coded(column, values)
    np.testing.assert_array_equal(X[:, 0], np.where(gaps, median, numbers))
    if gaps.any():
        np.testing.assert_array_equal(X[:, 1], gaps)


@st.composite
def written(draw):
    """Return a number with a sign, as one of many hands writes it, and the sign."""
    sign = draw(st.sampled_from(["", "$", "$", "€", "%", "₹"]))
    digits = draw(st.integers(0, 3))
    number = draw(st.one_of(st.integers(0, 3000), st.integers(999_999, 3_000_000))) / 10**digits
    text = f"{number:{draw(st.sampled_from([',', '']))}.{digits}f}"
    space, minus = draw(st.sampled_from(["", " "])), draw(st.sampled_from(["", "-"]))
    if sign == "%" or (sign == "€" and draw(st.booleans())):
        return f"{minus}{text}{space}{sign}", sign
    return (
        f"{minus}{sign}{space}{text}" if draw(st.booleans()) or not sign else f"{sign}{minus}{text}"
    ), sign


def oracle(values):
    """Return the sign and the numbers of text that can be read in one way only; else None."""
    signs, is_telling, are_both = set(), False, True
    for text, sign in values:
        bare = re.sub(r"[-\s$€%₹]", "", text)
        if not POINTS.fullmatch(bare):
            return None
        signs.add(sign)
        by_commas = COMMAS.fullmatch(bare) and not (sign in ("$", "₹") and "," in bare)
        # Bare numbers with a point may stand in another part than those with commas.
        is_telling |= not by_commas and bool(sign or "," in bare)
        are_both &= not ("," in bare or (sign and "." in bare))
    if len(signs) > 1 or not (is_telling or (are_both and signs != {""})):
        return None
    return signs.pop(), [float(re.sub(r"[^\d.-]", "", text)) for text, _ in values]


def check_numbers(column, texts, sign, numbers):
    assert (column.kind, column.sign, column.usual) == ("number", sign, float(np.median(numbers)))
    np.testing.assert_array_equal(coded(column, texts)[:, 0], numbers)


@hypothesis.settings(few, max_examples=100)
@hypothesis.given(
    st.one_of(
        st.lists(written(), min_size=1, max_size=8),
        st.sampled_from(["", "$", "€", "%"]).flatmap(
            lambda sign: st.lists(
                written().filter(lambda own: own[1] == sign), min_size=4, max_size=9
            )
        ),
    ),
    CUTS,
    st.booleans(),
)
def test_numbers_with_signs_are_read_where_one_reading_is_certain(values, cuts, is_typed):
    texts, wanted = [text for text, _ in values], oracle(values)
    column = column_or_error(texts, cuts, is_typed=is_typed)
    assert column == column_or_error(texts, is_typed=is_typed)
    if wanted is None:
        assert "numbers with commas" in column if isinstance(column, str) else column.sign is None
        return
    check_numbers(column, texts, *wanted)


def oracle_of_commas(values):
    """Return the sign and the numbers of text that can be read by decimal commas only."""
    bare = [re.sub(r"[-\s$€%₹]", "", text) for text, _ in values]
    if not all(map(COMMAS.fullmatch, bare)):
        return None
    tells = any(
        own.count(".") > 1 or (("," in own or ("." in own and sign)) and not POINTS.fullmatch(own))
        for own, (_, sign) in zip(bare, values, strict=True)
    )
    if not tells or len({sign for _, sign in values}) > 1:
        return None
    points = [re.sub(r"[^\d,-]", "", text).replace(",", ".") for text, _ in values]
    return "," + values[0][1], [float(own) for own in points]


@hypothesis.settings(few)
@hypothesis.given(
    st.sampled_from(["", "", "€", "%"]).flatmap(
        lambda sign: st.lists(written().filter(lambda own: own[1] == sign), min_size=1, max_size=9)
    ),
    st.integers(0, 9),
    CUTS,
)
def test_numbers_with_decimal_commas_are_read_where_that_is_certain(values, n_points, cuts):
    """The first values may be written with points: then there is no reading by commas."""
    swapped, n = str.maketrans(",.", ".,"), n_points % len(values)
    values = [*values[:n], *((text.translate(swapped), sign) for text, sign in values[n:])]
    texts, wanted = [text for text, _ in values], oracle_of_commas(values)
    column = column_or_error(texts, cuts, is_typed=False)
    assert column == column_or_error(texts, is_typed=False)
    if wanted is None:
        assert isinstance(column, str) or not (column.sign or "").startswith(",")
        return
    check_numbers(column, texts, *wanted)
    # As a target or a weight it is the same.
    table = with_numbers(table_of(texts, cuts, is_typed=False), "a", "numbers")
    read = np.concatenate([batch["a"].to_numpy() for batch in table.batches(["a"])])
    np.testing.assert_array_equal(read, wanted[1])


N = 60
PRICES = pd.DataFrame(
    {
        "price": [f"${1000 + 37.5 * i:,.2f}" for i in range(N)],
        "share": [f"{i % 9} %" for i in range(N)],
        "people": [f"{20_000 * (i + 1):,}" for i in range(N)],
        "t": ["low"] * (N // 2) + ["high"] * (N // 2),
    }
)
SMALL = {"cell_size": 200, "C": 1.0, "gamma": 5.0, "random_state": 0}


def test_a_model_reads_signs_in_queries_as_in_training(tmp_path):
    PRICES.to_csv(tmp_path / "t.csv", index=False)
    bare = PRICES.assign(
        price=[1000 + 37.5 * i for i in range(N)],
        share=[i % 9 for i in range(N)],
        people=[20_000 * (i + 1) for i in range(N)],
    )
    wanted = daskls.VoronoiSVC(**SMALL).fit(bare, "t")
    for given in (PRICES, pl.from_pandas(PRICES), tmp_path / "t.csv"):
        model = daskls.VoronoiSVC(**SMALL).fit(given, "t")
        assert model.table_.describe()[1] == "price: a number, written with $"
        # Numbers may come as such, too.
        for own in (PRICES, tmp_path / "t.csv", bare):
            found = model.decision_function(own)
            np.testing.assert_array_equal(found, wanted.decision_function(bare))
    model.save(tmp_path / "m")
    assert daskls.load(tmp_path / "m").table_ == model.table_


def test_a_sign_that_training_rows_did_not_have_is_refused():
    encoder = TableEncoder("t").fit(PRICES)
    for value in ("€5", "$1,5", "$5 %", "much", "1,234"):
        given = PRICES.assign(price=PRICES.price.where(PRICES.index != 7, value))
        words = rf"'price' holds {re.escape(repr(value))} in row 7 |commas"
        with pytest.raises(DataError, match=words):
            encoder.transform(given)


def test_blank_text_is_a_gap_of_dates_and_categories():
    dates, column = (
        column_of(own) for own in (["2024-05-01", "", "2025-06-02"], ["red", "", "blue", " "])
    )
    assert (dates.kind, dates.fill is None) == ("date", False)
    assert column == ColumnEncoding("a", "category", ("blue", "red"), fill=0.0)
    assert coded(column, ["", "red"]).tolist() == [[0, 0, 1], [0, 1, 0]]


def test_thousands_that_are_apart_by_what_is_no_point_are_numbers():
    numbers = 1000 + 12_345 * np.arange(N)
    for mark, end in product([" ", "\u00a0", "\u202f", "'", "\u2019"], ["", ".50", ",50"]):
        texts = [f"{number:,}".replace(",", mark) + end for number in numbers]
        column = column_of(texts, is_typed=False)
        assert column.kind == "number"
        np.testing.assert_array_equal(coded(column, texts)[:, 0], numbers + bool(end) / 2)


@pytest.mark.filterwarnings("ignore:.*left out")
def test_texts_of_numbers_with_a_unit_are_told(tmp_path, capsys):
    values = np.random.default_rng(0).integers(500, 900, 300)
    rows = [f"{v} EUR,{v % 9} m²,{v} €,r{v},{'ab'[int(v > 700)]}" for v in values]
    (tmp_path / "rows.csv").write_text("\n".join(["deposit,area,rent,code,y", *rows]))
    daskls.VoronoiSVC(random_state=0, verbose=1).fit(tmp_path / "rows.csv", "y")
    said = capsys.readouterr().out
    told = re.findall(r"^(\w+): texts such as .* look like numbers with a unit; rem", said, re.M)
    assert sorted(told) == ["area", "deposit"]
