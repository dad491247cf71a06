"""Parameters that cannot be, or that have no effect: one error, which says what to give."""

import re
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from falks import small_falk
from landmarks import small_landmarks
from reserves import bounded, covering
from samplings import small_local, small_near
from support import PAPERS, checkers, small_svc

from daskls import KNNSVC, KernelKNNClassifier, KernelKNNRegressor, StoreError, VoronoiSVC
from daskls import VoronoiQuantileRegressor as Quantiles

X, Y = checkers(900)
papers = partial(VoronoiSVC, cv=3, random_state=0, **PAPERS)
squares = partial(VoronoiSVC, loss="squared_error", kernel="rbf", feature_scale=None)
quantiles = partial(Quantiles, kernel="rbf", gamma=4.0, feature_scale=None, C=1.0)
near = partial(KNNSVC, 10)
landmarks = partial(small_landmarks, n_cells=2)
NO_SHAPE = r"n_grid.*(at least 2|range \[2, inf\)|flat list)"
OPTIONS = {"n_grid": [3, 5], "cache_size": 0.5, "scoring": "tpr_x_tnr"}
REFUSED = [
    # Of any estimator.
    *((small_svc, {name: value}, rf"'{name}' parameter .* Got '{value}' instead")
      for name, value in (("search", "quick"), ("fit_intercept", "yes"), ("probability", "platt"))),
    *((small_svc, {"n_partitions": n},
       rf"'n_partitions' parameter .* range \[1, inf\) or None\. Got {n!r} ") for n in (0, 1.5)),
    (small_svc, {"class_weight": {7: 2.0}}, r"names the class 7, .*classes are \[0, 1\]"),
    *((small_svc, {"class_weight": {1: w}}, re.escape(f"class_weight of 1 is {w!r}; it must be"))
      for w in (0.0, float("nan"), "a")),
    (small_svc, {"client": SimpleNamespace(scheduler_info=None, asynchronous=True)},
     r"client is asynchronous: .*await asyncio\.to_thread\(model\.fit"),
    (small_svc, {"store": "ftp://bucket/model"}, r"is a URL; .*local or shared file system"),
    *((small_svc, {name: grid}, f"{name} {message}")
      for name in ("C", "gamma")
      for grid, message in (
          (["a"], r"is \[.*; give a number, or a flat list"),
          ([[1.0], [2.0, 3.0]], r"is \[.*; give a number, or a flat list"),
          ([], "is an empty grid"),
          *((g, "holds .*be positive and finite") for g in ([1.0, -2.0], [np.nan, 1.0], [1e39])),
      )),
    *((small_svc, {name: value}, rf"{name}.*(range \(0|positive and finite)")
      for name in ("C", "gamma") for value in (0, "scale")),
    # Of cells.
    *((papers, {"n_grid": wrong}, NO_SHAPE) for wrong in ([3, 4, 5], [20, 1], "20")),
    *((papers, {"n_grid": 5, "C": 1.0, **own}, r"n_grid=5 has no effect: C is given.*Leave")
      for own in ({"gamma": 1.0}, {"kernel": "linear"})),
    *((squares, {name: value}, f"{name}=.* has no effect with loss='squared_error'")
      for name, value in OPTIONS.items()),
    (papers, {"cache_size": 1.0, "fit_intercept": True}, r"cache_size=1\.0 is for SVMs without"),
    (papers, {"cache_size": 0}, "'cache_size' parameter"),
    (papers, {"scoring": "roc_auc"}, r"'scoring' parameter .*'tpr_x_tnr'"),
    (squares, {"cv": 3}, "cv=3 has no effect with loss='squared_error'"),
    (squares, {"C": 1e29, "gamma": 1e-9}, "this is a ridge of 5e-30, which is 0 within float64"),
    (squares, {"kernel": "linear"}, "choice of C and gamma by loss='squared_error' is for kernels"),
    (squares, {"kernel": "poly", "C": 1.0, "feature_scale": "learned"},
     "^feature_scale is for kernels of distances; kernel is 'poly'. Pass feature_scale=None"),
    *((small_svc, {"feature_scale": scale}, message) for scale, message in (
        ([1.0], "1 factors, but X has 2 features"), ([1.0, -1.0], "negative or not finite"),
        ([0.0, 0.0], "none above 0"), ([1e20, 1.0], "its values exceed"),
        (["a", "b"], "must be a list of numbers"))),
    (small_svc, {"feature_scale": "spread", "kernel": "linear"}, "for kernels of distances"),
    (quantiles, {"quantile": []}, r"quantile is empty; .*Give 0\.5"),
    (quantiles, {"quantile": [0.1, 1.0]}, r"quantile holds 1; it takes one level or several"),
    (quantiles, {"loss": "expectile", "cv": 3}, r"cv=3 has no effect with loss='expectile'"),
    (quantiles, {"loss": "squared_error"}, r"'loss' parameter"),
    (quantiles, {}, r"y has 2 columns, and loss='pinball' takes one\.", X),
    # Of reserved rows.
    (bounded, {}, "two classes, but y holds 3: 0, 1, 2", np.arange(900) % 3),
    (bounded, {"max_false_alarm": None, "delta": 0.1}, "delta=0.1 has no effect"),
    (bounded, {"max_false_alarm": 1.0}, "max_false_alarm"),
    (bounded, {"delta": 0.0}, "delta"),
    *((covering, {"interval": coverage}, "interval", X[:, 0]) for coverage in (0.0, 90)),
    # Of neighborhoods.
    *((method, *own) for method in (KNNSVC, KernelKNNClassifier, KernelKNNRegressor) for own in (
        ({"n_neighbors": [5, 10]}, "takes one"), ({"n_neighbors": [0]}, "whole number"),
        ({"n_neighbors": 5, "kernel": "poly", "gamma": [1.0, 2.0]}, "give one value"))),
    (KernelKNNClassifier, {"n_groups": 5}, r'n_groups=5 has no effect with neighbors="exact"'),
    (KernelKNNClassifier, {"kernel": "poly", "gamma": 1.0, "neighbors": "approximate"},
     'Pass neighbors="exact", or another kernel'),
    (near, {"n_inner": 5}, "n_inner=5 has no effect with selection=None"),
    (near, {"selection": "each", "n_inner": 11}, "n_inner=11 is above n_neighbors=10"),
    (near, {"selection": "each", "kernel": "poly", "gamma": [1.0, 2.0]}, "gamma has 2 candidates"),
    (small_falk, {"n_neighbors": 10, "n_assigned": 11}, "n_assigned=11 is above n_neighbors=10"),
    (small_falk, {"n_neighbors": [10, 20]}, "cannot choose from"),
    (small_falk, {"n_neighbors": []}, "empty grid"),
    (small_falk, {"C": [1, 2]}, "selection is None"),
    (small_falk, {"selection": "local", "gamma": None, "percentiles": [101]}, "between 0 and 100"),
    (small_falk, {"kernel": "poly", "selection": "each", "gamma": [1, 2]}, "feature space"),
    # Of landmarks and samples.
    *((landmarks, {**own, "gamma": 1.0}, 'gamma=1 has no effect with projection="linear"')
      for own in ({}, {"kernel": "rbf"})),
    (landmarks, {"C": [1.0, -1.0]}, "C holds -1"),
    (landmarks, {"n_cells": 0}, "n_cells"),
    (landmarks, {"n_landmarks": 901}, r"n_landmarks=901, but 900 rows .* at most 900"),
    (landmarks, {"n_landmarks": 3, "landmarks": "pca"}, r"=3, .* at most 2 .*'pca'; lower it"),
    (landmarks, {"kernel_gamma": 2.0}, "kernel_gamma=2.0 has no effect with kernel='linear'"),
    (landmarks, {"kernel": "laplacian"}, "The 'kernel' parameter"),
    *((small_local, {"sample_fraction": share}, "sample_fraction") for share in (0.0, 1.5)),
    (small_local, {"kernel": "sigmoid"}, "kernel"),
    (small_local, {"loss": "squared_error"}, "The 'loss' parameter of LocalSamplingSVC"),
    (small_near, {"C": [1.0, -2.0]}, "C holds -2"),
    (small_near, {"sample_fraction": 0.0015}, r"of 1 row\(s\).*; raise sample_fraction"),
    (small_local, {"n_subsamples": 200}, r"0.2 of 900 rows, less 90 for validation, in "
     r"n_subsamples=200 gives subsamples of 0 row\(s\).* lower n_subsamples to 90 or less, or"),
]  # fmt: skip


@pytest.mark.always
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: str(case[1]))
def test_what_cannot_be_is_one_error(case):
    make, params, message, *y = case
    with pytest.raises((ValueError, StoreError), match=message):
        make(**params).fit(X, *(y or [Y]))
