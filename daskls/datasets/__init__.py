"""Data sets: the papers' synthetic ones, real ones, and conversion of files to Zarr."""

from daskls.datasets.clusters import make_ndcc, make_noisy28, ndcc_posterior
from daskls.datasets.convert import convert
from daskls.datasets.friedman import make_friedman1, make_friedman2, make_friedman3
from daskls.datasets.gaussians import (
    make_rare,
    make_two_gaussians,
    rare_best_product,
    two_gaussians_bayes_risk,
)
from daskls.datasets.planar import (
    make_checkerboard,
    make_swiss_roll,
    make_two_spirals,
    make_xor,
)
from daskls.datasets.real import RealData, covtype_split, load_real
from daskls.datasets.registry import GENERATORS, Generator, bayes_accuracy, best_r2, write

__all__ = [
    "GENERATORS",
    "Generator",
    "RealData",
    "bayes_accuracy",
    "best_r2",
    "convert",
    "covtype_split",
    "load_real",
    "make_checkerboard",
    "make_friedman1",
    "make_friedman2",
    "make_friedman3",
    "make_ndcc",
    "make_noisy28",
    "make_rare",
    "make_swiss_roll",
    "make_two_gaussians",
    "make_two_spirals",
    "make_xor",
    "ndcc_posterior",
    "rare_best_product",
    "two_gaussians_bayes_risk",
    "write",
]
