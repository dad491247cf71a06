"""Dates: what becomes of them, against pandas, in any container, unit and spelling."""

import re

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from tables.containers import FILES, TABLES

from daskls import DataError, TableEncoder
from daskls.sources.dates import CIRCLES

PARTS = ("year", "month", "day", "weekday", "hour")
CONTAINERS = ("pandas", "Polars", "Arrow table", "Dask DataFrame", "Parquet file", "CSV")
SPELLINGS = ("%Y-%m-%d %H:%M:%S", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d.%m.%Y %H:%M:%S")


# Before 2037, up to which Arrow knows summer time.
def drawn_dates(seed, n=60, zone=None, unit="ns", every="17h"):
    start = pd.Timestamp(np.random.default_rng(seed).integers(0, 15 * 10**8), unit="s")
    return pd.Series(pd.date_range(start.floor("min"), periods=n, freq=every, tz=zone, unit=unit))


def by_hand(dates):
    seconds = [when.timestamp() for when in dates]
    columns = [np.array(seconds)]
    for part in PARTS:
        name = "day_of_week" if part == "weekday" else part
        columns.append(getattr(dates.dt, name).to_numpy(np.float64))
        if part in CIRCLES:
            angle = 2 * np.pi * columns[-1] / CIRCLES[part]
            columns += [np.cos(angle), np.sin(angle)]
    return np.column_stack(columns)


def frame_of(dates):
    return pd.DataFrame({"when": dates, "y": np.arange(len(dates)) % 2})


def features(table, query=None):
    encoder = TableEncoder("y").fit(table)
    found = encoder.transform(table if query is None else query)
    return encoder, np.asarray(found.compute() if hasattr(found, "compute") else found)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("zone", [None, "America/New_York"])
def test_features_are_those_of_pandas_in_any_container(container, zone, tmp_path):
    dates = drawn_dates(3, 400, zone, every="171h")
    table = TABLES[container](frame_of(dates), tmp_path)
    if container in FILES:
        encoder = TableEncoder("y").fit(table)
        found = zarr.open_array(f"{encoder.to_zarr(table, tmp_path / 'out').path}/X")[:]
    else:
        encoder, found = features(table)
    # Text knows the offset from UTC alone, not the zone.
    wanted = dates.dt.tz_convert("UTC") if zone and container == "CSV" else dates
    np.testing.assert_allclose(found, by_hand(wanted), rtol=0, atol=1e-6)
    assert encoder.table_.feature_names[:2] == ["when", "when year"]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    unit=st.sampled_from(["s", "ms", "us", "ns"]),
    spelling=st.sampled_from(SPELLINGS),
    zone=st.sampled_from([None, "Europe/Berlin", "Asia/Kolkata"]),
    parts=st.integers(1, 7),
)
def test_units_spellings_and_partitions_do_not_matter(seed, unit, spelling, zone, parts):
    dates = drawn_dates(seed, unit=unit)
    encoder, wanted = features(frame_of(dates.astype("datetime64[ns]")))
    for other in (dates, dates.dt.strftime(spelling)):
        own, found = features(frame_of(other))
        assert own.table_.feature_names == encoder.table_.feature_names
        seconds = 60 if "%S" not in spelling and other is not dates else 0
        np.testing.assert_allclose(found, wanted, rtol=0, atol=seconds)
    table = dd.from_pandas(frame_of(dates.dt.tz_localize(zone)), npartitions=parts)
    assert TableEncoder("y").fit(table).table_ == TableEncoder("y").fit(table.compute()).table_


def test_an_order_that_cannot_be_told_is_said():
    both = frame_of(pd.Series(["01/02/2020", "03/04/2021"] * 4))
    with pytest.warns(UserWarning, match=r"'when' reads day first and month first; the day is"):
        _, found = features(both)
    assert pd.Timestamp(found[0, 0], unit="s") == pd.Timestamp("2020-02-01")
    one = frame_of(pd.Series(["01/02/2020", "03/14/2021"] * 4))
    assert pd.Timestamp(features(one)[1][0, 0], unit="s") == pd.Timestamp("2020-01-02")


def test_a_gap_is_the_median_and_flagged():
    dates = drawn_dates(1, 61)
    gaps = dates.copy()
    gaps[[4, 50]] = pd.NaT
    encoder, found = features(frame_of(gaps))
    assert encoder.table_.feature_names[-1] == "when is missing"
    assert np.flatnonzero(found[:, -1]).tolist() == [4, 50]
    kept = gaps.dropna()
    median = float(np.median([when.timestamp() for when in kept]))
    np.testing.assert_allclose(found[4, 0], median, atol=1e-6)
    instant = pd.Series(pd.to_datetime([median], unit="s"))
    assert found[4, encoder.table_.feature_names.index("when hour")] == instant.dt.hour[0]
    # A query's first gap.
    with pytest.warns(UserWarning, match="none: 2 in 'when'"):
        features(frame_of(dates), frame_of(gaps))


def test_durations_and_times_of_a_day_are_seconds():
    long, at = pa.array([90, None], pa.duration("ms")), pa.array([3600, 7200], pa.time32("s"))
    _, found = features(pa.table({"long": long, "at": at, "y": [0, 1]}))
    np.testing.assert_array_equal(found, [[0.09, 0.0, 3600.0], [0.09, 1.0, 7200.0]])


def test_a_query_may_spell_its_dates_in_another_way_or_is_refused():
    dates = drawn_dates(2)
    encoder, wanted = features(frame_of(dates))
    np.testing.assert_array_equal(encoder.transform(frame_of(dates.astype(str))), wanted)
    bad = frame_of(dates.astype(str).where(dates.index != 7, "soon"))
    with pytest.raises(DataError, match=r"'when' holds 'soon' in row 7 .*dates, as ISO 8601"):
        encoder.transform(bad)
    with pytest.raises(DataError, match="all are dates up to 'soon' in row 99"):
        features(frame_of([*drawn_dates(2, 99).astype(str), "soon"]))
    aware = dates.dt.tz_localize("UTC")
    own, wanted = features(frame_of(aware))
    found = own.transform(frame_of(aware.dt.tz_convert("Asia/Tokyo")))
    np.testing.assert_array_equal(found, wanted)
    # Dates without a zone are local ones.
    own, wanted = features(frame_of(dates.dt.tz_localize("Asia/Tokyo")))
    np.testing.assert_array_equal(own.transform(frame_of(dates)), wanted)
    # Beside some with an offset they are of UTC.
    texts = pd.Series(["2020-05-01T12:00+02:00", "2021-06-02 12:00", "2022-07-03T00:00Z"])
    wanted = by_hand(pd.to_datetime(texts, utc=True, format="ISO8601"))
    np.testing.assert_allclose(features(frame_of(texts))[1], wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("day", ["30.02.2020", "02-30-2020", "2021/11/31"])
@pytest.mark.always
def test_days_that_no_month_has_are_no_dates(day):
    first = re.sub("3[01]", "28", day)
    encoder, _ = features(frame_of(pd.Series([first, first, None])))
    assert encoder.table_.columns[0].kind == "date"
    with pytest.raises(DataError, match=f"'when' holds '{day}' in row 1"):
        encoder.transform(frame_of(pd.Series([first, day])))
    assert features(frame_of(pd.Series([first, day])))[0].table_.columns[0].kind == "category"
