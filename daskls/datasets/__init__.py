"""Data sets: synthetic ones, most of them the papers', and conversion of files to Zarr."""

from daskls.datasets.convert import convert
from daskls.datasets.registry import bayes_accuracy, write
from daskls.datasets.sets import make_checkerboard, make_noisy28, make_swiss_roll, make_two_spirals

__all__ = [
    "bayes_accuracy",
    "convert",
    "make_checkerboard",
    "make_noisy28",
    "make_swiss_roll",
    "make_two_spirals",
    "write",
]
