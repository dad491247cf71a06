"""The solvers of one SVM, without and with an offset: an oracle's optimum, SVC's, plain sums."""

import naive
import numpy as np
import pytest
from cells import class_cell
from scipy.optimize import minimize
from sklearn.svm import SVC

from daskls.kernels.hinge import optimal_pair_step, solve_hinge
from daskls.kernels.offset import solve_with_offset
from daskls.kernels.steps import CLIPPED, UNCLIPPED, fill_gradient

MAX_STEPS = 200_000


def kernel(X, name="rbf", **parameters):
    return np.ascontiguousarray(naive.kernel_matrix(X, X, name, **parameters), np.float32)


def noisy_problem(seed, m=48, d=3, shift=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=m) > shift, 1.0, -1.0)


def solve(
    K, y, bound, gap_limit, method=solve_hinge, held=(0, 0), start=None, max_steps=MAX_STEPS,
    cap=UNCLIPPED,
):  # fmt: skip
    """Run a solver from a start (default 0); return (beta, grad, n_steps, gap, offset)."""
    signs, bound = y.astype(np.float32), np.asarray(bound, np.float32)
    beta = np.zeros_like(bound) if start is None else start.astype(np.float32)
    grad, diag = np.empty_like(beta), np.diagonal(K).copy()
    fill_gradient(K, beta, signs, grad)
    scratch = np.full_like(beta, np.nan)
    limits = cap, gap_limit, max_steps
    found = method(K, diag, signs, bound, beta, grad, *held, *limits, scratch)
    return beta, grad, *(*found, 0.0)[:3]


def dual(K, y, beta):
    beta = beta.astype(float)
    return float((y * beta).sum() - 0.5 * beta @ K.astype(float) @ beta)


def gap_of(K, y, beta, offset, bound, cap=UNCLIPPED):
    """Return primal minus dual objective; with a cap, decisions are clipped to [-1, 1]."""
    f = K.astype(float) @ beta
    decision = np.clip(f, -1.0, 1.0) if cap == CLIPPED else f + offset
    losses = np.abs(bound) * np.maximum(0, 1 - y * decision)
    return 0.5 * beta.astype(float) @ f + losses.sum() - dual(K, y, beta)


def check_against_oracle(K, y, upper):
    """Solve to a relative gap of 1e-5; check feasibility, gradient, gap and objective."""
    upper = np.asarray(upper, np.float32)
    Q = K * np.outer(y, y)
    optimum = naive.dual_objective(Q, naive.solve_dual(Q, upper))
    beta, grad, n_steps, gap, _ = solve(K, y, y * upper, 1e-5 * optimum)
    assert n_steps < MAX_STEPS
    # A gap is a sum of (upper - alpha) x gradient, and float32 keeps a gradient near 1 to 2^-24.
    assert gap <= max(1e-5 * optimum, 2.0**-24 * upper.sum(dtype=float))
    assert ((y * beta >= 0) & (y * beta <= upper)).all()
    # Nothing but its bound stops the alpha of a row that no function can fit.
    assert (y * beta == upper)[np.diagonal(K) == 0].all()
    # float32 holds each of the m products of K beta to 6e-8 of its size.
    rounding = 1e-6 * (1 + np.abs(K.astype(float)) @ np.abs(beta))
    assert (np.abs(grad - (y - K.astype(float) @ beta)) <= rounding).all()
    slack = 1e-6 * optimum + float(rounding @ upper)
    assert gap == pytest.approx(naive.gap_of(Q, y * beta, upper), abs=slack)
    assert dual(K, y, beta) == pytest.approx(optimum, rel=1e-4)
    return beta, optimum


def copies(y_of):
    X, y = noisy_problem(5, m=20)
    return np.tile(X, (3, 1)), np.r_[y, y_of(y), y]


# Rows and labels, the kernel, and costs.
WIDE, NARROW, MIDDLE = {"gamma": 1e-4}, {"gamma": 50.0}, {"gamma": 0.5}
ROWS, LINEAR = noisy_problem(1), {"name": "linear"}
OF_0 = ROWS[0] * (np.arange(48) % 5 > 0)[:, None], ROWS[1]
PROBLEMS = {
    **{f"width {own['gamma']}": (ROWS, own, (0.01, 1, 30, 1000)) for own in (WIDE, MIDDLE, NARROW)},
    "linear": (noisy_problem(2), LINEAR, (0.1, 10)),
    "poly": (noisy_problem(2), {"name": "poly", "coef0": 1.0}, (0.1, 10)),
    "equal copies": (copies(lambda y: y), MIDDLE, (1, 1000)),
    "opposite copies": (copies(lambda y: -y), MIDDLE, (1, 1000)),
    "mixed copies": (copies(lambda y: np.where(np.arange(20) % 2, y, -y)), MIDDLE, (1, 1000)),
    "rows of 0": (OF_0, LINEAR, (1, 100)),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_objective_equals_the_oracles(name):
    (X, y), options, costs = PROBLEMS[name]
    for C in costs:
        check_against_oracle(kernel(X, **options), y, np.full(len(y), C))


def test_unequal_upper_bounds_and_rows_held_out():
    X, y = noisy_problem(3)
    rng = np.random.default_rng(3)
    upper = rng.uniform(0.1, 20.0, len(y))
    kept = rng.random(len(y)) > 0.25
    upper[~kept] = 0.0
    K = kernel(X, gamma=0.5)
    beta, optimum = check_against_oracle(K, y, upper)
    # What is held out changes nothing in the training of the rest.
    own = np.ascontiguousarray(K[np.ix_(kept, kept)])
    rest = solve(own, y[kept], (y * upper)[kept], 1e-5 * optimum)[0]
    assert dual(own, y[kept], rest) == pytest.approx(dual(K, y, beta), rel=1e-4)


@pytest.mark.parametrize("k", [-1.0, -0.99, -0.3, 0.0, 0.3, 0.99, 1.0])
def test_two_rows(k):
    for upper in [(1.0, 1.0), (0.1, 5.0), (1000.0, 1000.0), (3.0, 0.0)]:
        check_against_oracle(np.array([[1.0, k], [k, 1.0]], np.float32), np.ones(2), upper)


@pytest.mark.parametrize("max_steps", [0, 1, 7, 1000])
def test_a_step_limit_ends_the_solve_with_the_true_gap(max_steps):
    X, y = noisy_problem(10)
    upper = np.linspace(0.5, 5.0, len(y)) if max_steps < 1000 else np.ones(len(y))
    K = kernel(X, gamma=0.5)
    Q = K * np.outer(y, y)
    beta, grad, n_steps, gap, _ = solve(K, y, y * upper, -1.0, max_steps=max_steps)
    assert n_steps == max_steps or max_steps == 1000 > n_steps
    assert gap == pytest.approx(naive.gap_of(Q, y * beta, upper), rel=1e-5, abs=1e-4)
    np.testing.assert_allclose(grad, y - K.astype(float) @ beta, atol=1e-5)
    if max_steps == 1000:
        # A limit below rounding is not claimed to be reached.
        assert 0 <= gap < 1e-4
        optimum = naive.dual_objective(Q, naive.solve_dual(Q, upper))
        assert dual(K, y, beta) == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("cap", [CLIPPED, UNCLIPPED])
def test_duality_gap_is_primal_minus_dual(share, cap):
    X, y = noisy_problem(15)
    rng = np.random.default_rng(15)
    K = kernel(X, gamma=0.5)
    # Larger losses than 2 occur, so that the clip is seen to act.
    bound = y * rng.uniform(0.0, 5.0, len(y)) * (4 if cap == CLIPPED else 1)
    bound[3] = 0.0
    # The identity holds for any feasible beta, not for an optimal one alone.
    beta = (share * bound * rng.uniform(0.5, 1.0, len(y))).astype(np.float32)
    assert cap == UNCLIPPED or not share or (1 - y * (K @ beta)).max() > 2.0
    gap = solve(K, y, bound, np.inf, start=beta, max_steps=10, cap=cap)[3]
    assert gap == pytest.approx(gap_of(K, y, beta, 0.0, bound, cap), rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("method", [solve_hinge, solve_with_offset], ids=["", "offset"])
@pytest.mark.parametrize(("start", "stop"), [(0, 12), (12, 30), (36, 48), (20, 20)])
def test_a_held_out_range_is_as_if_it_were_not_there(start, stop, method):
    X, y = noisy_problem(16)
    K, bound, kept = kernel(X, gamma=0.5), 5 * y, np.r_[0:start, stop : len(y)]
    bound[start:stop] = 0
    beta, grad, _, _, offset = solve(K, y, bound, 1e-4, method, (start, stop))
    own = np.ascontiguousarray(K[np.ix_(kept, kept)])
    rest, *_, rest_offset = solve(own, y[kept], bound[kept], 1e-4, method)
    assert (beta[start:stop] == 0).all()
    np.testing.assert_allclose(grad, y - K @ beta, atol=2e-5)
    np.testing.assert_allclose(K @ beta + offset, K[:, kept] @ rest + rest_offset, atol=1e-2)


def pair_gain(step_i, step_j, g_i, g_j, q_i, q_j, k):
    linear = g_i * step_i + g_j * step_j
    return linear - 0.5 * (q_i * step_i**2 + q_j * step_j**2) - k * step_i * step_j


def random_pairs(n, *, singular):
    rng = np.random.default_rng(16 + singular)
    for _ in range(n):
        q_i, q_j = rng.uniform(0.1, 3.0, 2)
        k = np.sqrt(q_i * q_j) * (rng.choice([-1.0, 1.0]) if singular else rng.uniform(-0.99, 0.99))
        g_i, g_j = rng.normal(size=2) * 3
        at_bound = rng.random(4) < 0.3
        down_i, up_i, down_j, up_j = rng.uniform(0.0, 3.0, 4) * ~at_bound * [-1, 1, -1, 1]
        yield (g_i, g_j, q_i, q_j, k), (down_i, up_i, down_j, up_j)


def check_pair(terms, box):
    down_i, up_i, down_j, up_j = box
    step_i, step_j, gain = optimal_pair_step(*terms, *box)
    assert down_i - 1e-12 <= step_i <= up_i + 1e-12
    assert down_j - 1e-12 <= step_j <= up_j + 1e-12
    assert gain == pytest.approx(pair_gain(step_i, step_j, *terms), rel=1e-6, abs=1e-9)
    steps = np.meshgrid(np.linspace(down_i, up_i, 201), np.linspace(down_j, up_j, 201))
    assert gain >= pair_gain(*steps, *terms).max() - 1e-9
    middle, bounds = [(down_i + up_i) / 2, (down_j + up_j) / 2], [(down_i, up_i), (down_j, up_j)]
    best = minimize(lambda s: -pair_gain(*s, *terms), middle, bounds=bounds, tol=1e-12)
    assert gain == pytest.approx(-best.fun, rel=1e-6, abs=1e-7)


# g_i, g_j, q_i, q_j and k.
DEGENERATE = [
    *((1.0, 2.0, 0.0, 0.0, 0.0), (1.0, -2.0, 0.0, 1.0, 0.0), (0.5, 1.0, 2.0, 0.0, 0.0)),
    *((1.0, 1.0, 1.0, 1.0, 1.0), (1.0, 1.0, 1.0, 1.0, -1.0)),
    *((0.3, 0.3, 1.0, 1.0, 1.0 - 1e-9), (0.0, 0.0, 1.0, 1.0, 0.5)),
]


@pytest.mark.parametrize("kind", ["regular", "singular", "degenerate"])
def test_the_step_of_a_pair_is_the_best_in_its_box(kind):
    box = -0.5, 2.0, 0.0, 1.5
    drawn = random_pairs(60, singular=kind == "singular")
    for terms, own in drawn if kind != "degenerate" else [(terms, box) for terms in DEGENERATE]:
        check_pair(terms, own)


def check_against_svc(K, y, C):
    """Objective, constraint, gap and decision values against SVC, solved to 1e-8."""
    peer = SVC(kernel="precomputed", C=C, tol=1e-8).fit(K.astype(float), y)
    expected = np.zeros(len(y))
    expected[peer.support_] = peer.dual_coef_[0]
    bound = (y * C).astype(np.float32)
    optimum = dual(K, y, expected)
    beta, _, _, gap, offset = solve(K, y, bound, 1e-5 * optimum, solve_with_offset)
    assert ((np.minimum(bound, 0) <= beta) & (beta <= np.maximum(bound, 0))).all()
    # Every step moves two rows by the same amount but for one rounding.
    assert abs(beta.sum(dtype=float)) <= 1e-5 * max(np.abs(beta).sum(), 1.0)
    assert gap <= max(1e-5 * optimum, 2.0**-23 * np.abs(bound).sum())
    assert dual(K, y, beta) == pytest.approx(optimum, rel=1e-4)
    assert gap == pytest.approx(gap_of(K, y, beta, offset, bound), abs=3e-4 * optimum)
    return beta, offset, peer


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0, 1000.0])
@pytest.mark.parametrize("gamma", [1e-3, 0.5, 50.0], ids=["wide", "middle", "narrow"])
def test_objective_equals_svcs(gamma, C):
    X, y = noisy_problem(1, m=60)
    check_against_svc(kernel(X, gamma=gamma), y, C)


def test_decision_values_equal_svcs():
    X, y = noisy_problem(3, m=120, shift=1.2)
    K = kernel(X, gamma=0.5)
    beta, offset, peer = check_against_svc(K, y, 5.0)
    assert offset == pytest.approx(peer.intercept_[0], abs=5e-3)
    assert abs(offset) > 0.05
    np.testing.assert_allclose(K @ beta + offset, peer.decision_function(K), atol=1e-2)


def test_clipping_the_loss_ends_earlier():
    # Labels drawn without regard to X: many margins below -1.
    rng = np.random.default_rng(7)
    X = rng.normal(size=(150, 2))
    y = np.where(rng.random(150) < 0.5, 1.0, -1.0)
    problem = kernel(X, gamma=2.0), y, 1000 * y, 1e-3 * 1000 * 150, solve_with_offset
    full, clipped = (solve(*problem, cap=cap) for cap in (UNCLIPPED, CLIPPED))
    assert max(full[3], clipped[3]) <= 150
    assert clipped[2] < full[2]


def test_one_class_leaves_everything_at_zero():
    X, y = noisy_problem(8)[0], np.ones(48)
    beta, _, n_steps, gap, offset = solve(kernel(X, gamma=0.5), y, 5 * y, 1e-6, solve_with_offset)
    # Nothing can move; the offset alone answers.
    assert n_steps == 0
    assert not beta.any()
    assert offset >= 1 - 1e-5
    assert gap <= 1e-3


@pytest.mark.parametrize("C", [1e6, 1e8])
def test_bounds_far_beyond_all_betas_are_as_if_there_were_none(C):
    """Of separable rows no beta nears such a bound: a share of it is more than rounding."""
    for seed in range(4):
        X, codes = class_cell(2, seed, m=90)
        y, K = codes - 2.0, kernel(X, gamma=3.0)
        peer = SVC(kernel="precomputed", C=C, tol=1e-8).fit(K.astype(float), y)
        assert np.abs(peer.dual_coef_).max() < C / 100
        beta, *_, offset = solve(K, y, C * y, 1e-5 * C * len(y), solve_with_offset)
        np.testing.assert_allclose(K @ beta + offset, peer.decision_function(K), atol=0.01)
