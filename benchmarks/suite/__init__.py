"""What experiments share, under one name: runner, journal, tables, costs, rows, places."""

from benchmarks.suite.experiment import Experiment, Run, grid
from benchmarks.suite.journal import Journal, Record
from benchmarks.suite.measure import cpu_of, fit_predict
from benchmarks.suite.tables import PEAK, page, table

__all__ = [
    "PEAK",
    "Experiment",
    "Journal",
    "Record",
    "Run",
    "cpu_of",
    "fit_predict",
    "grid",
    "page",
    "table",
]
