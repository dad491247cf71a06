"""The parts of a store: what each holds, what writes it, when it is removed, and what goes with it.

Each is one object, and most are artifacts (`store/artifact.py`), whole or not at all.

`SHARED_PARTS` lists the parts that every method's fit keeps; a method lists its own in
`Method.parts`. Repair and the removal of leftovers read both, and ``docs/stores.md`` is made from
them.

Dimensions: n rows, d features, b blocks, p partitions or problems, k classes, t numbers per row;
other names say what they count. The dtype ``X`` is the data set's as a float (``float32`` or
``float64``); ``any`` is the data set's own.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from daskls.store.objects import ROOT

# When most parts are removed.
NEVER, FINISH, ENDS = "never", "the model is finished", "the fit ends"
SCORED = "all folds are scored"


@dataclass(frozen=True)
class StorePart:
    """The content of a store at the keys that match one pattern.

    Attributes
    ----------
    key : str. The pattern; a * stands for any part of a name.
    by : str. What writes it.
    holds : str. Name, dtype and dimensions of each array; the name of what is no artifact is *.
    dropped : str. When it is removed.
    follows : tuple of str. Patterns of what is removed with it when it is damaged: ``{name}`` is
        the last name of its key, ``{folder}`` the key before it, ``{series}`` that folder before
        its last dash.
    forgets : tuple of str. Attributes of the root that are reset with it.
    """

    key: str
    by: str
    holds: str
    dropped: str = NEVER
    follows: tuple[str, ...] = ()
    forgets: tuple[str, ...] = ()

    @property
    def top(self) -> str:
        """The first name of its key."""
        return self.key.partition("/")[0]

    @property
    def arrays(self) -> list[tuple[str, str, str]]:
        # Scalars have no dimensions.
        split = (array.split(" ", 2) for array in self.holds.split("; "))
        return [(name, dtype, "".join(dims)) for name, dtype, *dims in split]

    @property
    def is_artifact(self) -> bool:
        return not self.holds.startswith("*")

    @property
    def is_leftover(self) -> bool:
        """Whether a finished model has no use for it: leftovers are removed."""
        return self.dropped in (FINISH, ENDS, SCORED)

    def matches(self, key: str) -> bool:
        names, patterns = key.split("/"), self.key.split("/")
        return len(names) == len(patterns) and all(map(fnmatchcase, names, patterns))

    def followers(self, key: str) -> set[str]:
        """Return the patterns of what is removed with the part at a key."""
        folder, _, name = key.rpartition("/")
        words = {"folder": folder, "series": folder.rpartition("-")[0], "name": name}
        return {pattern.format(**words) for pattern in self.follows}


# Arrays of the trees inside a bundle's leaves, whose center is the partition's; and of whole trees.
BRANCH_ARRAYS = "directions float64 nodes, d; thresholds float64 nodes; children int32 nodes, 2"
TREE_ARRAYS = f"center float64 d; n_nodes int64 p; {BRANCH_ARRAYS}"
POINT_ARRAYS = "points float64 cells, d"
LABEL_ARRAYS = "codes int32 n; weights float64 n; numbers int64 n"
ROWS_ARRAYS = f"X X n, d; {LABEL_ARRAYS}"
COUNT_ARRAYS = (
    "leaf_rows int64 leaves; n_regions int64 leaves; region_rows int64 regions; "
    "regions float64 regions, 3 d + 2; leaves float64 leaves, 3 d + 2"
)
# With a damaged block go what was made from blocks.
MANIFESTS = "{folder}/manifest-*"
SORTED_ARRAYS = "records records rows by leaf; offsets int64 leaves + 1"
# The `CellReport` of each cell; for people.
REPORT_ARRAY = "report records cells"
SHARED_PARTS = (
    StorePart(
        ROOT, "run/identity.py; `complete` by the last task, `stage_s` after it", "attributes JSON"
    ),
    StorePart(
        "partition",
        "pipeline.py",
        f"{TREE_ARRAYS}; {POINT_ARRAYS}",
        follows=(
            *("calibration", "false_alarm", "interval", "index"),
            *("bundles", "rows", "leaves", "exchange-*"),
        ),
        forgets=("selected",),
    ),
    StorePart(
        "scale",
        "scaling/fit.py",
        "center float64 coded d; factors float64 coded d; ptr int64 d + 1; points float64 points; "
        "ranks float64 points",
    ),
    StorePart(
        "calibration",
        "methods/calibrate.py, methods/held_out.py",
        "a float64 k; b float64 k; knots float64 knots; values float64 knots; ptr int64 k + 1",
    ),
    StorePart(
        "false_alarm",
        "methods/reserved.py, after the index",
        "scores float64 reserved rows; codes int32 reserved rows",
    ),
    StorePart(
        "interval",
        "methods/reserved.py, after the index",
        "sizes float64 cells; residuals float64 reserved rows, t",
    ),
    StorePart("held-out-*/*", "methods/calibrate.py", "* any a store", SCORED),
    StorePart(
        "index", "store/reader.py, last", "bundles int64 bundles, 2; first_cell int64 bundles + 1"
    ),
    StorePart(
        "bundles/*",
        "store/models.py, a task per bundle",
        "center float64 cells, d; scale float64 cells, d; rows float32 support rows, d; "
        "coef float32 support rows x (k - 1); intercepts float64 pairs of classes; "
        "classes int32 cells x k; n_support int64 cells x k; gamma float64 cells; "
        f"n_kept int64 cells; {REPORT_ARRAY}",
    ),
    StorePart(
        "bundles/*",
        "methods/held_out.py",
        "held_numbers int64 drawn rows; held_codes int32 drawn rows; "
        "held_weights float64 drawn rows; held_scores float32 drawn rows; "
        "held_scores float32 drawn rows, k",
    ),
    StorePart(
        "rows/*",
        "run/regroup.py",
        f"{ROWS_ARRAYS}; {COUNT_ARRAYS}",
        f"no prediction needs rows: {FINISH}",
        ("leaves",),
    ),
    # Each of these folders is removed as a whole.
    *(
        StorePart(f"regions/{key}/*", by, holds, FINISH, ("{folder}",))
        for key, by, holds in (
            ("rows*", "scaling/regions.py", f"X float32 n, d; {LABEL_ARRAYS}"),
            ("blocks*", "scaling/regions.py", f"X any n, d; {LABEL_ARRAYS}; leaf int64 n"),
            (
                *("rows-thin", "scaling/splits.py"),
                "X float32 n, d; targets int32 n; targets float64 n, numbers; "
                "weights float64 n; groups int64 n",
            ),
            (
                *("steps*", "scaling/candidates.py"),
                "looks float64 8, n; ends int64 candidates; look float64 8, n; "
                "factors float64 1 + coded d",
            ),
        )
    ),
    StorePart(
        "leaves", "run/regroup.py", f"{COUNT_ARRAYS}; bundles int64 bundles, 2", "with rows/"
    ),
    *(
        StorePart(f"exchange-*/{name}", "store/exchange.py", holds, FINISH, follows)
        for name, holds, follows in (
            ("grid", "rows int64 b", ("{folder}",)),
            ("block-*", SORTED_ARRAYS, ("{folder}/group-*", MANIFESTS)),
            ("group-*", SORTED_ARRAYS, (MANIFESTS,)),
            ("manifest-*", "entries int64 leaves, files, 2", ()),
        )
    ),
    StorePart("input-*/*", "run/rows.py, through Zarr", "* any as given", ENDS),
    StorePart(".probe-*", "cluster.py", "* nothing", ENDS),
    StorePart(".owner", "store/owner.py", "* JSON", "the fit lets go of the store"),
)
