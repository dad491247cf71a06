"""Decision values against their definition, and that a query's bits are its own."""

import itertools
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import naive
import numba
import numpy as np
import pytest
from cells import SEED, binary_cell, class_cell, queries
from support import few
from threadpoolctl import threadpool_limits

from daskls.kernels.frame import decide_pairs, frame_rows
from daskls.kernels.gram import GRAM_TILE_ROWS
from daskls.kernels.precision import MAX_SHIFT, largest_shift
from daskls.records import CellReport, Frame, KernelSpec, LocalModel, SolverSpec
from daskls.solvers.grid import assign_folds, resolve_grid
from daskls.solvers.hinge.solver import HINGE
from daskls.solvers.rows import LocalRows
from daskls.store.models import BundleModels, write_bundle

COUNTS = (31, 1, 17, 52)


def model_of(kernel, d, n_classes=2, scale=1.0, seed=0, constant=()):
    rng = np.random.default_rng(seed)
    counts = COUNTS[:n_classes]
    rows = rng.normal(size=(sum(counts), d)).astype(np.float32)
    rows[:, list(constant)] = rows[0, list(constant)]
    return LocalModel(
        frame=Frame(rng.normal(size=d)),
        rows=rows,
        coef=(scale * rng.normal(size=(n_classes - 1, len(rows)))).astype(np.float32),
        classes=np.arange(n_classes, dtype=np.int32),
        class_ptr=np.r_[0, np.cumsum(counts)],
        intercepts=rng.normal(size=n_classes * (n_classes - 1) // 2),
        kernel=kernel,
        report=CellReport(0, n_classes, len(rows), len(rows), 0.0),
    )


def queries_of(model, m, seed=1):
    rng = np.random.default_rng(seed)
    X = model.center + rng.normal(size=(m, len(model.center)))
    X[::5] = model.center + model.rows[rng.integers(0, len(model.rows), len(X[::5]))]
    X[1::7] *= 1e3
    return X


def expected_of(model, X):
    kernel = model.kernel
    options = kernel.name, kernel.gamma, kernel.degree, kernel.coef0
    K = naive.kernel_matrix(X - model.center, model.rows, *options)
    return naive.pair_decisions(K, model.coef, model.class_ptr) + model.intercepts


KERNELS = [
    *(KernelSpec("rbf", gamma) for gamma in (1e-3, 0.7, 4e3)),
    *(KernelSpec("laplacian", 0.7), KernelSpec("linear"), KernelSpec("poly", 0.5, 3, 1.0)),
]
# One feature, one step of differences and its edges, the widest that is taken directly, and wider.
WIDTHS = [1, 2, 4, 5, 8, 9, 24, 25, 40]
SUMS = {
    "rbf": lambda steps: (steps**2).sum(axis=2),
    "exponential": lambda steps: np.sqrt((steps**2).sum(axis=2)),
    "laplacian": lambda steps: np.abs(steps).sum(axis=2),
}


@pytest.mark.parametrize("d", WIDTHS)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: f"{kernel.name}-{kernel.gamma}")
@pytest.mark.parametrize("n_classes", [2, 4])
def test_decisions_with_large_coefficients_are_those_of_the_definition(kernel, d, n_classes):
    # Without columns of one value, with some, and with no other.
    for constant in ((), range(0, d, -(-d // 4)), range(d)):
        model = model_of(kernel, d, n_classes, 1e4, constant=constant)
        X = queries_of(model, 23)
        # Float64 throughout: of sums of a million, not a thousandth is lost.
        allowed = {"rtol": 1e-11, "atol": 1e-11 * float(np.abs(model.coef).sum())}
        np.testing.assert_allclose(decide_pairs(model, X), expected_of(model, X), **allowed)


def shifts_of(model):
    varying = model.rows.astype(float)[:, (model.rows != model.rows[0]).any(axis=0)]
    name, gamma, n = model.kernel.name, model.kernel.gamma, varying.shape[1]
    n_sums = -(-n // 8) if name == "laplacian" else n
    radius = np.linalg.norm(varying, 1 if name == "laplacian" else 2, axis=1).max()
    moved = radius * (np.sqrt(gamma) if name == "rbf" else gamma)
    terms = gamma, model.coef, model.class_ptr
    return largest_shift(*terms), largest_shift(*terms, n_sums + 12, moved)


def allowed_of(model):
    return max(shift for shift in (0.0, *shifts_of(model)) if shift <= MAX_SHIFT)


@pytest.mark.parametrize("d", [*WIDTHS, 200])
@pytest.mark.parametrize("gamma", [1e-3, 0.7, 30.0, 3e3, 1e5, 1e7])
@pytest.mark.parametrize("name", SUMS)
def test_no_decision_moves_beyond_the_bound(name, gamma, d):
    # A fifth of the columns hold one value, of two both. Of one seed, models differ in their
    # coefficients alone.
    kernel, constant = KernelSpec(name, gamma), range(2 if d == 2 else d // 5)
    models = [model_of(kernel, d, 4, s, d, constant) for s in (0.1, 1.0, 10.0, 100.0, 1000.0)]
    model, rng = models[0], np.random.default_rng(2)
    rows, at = model.rows.astype(float), rng.integers(0, len(model.rows), 200)
    # As near to support rows as decides, and the rows themselves.
    width = {"rbf": np.sqrt(gamma), "exponential": gamma, "laplacian": gamma * d}[name]
    X = model.center + rows[at] + rng.normal(size=(200, d)) / width
    X[::7] = (model.center + model.rows[at])[::7]
    sums = SUMS[name]((X - model.center)[:, None] - rows)
    # What float64 loses, of which the bound does not speak: an expanded distance, by the root more
    # the nearer a row is; of the others the center's subtraction.
    radius = np.sqrt((rows**2).sum(axis=1).max())
    near = np.maximum(sums.min(axis=1), 1e-8 * radius)
    lost = {
        "rbf": 1e-15 * radius**2,
        "exponential": 4e-15 * radius**2 / near,
        "laplacian": 1e-15 * (np.abs(rows).sum(axis=1).max() + np.abs(model.center).sum()),
    }[name]
    for model in models:
        expected = naive.pair_decisions(np.exp(-gamma * sums), model.coef, model.class_ptr)
        errors = np.abs(decide_pairs(model, X) - expected - model.intercepts).max(axis=1)
        size = float(np.abs(model.coef).sum())
        own = gamma * lost * (float(np.abs(model.coef).max()) if name == "exponential" else size)
        assert (errors <= allowed_of(model) + 1e-11 * size + own).all()


def test_the_bound_says_no_where_float32_is_lost():
    fine, steep = (model_of(KernelSpec("rbf", 0.7), 3, scale=scale) for scale in (1.0, 10.0))
    assert max(shifts_of(fine)) < MAX_SHIFT
    # Ten times the coefficients, ten times the shift.
    assert shifts_of(steep) == pytest.approx(10 * np.array(shifts_of(fine)), rel=1e-6)
    narrow = shifts_of(model_of(KernelSpec("rbf", 1e10), 3))
    assert narrow[0] < MAX_SHIFT < narrow[1]
    # L1 distances: narrow beside the size of the rows, and sums of many features.
    terms = 0.7, fine.coef, fine.class_ptr
    assert largest_shift(*terms, 9, 0.7 * 5.0) < MAX_SHIFT < largest_shift(*terms, 9, 0.7 * 1e5)
    assert largest_shift(*terms, 1008) > 20 * largest_shift(*terms, 9)
    # Of gammas that float32 has no numbers for.
    for gamma in (1e-40, 1e40):
        assert shifts_of(model_of(KernelSpec("rbf", gamma), 3)) == (np.inf, np.inf)


def check_bits(model):
    X = queries_of(model, GRAM_TILE_ROWS + 7)
    whole, alone = decide_pairs(model, X), decide_pairs(model, X[5:6])
    assert (decide_pairs(model, np.repeat(X[5:6], GRAM_TILE_ROWS + 7, axis=0)) == alone).all()
    for start, stop in [(0, 1), (5, 6), (3, 90), (GRAM_TILE_ROWS - 1, GRAM_TILE_ROWS + 7)]:
        assert (decide_pairs(model, X[start:stop]) == whole[start:stop]).all(), (start, stop)
    assert (decide_pairs(model, X[::-1])[::-1] == whole).all()


def check_all_bits():
    """Run `check_bits` on models of every way to their answers, with one BLAS thread."""
    with threadpool_limits(1, user_api="blas"):
        kernels = [*KERNELS, KernelSpec("exponential", 0.7)]
        for kernel, d, n_classes in itertools.product(kernels, WIDTHS, (2, 4)):
            for scale in (1.0, 10.0, 1e4):
                check_bits(model_of(kernel, d, n_classes, scale))


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="bits are those of compiled code")
@pytest.mark.parametrize("core", few(["SkylakeX", "Haswell"]))
def test_bits_of_a_query_are_its_own(core):
    """At every place of a tile, with whatever neighbors; BLAS takes the kernels of that core."""
    flags = Path("/proc/cpuinfo")
    if core == "SkylakeX" and flags.exists() and "avx512f" not in flags.read_text():
        pytest.skip("this processor has no AVX-512")
    folder = Path(__file__).parent
    paths = [str(folder), str(folder.parent), os.environ.get("PYTHONPATH", "")]
    path = os.pathsep.join(filter(None, paths))
    environment = {**os.environ, "OPENBLAS_CORETYPE": core, "PYTHONPATH": path}
    command = [sys.executable, "-c", "import test_decision; test_decision.check_all_bits()"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr


# The frame of a model


SCALE = np.array([4.0, 0.125])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float32, np.float64])
def test_rows_are_centered_in_float64(dtype):
    X = np.array([[0, 100], [127, 3]], dtype)
    A = frame_rows(np.asfortranarray(X), Frame(np.array([120.25, -100.5])))
    np.testing.assert_array_equal(A, [[-120.25, 200.5], [6.75, 103.5]])
    assert A.flags.c_contiguous


def trained(X, codes, scale=None, **spec):
    spec = SolverSpec(**{"cv": 3, "C": (1.0,), "gamma": (0.5,), **spec})
    own = LocalRows.of(X, codes, np.ones(len(X)), spec, scale=scale)
    order, cell = own.data(assign_folds(own.present, spec.cv, SEED))
    grid = own.in_units(resolve_grid(spec, own.radius, *X.shape))
    choice = HINGE.search(cell, spec, grid).choose(finish=True)
    return own.model(choice, order, cell, own.described(CellReport(0, 0, 0, 0, 0.0)))


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("cell", [binary_cell, class_cell])
def test_a_scale_is_as_if_rows_and_queries_had_been_divided_by_it(cell, kernel):
    X, codes = cell() if cell is binary_cell else cell(3)
    # Powers of two: they round nothing, so that even the bits are those.
    scaled = trained(X * SCALE, codes, SCALE, kernel=kernel)
    plain = trained(X, codes, kernel=kernel)
    for name in ("rows", "coef", "intercepts"):
        np.testing.assert_array_equal(getattr(scaled, name), getattr(plain, name))
    expected = decide_pairs(plain, queries(X))
    np.testing.assert_array_equal(decide_pairs(scaled, queries(X) * SCALE), expected)
    unscaled = replace(scaled, frame=Frame(scaled.center))
    assert np.abs(decide_pairs(unscaled, queries(X) * SCALE) - expected).max() > 0.01


@pytest.mark.parametrize("scales", [(None, None), (SCALE, SCALE), (None, SCALE)])
def test_a_model_is_stored_with_its_frame(tmp_path, scales):
    X, codes = binary_cell()
    models = [trained(X, codes, scale) for scale in scales]
    write_bundle(tmp_path, 0, 1, models, {})
    found = list(BundleModels(tmp_path, 0, 1, SolverSpec()).read_cells(np.arange(2)))
    for model, expected in zip(found, models, strict=True):
        np.testing.assert_array_equal(model.frame.center, expected.frame.center)
        decided = (decide_pairs(own, queries(X)) for own in (model, expected))
        np.testing.assert_array_equal(*decided)
    # A model without a scale has none in its store, and pays for none.
    assert (found[0].frame.scale is None) == (scales[1] is None)
