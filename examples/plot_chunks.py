"""
Random chunks: RandomChunkSVC
=============================

Random chunks use the same solver and as many rows per model as cells, but rows are assigned at
random instead of by their place in space. An SVM of 400 rows from everywhere has a far higher error
than one of 400 rows from one place. The mean of twenty such SVMs makes up for it here, but a query
then costs the support rows of all of them instead of one cell's.

``python examples/plot_chunks.py``
"""

from matplotlib import pyplot as plt

from daskls import RandomChunkSVC, VoronoiSVC
from daskls.datasets import bayes_accuracy, make_two_spirals
from daskls.plotting import PartitionDisplay

X, y = make_two_spirals(8_000, random_state=0)
X_test, y_test = make_two_spirals(4_000, random_state=1)
chunks = RandomChunkSVC(chunk_size=400, cv=3, random_state=0).fit(X, y)
cells = VoronoiSVC(cell_size=400, loss="hinge", feature_scale=None, cv=3, random_state=0).fit(X, y)

# %%
# Chunks have no place in space, so that only their errors can be drawn. Cells can be drawn.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
for model, label, color in ((chunks, "chunks", "#c8501e"), (cells, "cells", "#5b8db8")):
    errors = 100 * model.fit_report_.validation_error
    left.hist(errors, bins=range(0, 60, 2), color=color, alpha=0.8, label=label)
left.set(xlabel="validation error, %", ylabel="models")
left.legend()
score = f"chunks {chunks.score(X_test, y_test):.1%}, cells {cells.score(X_test, y_test):.1%}"
support = [model.fit_report_.n_support for model in (chunks, cells)]
costs = f"a query meets {support[0].sum():,} and {support[1].mean():,.0f} support rows"
left.set_title(f"right on test rows: {score};\n{costs}", fontsize=10)
PartitionDisplay.from_estimator(cells, X=X[:1500], y=y[:1500]).plot(right)
right.set_title(f"{cells.n_cells_} cells; the best possible is {bayes_accuracy('two_spirals'):.1%}")
plt.show()
