"""VoronoiSVC as in its paper: cross-validated SVMs of cells, on rows as they are."""

from functools import partial

from daskls import VoronoiSVC

__all__ = ["PAPERS", "PaperSVC"]

PAPERS = {"loss": "hinge", "feature_scale": None, "kernel": "rbf"}
PaperSVC = partial(VoronoiSVC, **PAPERS)
