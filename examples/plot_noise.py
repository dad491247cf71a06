"""
Mislabeled rows: FalkNoiseFilter and KNNSVMNoiseFilter
======================================================

One label in ten of this checkerboard is swapped. Both filters find most of these rows. The other
rows that they remove lie near the borders of the squares.

``python examples/plot_noise.py``
"""

import numpy as np
from matplotlib import pyplot as plt

from daskls import FalkNoiseFilter, KNNSVMNoiseFilter
from daskls.datasets import make_checkerboard

X, y = make_checkerboard(2_500, flip=0.1, random_state=0)
true = np.where(np.floor(4 * X).astype(int).sum(axis=1) % 2 == 0, 1, -1)
swapped = y != true
filters = [
    FalkNoiseFilter(n_neighbors=100, C=10.0, gamma=50.0, random_state=0),
    KNNSVMNoiseFilter(n_neighbors=100, C=10.0, gamma=50.0, random_state=0),
]

# %%
figure, axes = plt.subplots(1, 2, figsize=(12, 6), layout="constrained")
for ax, noise in zip(axes, filters, strict=True):
    removed = ~noise.fit(X, y).keep_
    kinds = [
        (removed & swapped, "x", "#1f5f99", "removed, was swapped"),
        (removed & ~swapped, "o", "#c8501e", "removed, was right"),
        (~removed & swapped, "s", "#3a3a3a", "kept, was swapped"),
    ]
    ax.plot(*X[~removed & ~swapped].T, ".", color="0.85", markersize=3)
    for rows, marker, color, label in kinds:
        ax.plot(
            *X[rows].T, marker, color=color, markersize=5, fillstyle="none",
            label=f"{label}: {rows.sum()}",
        )  # fmt: skip
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.04), ncols=3, fontsize=9)
    ax.set_title(f"{type(noise).__name__}, {swapped.sum()} of {len(y):,} labels swapped")
    ax.set_aspect("equal")
plt.show()
