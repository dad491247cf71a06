"""
Out of core, on two small workers
=================================

Train from disk, predict lazily, score: no whole array is ever in memory.

``python examples/out_of_core.py``
"""

import tempfile
from pathlib import Path

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from daskls import VoronoiSVC
from daskls.datasets import bayes_accuracy, write
from daskls.store.dataset import open_dataset


def main() -> None:
    """Write rows, train, predict, score."""
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder))


def run(folder: Path) -> None:
    """Do it all in a folder."""
    write("noisy28", folder / "train.zarr", 20_000)
    write("noisy28", folder / "test.zarr", 50_000, random_state=1)
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, memory_limit="512MiB", dashboard_address="127.0.0.1:0"
    )
    with cluster, Client(cluster):
        # The workers read the rows themselves; only paths and counts travel.
        model = VoronoiSVC(
            cell_size=1000,
            loss="hinge",
            feature_scale=None,
            C=[1, 10, 100],
            gamma=[0.01, 0.1],
            store=folder / "model.zarr",
            random_state=0,
        ).fit(folder / "train.zarr")
        print(model)
        test = open_dataset(folder / "test.zarr")
        labels = model.predict(test.X)  # lazy: blocks are answered when they are asked for
        print(labels)
        true = np.asarray(test.classes)[da.from_zarr(test.y, chunks=labels.chunks)]
        accuracy = (labels == true).mean().compute()
    print(f"{model.n_cells_} cells; accuracy {accuracy:.4f} on {test.n_rows:,} rows,", end=" ")
    print(f"the best possible is {bayes_accuracy('noisy28'):.4f}")


if __name__ == "__main__":
    main()
