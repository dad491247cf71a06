"""Displays of fitted estimators, in the style of scikit-learn's; drawing needs matplotlib."""

from daskls.plotting.bars import CellDisplay, FeatureDisplay
from daskls.plotting.grid import GridDisplay, SelectionDisplay
from daskls.plotting.held_out import RocDisplay
from daskls.plotting.partition import PartitionDisplay
from daskls.plotting.report import ReportDisplay

__all__ = [
    "CellDisplay",
    "FeatureDisplay",
    "GridDisplay",
    "PartitionDisplay",
    "ReportDisplay",
    "RocDisplay",
    "SelectionDisplay",
]
