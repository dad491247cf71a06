"""What a fit chooses before it cuts space: the scale of features, and parameters of all cells."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from daskls.records import AnyArray, FeatureCoding, FeatureScale, SolverSpec, TargetKind
from daskls.store.artifact import Artifact
from daskls.store.checks import spec_from_json
from daskls.store.errors import damaged, malformed_is_damage
from daskls.store.layout import Root

SCALE = "scale"


@dataclass(frozen=True, eq=False)
class Resolved:
    """The scale and the parameters that were selected on the data, once for all cells.

    The summary holds JSON values for people: what was tried, and why this was chosen.
    """

    scale: FeatureScale | None
    spec: SolverSpec
    summary: Mapping[str, Any]

    def describe_choice(self, kind: TargetKind) -> list[tuple[str, str]]:
        """Return what was chosen for all cells, as (name, text) for people; [] if nothing was."""
        candidates = candidates_of(self.summary)
        if not candidates:
            return []
        chosen = candidates[0]
        if kind == "classes":
            name, figure = "error", f"{100 * chosen['error']:.2f} %"
        else:
            name, figure = "R2", f"{1 - chosen['error']:.4f}"
        return [
            ("kernel of all cells", f"{chosen['kernel']}, width {chosen['width']:.3g}"),
            ("C of all cells", f"{1 / (2 * chosen['ridge']):.3g}"),
            (f"{name} of the choice", f"{figure} of held-out rows"),
        ]


def candidates_of(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the candidates of a fit's choice, the chosen one first: coding, scale, kernel, error.

    Empty if there was no choice.
    """
    chosen = summary.get("chosen")
    if chosen is None:
        return []
    found = [chosen, *summary["candidates"]]
    return [found[0], *(own for own in found[1:] if own != found[0])]


def write_resolved(root: Root, resolved: Resolved) -> None:
    scale = resolved.scale
    arrays: dict[str, AnyArray] = {}
    if scale is not None:
        arrays = {"center": scale.center, "factors": scale.factors}
        arrays |= {} if scale.coding is None else vars(scale.coding)
    attributes = {"spec": asdict(resolved.spec), "summary": dict(resolved.summary)}
    root.write(SCALE, arrays, attributes)


def find_resolved(root: Root) -> Resolved | None:
    part = root.find(SCALE)
    return None if part is None else _read(part, root.n_features)


def read_resolved(root: Root) -> Resolved:
    """The parameters as given if there was nothing to choose."""
    meta = root.attributes["meta"]
    if meta.get("scaling") is None:
        return Resolved(None, spec_from_json(meta["spec"]), {})
    found = find_resolved(root)
    if found is None:
        raise damaged(root.store.where(SCALE), "the model lacks the scale of its features")
    return found


def width_of(root: Root) -> int:
    found = find_resolved(root) if root.attributes["meta"].get("scaling") else None
    if found is None or found.scale is None:
        return root.n_features
    return len(found.scale.columns)


def _read(part: Artifact, n_features: int) -> Resolved:
    with malformed_is_damage(part.where()):
        spec = spec_from_json(part.attrs["spec"])
        summary = dict(part.attrs["summary"])
    if "factors" not in part:
        return Resolved(None, spec, summary)
    coding = _read_coding(part, n_features)
    n_coded = n_features if coding is None else len(coding.sources)
    center = part.read("center", shape=(n_coded,), kind="f")
    factors = part.read("factors", shape=(n_coded,), kind="f")
    # A factor of 0 drops its feature; at least one must remain.
    if (factors < 0).any() or not np.any(factors):
        raise damaged(part.where(), "a factor is negative, or all are 0")
    return Resolved(FeatureScale(center, factors, coding), spec, summary)


def _read_coding(part: Artifact, n_features: int) -> FeatureCoding | None:
    """Return the coding of features; None if there is none."""
    if "ptr" not in part:
        return None
    ptr = part.read("ptr", shape=(n_features + 1,), kind="i")
    points = part.read("points", shape=(None,), kind="f")
    ranks = part.read("ranks", shape=points.shape, kind="f")
    if ptr[0] != 0 or ptr[-1] != len(points) or (np.diff(ptr) < 0).any():
        raise damaged(part.where(), "the points of features do not follow each other")
    own = np.repeat(np.arange(n_features), np.diff(ptr))
    if (np.diff(points)[np.diff(own) == 0] <= 0).any():
        raise damaged(part.where(), "the points of a feature do not increase")
    return FeatureCoding(ptr, points, ranks)
