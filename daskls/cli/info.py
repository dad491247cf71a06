"""`daskls info PATH`: what a model or a data set on disk contains."""

from collections.abc import Sequence
from typing import Any

from daskls.cli.errors import format_number, format_share, print_table
from daskls.cli.inputs import check_exists
from daskls.errors import listed

# A title, the names of columns, and rows.
Table = tuple[str, Sequence[str], list[Any]]
# Fields of the report whose quantiles over the cells are printed.
REPORTED = ("n_rows", "n_support", "validation_error", "C", "gamma", "radius", "seconds")
QUANTILES = {"least": 0.0, "25 %": 0.25, "median": 0.5, "75 %": 0.75, "most": 1.0}
# Printed of each model that a sampling method tried.
TRIED = ("n_rows", "n_support", "validation_error", "seconds")


def info(path: str) -> None:
    """Show the contents of a model or a data set on disk.

    Parameters
    ----------
    path : A model or a data set.
    """
    check_exists(path, "model or data set")
    from daskls.methods.base import method_of
    from daskls.store.dataset import kind_at
    from daskls.store.layout import MODEL_KIND, Root, find_root
    from daskls.store.objects import open_store

    # A data set may be behind a URL where no model can be.
    store = open_store(path)
    if not find_root(store) and kind_at(store) != MODEL_KIND:
        _print_dataset(path)
        return
    root = Root.open(store)
    pairs, tables = _model_pairs(root), []
    if root.is_complete:
        tables = _add_results(path, pairs)
    else:
        state = method_of(root.attributes["meta"].get("method", {})).progress(root)
        told = f"unfinished: {state}; run the same `daskls fit` again to go on"
        pairs.insert(1, ("state", told))
    print_table(f"Model {path}", pairs)
    for title, heads, rows in tables:
        if rows:
            print()
            print_table(title, rows, heads)


def _model_pairs(root: Any) -> list[tuple[str, Any]]:
    from dask.utils import format_bytes

    meta = root.attributes["meta"]
    params = ", ".join(f"{name}={_short(value)}" for name, value in meta["params"].items())
    return [
        ("estimator", meta["estimator"]),
        ("parameters", params),
        ("seed", meta["seed"]),
        ("rows", format_number(meta["n_rows"])),
        ("features", meta["n_features"]),
        root.target.describe(),
        ("bytes", format_bytes(root.store.nbytes())),
    ]


def _short(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_short, value))}]"
    return f"{value:g}" if isinstance(value, float) else repr(value)


def _print_dataset(path: str) -> None:
    from dask.utils import format_bytes

    from daskls.store.dataset import open_dataset

    dataset = open_dataset(path)
    pairs = [
        ("rows", format_number(dataset.n_rows)),
        ("features", f"{dataset.n_features} ({dataset.X.dtype})"),
        ("labels", "none" if dataset.y is None else str(dataset.y.dtype)),
        ("rows of a chunk", format_number((dataset.X.shards or dataset.X.chunks)[0])),
        ("bytes of X", format_bytes(dataset.X.nbytes)),
        ("source", dataset.source),
    ]
    if dataset.classes is not None:
        names = listed([*map(str, dataset.classes)])
        pairs.insert(3, ("classes", f"{len(dataset.classes)}: {names}"))
    print_table(f"Data set {path}", pairs)


def _add_results(path: str, pairs: list[tuple[str, Any]]) -> list[Table]:
    """Add what a finished model tells of its cells to the pairs; return tables."""
    from daskls.methods.base import method_of
    from daskls.store.reader import ModelReader

    reader = ModelReader(path)
    report, method, place = reader.report, method_of(reader.method), len(pairs) - 1
    pairs += [*_table_pairs(reader.meta), *_scale_pairs(reader)]
    if reader.false_alarm is not None:
        pairs += reader.false_alarm.describe(reader.target.labels.tolist())
    if reader.interval is not None:
        pairs += reader.interval.describe()
    if not len(report):
        pairs.append(("cells", "none: it trains when it predicts"))
        return []
    single = "number" if reader.target.kind == "numbers" else "class"
    pairs[place:place] = [
        ("cells", format_cells(report)),
        (f"cells of one {single}", format_number((report.n_trained == 0).sum())),
        ("support rows", format_number(report.n_support.sum())),
    ]
    if method.step is not None:
        return [_tried(method.step, reader.summary)]
    words = [set(edge.split()) for edge in report.edge]
    # For each axis of the grid, the share of cells whose choice lies on its edge.
    shares = [(axis, sum(axis in word for word in words) / len(words)) for axis in method.chosen]
    edges = ", ".join(f"{axis} {format_share(share)}" for axis, share in shares)
    pairs += [
        ("choice on an edge", edges),
        ("solves above tol", format_number(method.count_open(report))),
    ]
    return [_candidates(reader), _quantiles(report)]


def _table_pairs(meta: dict[str, Any]) -> list[tuple[str, str]]:
    if meta.get("table") is None:
        return []
    from daskls.sources.encoding import TableEncoding

    table = TableEncoding.from_json(meta["table"])
    unknown = "zeros" if table.unknown == "zero" else "an error"
    return [("columns", "; ".join(table.describe())), ("unknown categories", unknown)]


def _scale_pairs(reader: Any) -> list[tuple[str, str]]:
    from daskls.solvers.registry import find_loss

    resolved = reader.resolved
    summary, scale = resolved.summary, resolved.scale
    if not summary:
        return []
    coding = summary.get("coding", "none")
    pairs = [] if coding == "none" else [("feature coding", coding)]
    pairs.append(("feature scale", str(summary["decision"])))
    pairs += [(f"z of {name}", f"{z:.1f}") for name, z in summary.get("z", {}).items()]
    if scale is not None:
        pairs.append(("features in use", f"{len(scale.columns)} of {len(scale.factors)}"))
    if find_loss(reader.spec).is_global:
        pairs += resolved.describe_choice(reader.target.kind)
    return pairs


def _candidates(reader: Any) -> Table:
    from daskls.store.choices import candidates_of

    words, numbers = ("coding", "scale", "kernel"), ("squared_error", "error", "n_tried")
    rows = [
        [*(own[name] for name in words), *(format_number(own[name]) for name in numbers)]
        for own in candidates_of(reader.resolved.summary)
    ]
    heads = (*words, "squared error", "error", "trials")
    return "The last candidates, the chosen one first", heads, rows


def _tried(step: str, summary: dict[str, Any]) -> Table:
    rows = []
    for row in summary["path"]:
        chosen = "chosen" if row["value"] == summary["best"] else ""
        rows.append([chosen, *(format_number(row[name]) for name in ("value", *TRIED))])
    return "The models tried", ("", step, *TRIED), rows


def format_cells(report: Any) -> str:
    """Return the number of cells, and of partitions if there are several."""
    n_partitions = int(report.partition.max()) + 1
    cells = format_number(len(report))
    return f"{cells} in {n_partitions} partitions" if n_partitions > 1 else cells


def _quantiles(report: Any) -> Table:
    import numpy as np

    known = {name: report[name][~np.isnan(report[name])] for name in REPORTED}
    rows = [
        [name, *map(format_number, np.quantile(values, [*QUANTILES.values()]))]
        for name, values in known.items()
        if len(values)
    ]
    return "Over the cells", ("", *QUANTILES), rows
