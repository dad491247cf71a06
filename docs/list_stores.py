"""Print `docs/stores.md`: what a store holds, from the tables in the code.

`make docs-stores` writes the page; a test compares it.
"""

from daskls.registry import METHODS, load_object
from daskls.store.contents import SHARED_PARTS

HEAD = """| name | dtype | dimensions | written by | dropped when |
|---|---|---|---|---|
"""
ABOUT = """# What a store holds

Made from `daskls/store/contents.py` and every method's `parts()` by `make docs-stores`; a test fits
every method and compares.

A store is a folder, or objects under keys in a bucket. Each key below is one object, written as a
whole: it is there with all its content, or not at all. All but Zarr data of inputs, `.owner` and
`.probe-*` are **artifacts** (`daskls/store/artifact.py`): named arrays and attributes in the layout
of safetensors, whose own reader opens them. The header holds the attributes as JSON and its own
checksum; the array `crc32c`, which the tables leave out, holds a checksum of each 32 KiB of the
other arrays. An array of dtype `records` is stored as bytes, and the header says its columns. The
root says what the model is and whether it is complete; a damaged root is the end of a model, and
what else is damaged is made again by the next fit.

The kernel has one home: its name, degree and coef0 are in the root's `meta.spec`, and gamma is an
array of each bundle, one value per cell. Of a regressor, `codes` of rows holds its
numbers: float64, (n, t). Where neighbors are searched for queries, the attribute
`gamma` of `index` is that of the metric, and of the models trained at the query. The array
`report` of a bundle, or of `index`, is the table of cells that `fit_report_` shows: it is for
people, and predictions do not read it. `errors` of a bundle is for people too: the validation error
of each combination of the grid in each cell, -1 where it was not tried to the end. `held_*` of a
bundle are what the maps to probabilities are fitted to: of some of its rows the number, the class,
the weight and what a model without the row says of it. `false_alarm` holds the scores and classes
of the rows that were held out for `max_false_alarm`, before the threshold, which is one of them, an
attribute. `interval` holds the size of residuals in each cell, in units of that of all, by which
predictions scale its half widths; and, for people, those of the rows held out for `interval`, so
scaled.
"""


def lines():
    """Yield (place, line of its table) of all that the stores of any method hold."""
    own = (part for entry in METHODS for part in load_object(entry.method).parts())
    for part in dict.fromkeys((*SHARED_PARTS, *own)):
        folder, _, file = part.key.rpartition("/")
        for array, dtype, dims in part.arrays:
            place, name = (part.key, array) if part.is_artifact else (folder or ".", file)
            yield place, f"| `{name}` | {dtype} | {dims} | {part.by} | {part.dropped} |\n"


def stores_page():
    """Return the text of the page."""
    tables = {}
    for place, line in lines():
        tables[place] = tables.get(place, "") + line
    return ABOUT + "".join(f"\n## `{place}`\n\n{HEAD}{table}" for place, table in tables.items())


if __name__ == "__main__":
    print(stores_page(), end="")
