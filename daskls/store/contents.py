"""The contents of a store: one table, which ``docs/stores.md`` is made from.

Dimensions are named: n rows, d features, b blocks, p partitions or problems, k classes; the others
say what they count. ``X`` among the dtypes is that of the data set as floats (``float32`` or
``float64``), ``any`` that of the data set itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby

__all__ = ["CONTENTS", "StoredItem", "find_held", "stores_page"]

FINISH, NEVER = "the model is finished", "never"
ROOT = "the first task of a fit"


@dataclass(frozen=True)
class StoredItem:
    """One array, or one file, that a store holds.

    Attributes
    ----------
    key : str. The key of its group or pack; * stands for any part of a name.
    name : str. Of the array; "" of a file that is none.
    dtype, dims : str. ``dims`` names the axes.
    by : str. What writes it.
    dropped : str. When it goes.
    """

    key: str
    name: str
    dtype: str
    dims: str
    by: str
    dropped: str = NEVER

    @property
    def n_axes(self) -> int:
        """The number of axes."""
        return len(self.dims.split(", ")) if self.dims else 0


def _of(key: str, by: str, dropped: str, *arrays: tuple[str, str, str]) -> tuple[StoredItem, ...]:
    """Return the arrays of one key: each is (name, dtype, dimensions)."""
    return tuple(StoredItem(key, *array, by, dropped) for array in arrays)


TREES = (
    ("center", "float64", "d"),
    ("n_nodes", "int64", "p"),
    ("directions", "float64", "nodes, d"),
    ("thresholds", "float64", "nodes"),
    ("children", "int32", "nodes, 2"),
)
POINTS = (("points", "float64", "cells, d"),)
ROWS_HELD = (
    ("X", "X", "n, d"),
    ("codes", "int32", "n"),
    ("weights", "float64", "n"),
    ("numbers", "int64", "n"),
)
NUMBERED = (("numbers", "int64", "n"), ("places", "int64", "n"))
COUNTS_HELD = (
    ("leaf_rows", "int64", "leaves"),
    ("n_cells", "int64", "leaves"),
    ("cell_rows", "int64", "cells"),
    ("cells", "float64", "cells, 3 d + 2"),
    ("leaves", "float64", "leaves, 3 d + 2"),
)
SAMPLING, STATES = "methods/sampling", "joint/*/*.states"
CONTENTS: tuple[StoredItem, ...] = (
    StoredItem(
        "",
        "zarr.json",
        "JSON",
        "",
        "run/identity.py; `complete` by the last task, `stage_s` after it",
    ),
    *_of("partition", "run/begin.py", NEVER, *TREES, *POINTS),
    *_of(
        *("scale", "scaling/fit.py", NEVER),
        *(("center", "float64", "coded d"), ("factors", "float64", "coded d")),
        *(("ptr", "int64", "d + 1"), ("points", "float64", "points")),
        ("ranks", "float64", "points"),
    ),
    *_of(
        *("calibration", "methods/calibrate.py, methods/held_out.py", NEVER),
        ("a", "float64", "k"),
        ("b", "float64", "k"),
        ("knots", "float64", "knots"),
        ("values", "float64", "knots"),
        ("ptr", "int64", "k + 1"),
    ),
    StoredItem("held-out-*", "*", "any", "a store", "methods/calibrate.py", "all folds are scored"),
    *_of("index", "store/reader.py, last", NEVER, ("bundles", "int64", "bundles, 2")),
    *_of("index", "store/reader.py, last", NEVER, ("first_cell", "int64", "bundles + 1")),
    *_of("index", "methods/cells", NEVER, *TREES),
    *_of("index", "methods/landmarks", NEVER, *POINTS, ("landmarks", "float64", "l, d")),
    *_of("index", "methods/landmarks", NEVER, ("theta", "float64", "p, cells, l")),
    *_of("index", "methods/landmarks", NEVER, ("intercepts", "float64", "p")),
    *_of("index", "methods/neighborhoods", NEVER, ("centers", "X", "cells, d")),
    *_of("index", "methods/neighborhoods", NEVER, ("numbers", "int64", "cells")),
    *_of(
        *("bundles/*", "store/models.py, a task a bundle", NEVER),
        ("center", "float64", "cells, d"),
        ("scale", "float64", "cells, d"),
        ("rows", "float32", "support rows, d"),
        ("coef", "float32", "support rows x (k - 1)"),
        ("intercepts", "float64", "pairs of classes"),
        ("classes", "int32", "cells x k"),
        ("n_support", "int64", "cells x k"),
        ("gamma", "float64", "cells"),
        ("n_kept", "int64", "cells"),
    ),
    *_of("bundles/*", "methods/cells", NEVER, ("branch_nodes", "int64", "leaves"), *TREES[2:]),
    *_of(
        *("bundles/*", "methods/held_out.py", NEVER),
        ("held_numbers", "int64", "drawn rows"),
        ("held_codes", "int32", "drawn rows"),
        ("held_weights", "float64", "drawn rows"),
        ("held_scores", "float32", "drawn rows"),
        ("held_scores", "float32", "drawn rows, k"),
    ),
    *_of("bundles/*", "methods/cells", NEVER, ("errors", "float32", "cells, combinations")),
    *_of("bundles/*", "methods/neighborhoods", NEVER, ("leaf", "int64", "cells")),
    *_of(
        "rows/*", "run/gather.py", "no prediction needs rows: " + FINISH, *ROWS_HELD, *COUNTS_HELD
    ),
    *_of(
        *("regions/rows*/*", "scaling/regions.py", FINISH),
        *(("X", "float32", "n, d"), *ROWS_HELD[1:]),
    ),
    *_of(
        *("regions/blocks*/*", "scaling/regions.py", FINISH),
        *(("X", "any", "n, d"), *ROWS_HELD[1:], ("leaf", "int64", "n")),
    ),
    *_of(
        "regions/steps*/*", "scaling/rounds.py", FINISH, ("sums", "float64", "2 or trials, d or 3")
    ),
    *_of("regions/steps*/*", "scaling/held_out.py", FINISH, ("rows", "float64", "4, n")),
    *_of(
        *("regions/steps-thin/*", "scaling/race.py", FINISH),
        *(
            ("looks", "float64", "candidates, 3 + 3 n"),
            ("factors", "float64", "coded d of each scale"),
        ),
    ),
    *_of("leaves", "run/gather.py", "with rows/", *COUNTS_HELD, ("bundles", "int64", "bundles, 2")),
    *_of("centers", "methods/neighborhoods", NEVER, ("places", "int64", "cells")),
    *_of("centers", "methods/neighborhoods", NEVER, ("owner", "int32", "n")),
    *_of("landmarks", "methods/landmarks", NEVER, ("rows", "float64", "l, d")),
    *_of("sampling/initial/*", SAMPLING, FINISH, *ROWS_HELD, *NUMBERED[1:]),
    *_of("sampling/samples/*", SAMPLING, FINISH, *NUMBERED),
    *_of(
        *("sampling/drawn/*", SAMPLING, FINISH, *ROWS_HELD, *NUMBERED[1:]),
        ("order", "int64", "n"),
        ("further_numbers", "int64", "n"),
        ("further_order", "int64", "n"),
        ("further_places", "int64", "n"),
    ),
    *_of("sampling/support/*", SAMPLING, FINISH, *ROWS_HELD, *NUMBERED[1:]),
    *_of("sampling/kept/*", SAMPLING, FINISH, *ROWS_HELD, *NUMBERED[1:]),
    *_of("sampling/balls*/*", SAMPLING, FINISH, *NUMBERED),
    *_of("sampling/nearest*/*", SAMPLING, FINISH, *NUMBERED),
    *_of("sampling/radii/*", SAMPLING, FINISH, ("radii", "float64", "radii")),
    *_of(
        *(STATES, "store/joint.py, before its marker", "no round returns to them"),
        ("biases", "float64", "p"),
        ("theta", "float64", "cells, p, l"),
        ("deltas", "float64", "cells, p"),
    ),
    *_of(
        *("joint/*/*.stats", "store/joint.py: the marker", FINISH),
        ("stats", "float64", "cells, p, statistics"),
        ("attempt", "int64", ""),
    ),
    StoredItem("exchange-*", "block-*.rows", "any", "rows by leaf", "store/exchange.py", FINISH),
    *_of(
        *("exchange-*/block-*.marker", "store/exchange.py: the marker", FINISH),
        ("offsets", "int64", "leaves + 1"),
        ("sums", "uint32", "leaves"),
        ("checksum", "uint64", ""),
        ("attempt", "int64", ""),
    ),
    StoredItem("exchange-*", "manifest", "records", "leaves + 1, b", "store/exchange.py", FINISH),
    StoredItem("input-*", "*", "any", "as given", "run/rows.py, through Zarr", "the fit ends"),
    StoredItem("", ".probe-*", "nothing", "", "run/probe.py", "the fit ends"),
    StoredItem("", ".owner", "JSON", "", "store/lock.py", "the fit ends"),
)

ABOUT = """# What a store holds

Made from `daskls/store/contents.py` by `make docs-stores`; a test fits every method and compares.

A store is a folder, or the artifacts that another back end of `store/backend.py` keeps by keys. Its
root is `zarr.json`, a Zarr group. A **group** (`partition`, `index`, `bundles/<first>-<last>` ...)
is a Zarr group whose description holds the sum of every chunk, and its own; it is written last and
is the marker of the group. A **pack** (`sampling/`, `joint/`, markers of the exchange) is one file
of named arrays, each with its sum, and is its own marker. Data that a marker names by an attempt
are in a file of that attempt's own, so that two writers never mix. An artifact that does not verify
counts as absent.

The kernel has one home: its name, degree and coef0 are in the root's `meta.spec`, and gamma is an
array of each bundle, one value a cell. Where neighbors are searched for queries, the attribute
`gamma` of `index` is that of the metric, and of the models trained at the query. The attribute
`report` of a bundle, or of `index`, is the table of cells that `fit_report_` shows: it is for
people, and predictions do not read it. Bundles of earlier versions lack `gamma` and `n_kept`, which
are then read from the report. `errors` of a bundle is for people too: the validation error of each
combination of the grid in each cell, -1 where it was not tried to the end. `held_*` of a bundle are
what the maps to probabilities are fitted to: of some of its rows the number, the class, the weight
and what a model without the row says of it.
"""


def find_held(key: str, name: str) -> list[StoredItem]:
    """Return the items of the table for an array at a key; several where methods share the key."""
    return [h for h in CONTENTS if fnmatchcase(key, h.key) and fnmatchcase(name, h.name)]


def stores_page() -> str:
    """Return the text of `docs/stores.md`."""
    return ABOUT + "".join(
        _section(key, held) for key, held in groupby(CONTENTS, lambda held: held.key)
    )


def _section(key: str, held: Iterable[StoredItem]) -> str:
    lines = [f"| `{h.name}` | {h.dtype} | {h.dims} | {h.by} | {h.dropped} |" for h in held]
    head = "| name | dtype | dimensions | written by | dropped when |\n|---|---|---|---|---|\n"
    return f"\n## `{key or '.'}`\n\n{head}" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(stores_page(), end="")
