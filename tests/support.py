"""Helpers of the end-to-end tests: data, models as bits, brute force, spies on worker processes.

Workers import this module too, so that plugins travel by reference.
"""

import itertools
import json
import math
import os
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import dask
import google_crc32c
import naive
import numba
import numpy as np
import pytest
from distributed import LocalCluster
from safetensors import safe_open
from typer.testing import CliRunner

import daskls
from daskls import VoronoiSVC
from daskls.cli import app
from daskls.estimators import predictions
from daskls.methods import predict, scores
from daskls.partition.stored import model_partition
from daskls.store.reader import ModelReader

MIB = 1 << 20
# VoronoiSVC as in the paper: cross-validated SVMs on rows as they are.
PAPERS = {"loss": "hinge", "kernel": "rbf", "feature_scale": None}
# A command that runs here, without a cluster, and says what it made.
HERE = ("--workers", "0", "--quiet")
compiled = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="minutes without compilation")


def checkers(n, *, n_classes=2, seed=0, d=2, dtype="f8", offset=0.0, noise=0.05):
    """Return X uniform in a cube and labels of a checkerboard, some of them wrong."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    y = (X * 3).astype(int).sum(axis=1) % n_classes
    wrong = rng.random(n) < noise
    y[wrong] = rng.integers(n_classes, size=wrong.sum())
    return (X + offset).astype(dtype), y


def small_svc(**params):
    """Return an estimator that trains in a blink."""
    return VoronoiSVC(
        **{
            **{"cell_size": 100, "C": 10.0, "gamma": 20.0, "cv": 2, "random_state": 0},
            **{**PAPERS, **params},
        }
    )


def load_real(name):
    """Return the arrays of a set in the folder DASKLS_DATA: X, y, and X_test, y_test or None."""
    with np.load(Path(os.environ["DASKLS_DATA"]) / f"{name}.npz") as arrays:
        found = {key.removesuffix("_train"): arrays[key] for key in arrays}
    return SimpleNamespace(**{"X_test": None, "y_test": None, **found})


def few(values, n=1):
    """Return parameters of a test: the first ``n``, and the others for `make test-all` alone."""
    values = list(values)
    late = (v if isinstance(v, tuple) else (v,) for v in values[n:])
    return [*values[:n], *(pytest.param(*v, marks=pytest.mark.slow) for v in late)]


def slowly(block):
    """Return a block after half a second."""
    time.sleep(0.5)
    return block


# A cluster gives up a worker that is away for 15 s; on a busy machine a killed one starts again
# later than that.
dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"})


def start_cluster(n_workers=1, threads=1, limit="1GiB", **options):
    """Return a LocalCluster of processes without a dashboard on a fixed port."""
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=threads,
        memory_limit=limit,
        dashboard_address=":0",
        **options,
    )


# Processes


def python_env(**environment):
    """Return an environment in which Python finds this package and the tests' helpers."""
    root = Path(daskls.__file__).parents[1]
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'tests'}", **environment}


def heed_interrupts():
    """Let SIGINT end this process: a shell's background jobs, and all they start, ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run_cli(*args, code=0):
    """Run a command; an error must be one line on stderr, without a traceback."""
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert result.exit_code == code, result.output
    if code:
        assert len(result.stderr.strip().splitlines()) == 1
        assert result.stderr.startswith("Error: ")
        assert result.stderr.strip().endswith(".")
        assert "Traceback" not in result.output
    return result


def as_options(**params):
    """Spell parameters as options of the command line."""
    options = []
    for name, value in params.items():
        if isinstance(value, list):
            value = ",".join(map(str, value))
        options += [f"--{name.replace('_', '-')}", value]
    return options


def error_in_time(call, *args):
    """Return the error of a call that ends within a minute."""
    errors = []

    def run():
        try:
            call(*args)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "it waits for ever"
    return errors[0] if errors else None


# Models as bits


def read_header(content):
    """Return the header of an artifact, by the words of safetensors' format, and where it ends."""
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), end


def sealed(key, header):
    """Return a header's bytes as an artifact begins, with the checksum that is right."""
    header["__metadata__"]["header"] = "0" * 8
    text = json.dumps(header).encode()
    seal = b"%08x" % google_crc32c.value(key.encode() + b"\n" + text)
    text = text.replace(b'"header": "00000000"}', b'"header": "%s"}' % seal, 1)
    return len(text).to_bytes(8, "little") + text


def edit_header(path, key, change):
    """Change the header of an artifact of a model, as one does who computes checksums."""
    file = Path(path) / key
    content = file.read_bytes()
    header, end = read_header(content)
    change(header)
    file.write_bytes(sealed(key, header) + content[end:])


def edit_attributes(path, change, key="root"):
    """Change the attributes of an artifact of a model, as one does who computes checksums."""

    def both(header):
        attributes = json.loads(header["__metadata__"]["attributes"])
        change(attributes)
        header["__metadata__"]["attributes"] = json.dumps(attributes)

    edit_header(path, key, both)


def read_plain(file):
    """Return an artifact's attributes and arrays, by the reader of safetensors."""
    with safe_open(file, "numpy") as opened:
        metadata = opened.metadata()
        arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    for name, columns in json.loads(metadata["records"]).items():
        record = np.dtype([(own, kind, *map(tuple, dims)) for own, kind, *dims in columns])
        arrays[name] = arrays[name].view(record)[..., 0]
    return json.loads(metadata["attributes"]), arrays


def path_of(model):
    """Return the folder of a model, given as an estimator or as a path."""
    return Path(model if isinstance(model, (str, os.PathLike)) else model._handle.location)


def model_bits(model):
    """Return everything a model holds, name by name, as bytes; not the seconds, nor the bundles."""
    reader = ModelReader(path_of(model))
    bits = {"fingerprint": reader.fingerprint, "n_cells": reader.n_cells}
    for i, tree in enumerate(model_partition(reader).trees if "n_nodes" in reader.index else ()):
        for name in ("center", "directions", "thresholds", "children"):
            bits[f"tree{i or ''} {name}"] = as_bytes(getattr(tree, name))
    for cell in range(reader.n_cells):
        local = reader.read_cell(cell)
        for name in ("center", "rows", "coef", "intercepts", "classes", "class_ptr"):
            bits[f"cell {cell} {name}"] = as_bytes(getattr(local, name))
        bits[f"cell {cell} kernel"] = repr(local.kernel)
    for name in reader.report.dtype.names:
        if name != "seconds":
            bits[f"report {name}"] = as_bytes(np.asarray(reader.report[name]))
    return bits


def as_bytes(array):
    return array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes()


def assert_same_model(a, b):
    """Fail unless two models, or bits of models, are equal bit for bit; name what differs."""
    a, b = (m if isinstance(m, dict) else model_bits(m) for m in (a, b))
    assert a.keys() == b.keys()
    assert [name for name in a if a[name] != b[name]] == []


def n_bundles(model):
    """Return the number of bundles of a model."""
    return len(list((path_of(model) / "bundles").iterdir()))


# Brute force


class SlowModel:
    """Reads a model's arrays and attributes by another library; shares no code with the reader."""

    def __init__(self, path):
        self.meta = read_plain(Path(path) / "root")[0]["meta"]
        self.index = read_plain(Path(path) / "index")[1]
        self.cells = []
        for file in sorted((Path(path) / "bundles").iterdir()):
            self.cells += self._cells(read_plain(file)[1])

    @staticmethod
    def _cells(arrays):
        """Return the cells of a bundle, one dict each, in order."""
        cells, at_class, at_row, at_coef, at_pair = [], 0, 0, 0, 0
        for i, report in enumerate(arrays["report"]):
            s = int(report["n_support"])
            k = int(report["n_classes"]) if s else 1
            counts = arrays["n_support"][at_class : at_class + k]
            assert k == 1 or counts.sum() == s
            coef = arrays["coef"][at_coef : at_coef + s * (k - 1)].astype(float)
            cells.append(
                {
                    "center": arrays["center"][i].astype(float),
                    "rows": arrays["rows"][at_row : at_row + s].astype(float),
                    "coef": coef.reshape(k - 1, s) if s else None,
                    "intercepts": arrays["intercepts"][at_pair : at_pair + k * (k - 1) // 2],
                    "classes": arrays["classes"][at_class : at_class + k].tolist(),
                    "ptr": [0, *np.cumsum(counts).tolist()],
                    "gamma": float(arrays["gamma"][i]),
                }
            )
            at_class, at_row, at_coef = at_class + k, at_row + s, at_coef + s * (k - 1)
            at_pair += k * (k - 1) // 2
        return cells

    @property
    def n_partitions(self):
        return len(self.index["n_nodes"])

    def walk(self, row, partition=0):
        """Return the cell of a row in one partition."""
        n_before, n_nodes = (self.index["n_nodes"][i].sum() for i in (slice(partition), partition))
        first_cell = int(n_before) + partition
        if n_nodes == 0:
            return first_cell
        nodes = slice(n_before, n_before + n_nodes)
        arrays = (self.index[name][nodes] for name in ("directions", "thresholds", "children"))
        return first_cell + naive.walk(row, self.index["center"], *arrays)

    def pairs(self, row, partition=0):
        """Return the classes of a row's cell and the decision of each pair of them."""
        cell = self.cells[self.walk(row, partition)]
        if cell["coef"] is None:
            return cell["classes"], []
        spec = self.meta["spec"]
        query = [float(x) - c for x, c in zip(row, cell["center"], strict=True)]
        K = naive.kernel_matrix(
            [query], cell["rows"], spec["kernel"], cell["gamma"], spec["degree"],
            spec["coef0"],
        )  # fmt: skip
        decisions = naive.pair_decisions(K, cell["coef"], cell["ptr"])[0] + cell["intercepts"]
        return cell["classes"], decisions.tolist()

    def scores(self, row):
        """Return one row's decision value, or one score a class."""
        if self.n_partitions > 1:
            return self.mean_scores(row)
        labels = self.meta["classes"]["values"]
        classes, decisions = self.pairs(row)
        if len(labels) == 2:
            return decisions[0] if decisions else (1.0 if classes == [1] else -1.0)
        scores = [-1.0] * len(labels)
        votes, confidence = [0.0] * len(classes), [0.0] * len(classes)
        pairs = itertools.combinations(range(len(classes)), 2)
        for value, (a, b) in zip(decisions, pairs, strict=True):
            votes[b if value > 0 else a] += 1
            confidence[b] += value
            confidence[a] -= value
        for i, code in enumerate(classes):
            squeezed = confidence[i] / (3 * (abs(confidence[i]) + 1))
            scores[code] = votes[i] + squeezed if len(classes) > 1 else 1.0
        return scores

    def clipped(self, row, partition):
        """Return one partition's clipped decision of every pair of the model's classes."""
        classes, decisions = self.pairs(row, partition)
        own = dict(zip(itertools.combinations(classes, 2), decisions, strict=True))
        values = {}
        for a, b in itertools.combinations(range(len(self.meta["classes"]["values"])), 2):
            one_sided = (b in classes) - (a in classes)
            values[a, b] = min(max(own.get((a, b), one_sided), -1.0), 1.0)
        return values

    def mean_scores(self, row):
        """Return one row's decision value, or one score a class, of several partitions."""
        parts = [self.clipped(row, p) for p in range(self.n_partitions)]
        means = {pair: math.fsum(p[pair] for p in parts) / len(parts) for pair in parts[0]}
        if len(means) == 1:
            return means[0, 1]
        n_classes = len(self.meta["classes"]["values"])
        votes, confidence = [0] * n_classes, [0.0] * n_classes
        for (a, b), value in means.items():
            votes[b if value > 0 else a] += 1
            confidence[b] += value
            confidence[a] -= value
        return [v + c / (3 * (abs(c) + 1)) for v, c in zip(votes, confidence, strict=True)]


# Counting


class Calls:
    """Counts calls of a function in this process, by a key made from its arguments."""

    def __init__(self, monkeypatch, owner, name, key=lambda *args, **kwargs: None):
        self.keys = []
        original = getattr(owner, name)

        def counted(*args, **kwargs):
            self.keys.append(key(*args, **kwargs))
            return original(*args, **kwargs)

        counted.__name__ = name
        monkeypatch.setattr(owner, name, counted)

    def __len__(self):
        return len(self.keys)

    def counter(self):
        return Counter(self.keys)


class OpenedFiles:
    """Lists the files that this process opens inside a folder, while the context lasts."""

    _watching = None

    def __init__(self, folder):
        self.folder, self.files = str(folder), []

    def __enter__(self):
        if OpenedFiles._watching is None:
            # A hook stays for good, so there is one, which looks where it is to look.
            OpenedFiles._watching = []
            sys.addaudithook(OpenedFiles._hook)
        OpenedFiles._watching.append(self)
        return self.files

    def __exit__(self, *error):
        OpenedFiles._watching.remove(self)

    @staticmethod
    def _hook(event, args):
        if event == "open" and isinstance(args[0], (str, os.PathLike)):
            for watch in OpenedFiles._watching:
                path = os.fspath(args[0])
                if path.startswith(watch.folder):
                    watch.files.append(os.path.relpath(path, watch.folder))


class CountingScheduler:
    """A Dask scheduler that counts its computes and the tasks of each."""

    def __init__(self):
        self.n_tasks = []

    def __call__(self, graph, keys, **kwargs):
        self.n_tasks.append(len(dict(graph.__dask_graph__())))
        return dask.get(graph, keys, **kwargs)


def is_close(a, b):
    """Return whether two decision values agree to rounding of a sum of float32 kernel values."""
    return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-5)


def memory_nbytes(field):
    """Return VmHWM (the peak) or VmRSS of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no {field}")


def reset_peak():
    """Begin this process's peak memory anew; return its pid and what it holds now."""
    Path("/proc/self/clear_refs").write_text("5")
    return os.getpid(), memory_nbytes("VmRSS")


def peak():
    """Return this process's pid and its peak memory since `reset_peak`."""
    return os.getpid(), memory_nbytes("VmHWM")


def tiny_blocks(patch, nbytes=1, **slabs):
    """Answer queries in blocks of few bytes, the smallest there may be, and in slabs as given."""

    def most_rows(reader, n_features, itemsize, *_):
        return max(nbytes // (n_features * itemsize), 1)

    for module in (predict, predictions):
        patch.setattr(module, "most_rows", most_rows)
    patch.setattr(scores, "TILE_NBYTES", nbytes)
    for name, value in slabs.items():
        patch.setattr(scores, name, value)
