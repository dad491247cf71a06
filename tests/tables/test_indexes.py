"""An index that pandas wrote: no feature, but read where it is asked for."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tables.containers import written

from daskls import VoronoiSVC

RNG = np.random.default_rng(0)
N = 240
ROWS = pd.DataFrame({"age": RNG.integers(18, 80, N) * 1.0, "income": RNG.random(N) * 10})
ROWS["kind"] = np.where((ROWS.age > 50) ^ (ROWS.income > 5), "buys", "looks")
KINDS = {
    "Parquet": written("to_parquet", "rows.parquet"),
    "Arrow": lambda frame, _: pa.Table.from_pandas(frame),
}


def fitted(*given, **options):
    return VoronoiSVC(200, C=1.0, gamma=1.0, random_state=0).fit(*given, **options)


def assert_same(model, wanted):
    np.testing.assert_array_equal(model.decision_function(ROWS), wanted.decision_function(ROWS))


def test_an_index_that_pandas_wrote_is_no_feature(tmp_path):
    frame = ROWS.sort_values("kind")
    wanted = fitted(frame, "kind")
    assert wanted.table_.column_names == ["age", "income"]
    for write in KINDS.values():
        assert_same(fitted(write(frame, tmp_path), "kind"), wanted)
    # Files with and without one are one table.
    frame[:100].to_csv(tmp_path / "1.csv")
    frame[100:].to_csv(tmp_path / "2.csv", index=False)
    with pytest.warns(UserWarning, match="first column of .*csv has no name: it is taken for an"):
        assert_same(fitted(tmp_path / "*.csv", "kind"), wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_is_read_where_it_is_asked_for(kind, tmp_path):
    rows = ROWS.assign(w=np.arange(N) % 3 + 1.0)
    wanted = fitted(rows, "kind", "w")
    # As labels and as weights.
    frame = KINDS[kind](rows.set_index(["kind", "w"]), tmp_path)
    assert_same(fitted(frame, "kind", "w"), wanted)
    # As a feature of a trained model; only then is it one.
    named = KINDS[kind](rows.set_index("age"), tmp_path)
    np.testing.assert_array_equal(wanted.decision_function(named), wanted.decision_function(ROWS))
    with pytest.warns(UserWarning, match=r"The index of .* is left out: age\. Write the DataFrame"):
        assert fitted(named, "kind", "w").table_.column_names == ["income"]
