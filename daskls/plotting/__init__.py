"""Pictures of fitted estimators, in the style of scikit-learn's Displays; needs matplotlib."""

from daskls.plotting.cells import CellDisplay
from daskls.plotting.features import FeatureDisplay
from daskls.plotting.grid import GridDisplay
from daskls.plotting.neighborhoods import NeighborhoodDisplay
from daskls.plotting.partition import PartitionDisplay
from daskls.plotting.report import ReportDisplay
from daskls.plotting.roc import RocDisplay
from daskls.plotting.selection import SelectionDisplay

__all__ = [
    "CellDisplay",
    "FeatureDisplay",
    "GridDisplay",
    "NeighborhoodDisplay",
    "PartitionDisplay",
    "ReportDisplay",
    "RocDisplay",
    "SelectionDisplay",
]
