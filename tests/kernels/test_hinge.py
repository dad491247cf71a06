import naive
import numpy as np
import pytest
from scipy.optimize import minimize

from daskls.kernels.hinge import optimal_pair_step, solve_hinge
from daskls.kernels.steps import CLIPPED, UNCLIPPED, fill_gradient

MAX_STEPS = 200_000


def signed_kernel(X, y, name="rbf", **parameters):
    K = naive.kernel_matrix(X, X, name, **parameters)
    return np.ascontiguousarray(K * np.outer(y, y), np.float32)


def noisy_problem(seed, m=48, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=m) > 0, 1.0, -1.0)


def solve(Q, upper, gap_limit, start=None, max_steps=MAX_STEPS, cap=UNCLIPPED):
    """Run the solver from a start (default 0); return (alpha, grad, n_steps, gap).

    With y y' inside Q every label is 1, and beta is alpha.
    """
    Q = np.ascontiguousarray(Q, np.float32)
    upper = np.asarray(upper, np.float32)
    alpha = np.zeros(len(upper), np.float32) if start is None else start.astype(np.float32)
    grad = np.empty_like(alpha)
    ones = np.ones_like(alpha)
    fill_gradient(Q, alpha, ones, grad)
    diag = np.diagonal(Q).copy()
    scratch = np.full_like(alpha, np.nan)
    n_steps, gap = solve_hinge(
        Q, diag, ones, upper, alpha, grad, 0, 0, cap, gap_limit, max_steps, scratch
    )
    return alpha, grad, n_steps, gap


def check_against_oracle(Q, upper, start=None):
    """Solve to a relative gap of 1e-5; check feasibility, gradient, gap and objective."""
    upper = np.asarray(upper, np.float32)
    optimum = naive.dual_objective(Q, naive.solve_dual(Q, upper))
    alpha, grad, n_steps, gap = solve(Q, upper, 1e-5 * optimum, start)
    assert n_steps < MAX_STEPS
    # A gap is a sum of (upper - alpha) x gradient, and float32 keeps a gradient near 1 to 2^-24.
    assert gap <= max(1e-5 * optimum, 2.0**-24 * upper.sum(dtype=float))
    assert (alpha >= 0).all()
    assert (alpha <= upper).all()
    # float32 holds each of the m products of Q alpha to 6e-8 of its size.
    rounding = 1e-6 * (1 + np.abs(Q.astype(float)) @ alpha)
    assert (np.abs(grad - (1 - Q.astype(float) @ alpha)) <= rounding).all()
    slack = 1e-6 * optimum + float(rounding @ upper)
    assert gap == pytest.approx(naive.gap_of(Q, alpha, upper), abs=slack)
    assert naive.dual_objective(Q, alpha) == pytest.approx(optimum, rel=1e-4)
    return alpha, optimum


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0, 1000.0])
@pytest.mark.parametrize("gamma", [1e-4, 0.5, 50.0], ids=["wide", "middle", "narrow"])
def test_objective_equals_the_oracles(gamma, C):
    X, y = noisy_problem(1)
    check_against_oracle(signed_kernel(X, y, gamma=gamma), np.full(len(y), C))


@pytest.mark.parametrize("parameters", [{"name": "linear"}, {"name": "poly", "coef0": 1.0}])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_other_kernels(parameters, C):
    X, y = noisy_problem(2)
    check_against_oracle(signed_kernel(X, y, **parameters), np.full(len(y), C))


def test_unequal_upper_bounds_and_rows_held_out():
    X, y = noisy_problem(3)
    rng = np.random.default_rng(3)
    upper = rng.uniform(0.1, 20.0, len(y))
    held_out = rng.random(len(y)) < 0.25
    upper[held_out] = 0.0
    Q = signed_kernel(X, y, gamma=0.5)
    alpha, optimum = check_against_oracle(Q, upper)
    assert (alpha[held_out] == 0).all()
    # What is held out changes nothing in the training of the rest.
    kept = ~held_out
    rest, _, _, _ = solve(Q[np.ix_(kept, kept)], upper[kept], 1e-5 * optimum)
    objectives = [naive.dual_objective(Q[np.ix_(kept, kept)], a) for a in (alpha[kept], rest)]
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-4)


@pytest.mark.parametrize("C", [1.0, 1000.0])
@pytest.mark.parametrize("labels", ["equal", "opposite", "mixed"])
def test_exact_duplicates(labels, C):
    X, y = noisy_problem(5, m=20)
    copies = {"equal": y, "opposite": -y, "mixed": np.where(np.arange(20) % 2, y, -y)}[labels]
    X, y = np.vstack([X, X, X]), np.concatenate([y, copies, y])
    check_against_oracle(signed_kernel(X, y, gamma=0.5), np.full(len(y), C))


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_zero_row_of_a_homogeneous_kernel(C):
    X, y = noisy_problem(7)
    X[[0, 5]] = 0.0
    Q = signed_kernel(X, y, "linear")
    assert Q[0, 0] == 0
    alpha, _ = check_against_oracle(Q, np.full(len(y), C))
    # Nothing but its bound stops the alpha of a row that no function can fit.
    np.testing.assert_array_equal(alpha[[0, 5]], np.float32(C))


@pytest.mark.parametrize("k", [-1.0, -0.99, -0.3, 0.0, 0.3, 0.99, 1.0])
@pytest.mark.parametrize("upper", [(1.0, 1.0), (0.1, 5.0), (1000.0, 1000.0), (3.0, 0.0)])
def test_two_rows(k, upper):
    check_against_oracle(np.array([[1.0, k], [k, 1.0]], np.float32), upper)


@pytest.mark.parametrize("max_steps", [0, 1, 7])
def test_a_step_limit_ends_the_solve_with_the_true_gap(max_steps):
    X, y = noisy_problem(10)
    upper = np.linspace(0.5, 5.0, len(y))
    Q = signed_kernel(X, y, gamma=0.5)
    alpha, grad, n_steps, gap = solve(Q, upper, 1e-9, max_steps=max_steps)
    assert n_steps == max_steps
    assert gap == pytest.approx(naive.gap_of(Q, alpha, upper), rel=1e-5)
    np.testing.assert_allclose(grad, 1 - Q.astype(float) @ alpha, atol=1e-5)


def test_a_limit_below_rounding_is_not_claimed_to_be_reached():
    X, y = noisy_problem(12)
    Q = signed_kernel(X, y, gamma=0.5)
    upper = np.full(len(y), 1.0)
    alpha, _, n_steps, gap = solve(Q, upper, -1.0, max_steps=1000)
    assert n_steps <= 1000
    assert 0 <= gap < 1e-4
    optimum = naive.dual_objective(Q, naive.solve_dual(Q, upper))
    assert naive.dual_objective(Q, alpha) == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("cap", [CLIPPED, UNCLIPPED])
def test_duality_gap_is_primal_minus_dual(share, cap):
    X, y = noisy_problem(15)
    rng = np.random.default_rng(15)
    K = signed_kernel(X, np.ones_like(y), gamma=0.5)
    bound = (y * rng.uniform(0.0, 5.0, len(y))).astype(np.float32)
    bound[3] = 0.0
    # The identity holds for any feasible beta, not for an optimal one alone.
    beta = (share * bound * rng.uniform(0.5, 1.0, len(y))).astype(np.float32)
    signs = y.astype(np.float32)
    grad = np.empty_like(beta)
    fill_gradient(K, beta, signs, grad)
    diag = np.diagonal(K).copy()
    decision = K.astype(float) @ beta
    if cap == CLIPPED:
        # Larger losses than 2 occur, so that the clip is seen to act.
        beta *= 4.0 if share else 1.0
        bound *= 4.0
        fill_gradient(K, beta, signs, grad)
        decision = K.astype(float) @ beta
        assert not share or (1 - y * decision).max() > 2.0
        decision = np.clip(decision, -1.0, 1.0)
    _, gap = solve_hinge(
        K, diag, signs, bound, beta, grad, 0, 0, cap, np.inf, 10, np.empty_like(beta)
    )
    norm = beta.astype(float) @ K.astype(float) @ beta
    primal = 0.5 * norm + (np.abs(bound) * np.maximum(0, 1 - y * decision)).sum()
    dual = (y * beta).sum() - 0.5 * norm
    assert gap == pytest.approx(primal - dual, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize(("start", "stop"), [(0, 12), (12, 30), (36, 48), (20, 20)])
def test_a_held_out_range_is_as_if_it_were_not_there(start, stop):
    X, y = noisy_problem(16)
    K = signed_kernel(X, np.ones_like(y), gamma=0.5)
    signs = y.astype(np.float32)
    kept = np.r_[0:start, stop : len(y)]
    decisions = []
    for rows, lo, hi in ((np.arange(len(y)), start, stop), (kept, 0, 0)):
        part = np.ascontiguousarray(K[np.ix_(rows, rows)])
        bound = 5 * signs[rows]
        bound[lo:hi] = 0.0
        beta, grad = np.zeros_like(bound), signs[rows].copy()
        diag = np.diagonal(part).copy()
        solve_hinge(
            part, diag, signs[rows], bound, beta, grad, lo, hi, UNCLIPPED, 1e-4, 10**5, grad.copy()
        )
        assert (beta[lo:hi] == 0).all()
        np.testing.assert_allclose(grad, signs[rows] - part @ beta, atol=2e-5)
        decisions.append(K[:, rows] @ beta)
    np.testing.assert_allclose(*decisions, atol=1e-2)


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
    steps_i, steps_j = np.meshgrid(np.linspace(down_i, up_i, 201), np.linspace(down_j, up_j, 201))
    on_grid = pair_gain(steps_i, steps_j, *terms).max()
    assert gain >= on_grid - 1e-9
    best = minimize(
        lambda s: -pair_gain(*s, *terms),
        [0.5 * (down_i + up_i), 0.5 * (down_j + up_j)],
        bounds=[(down_i, up_i), (down_j, up_j)],
        tol=1e-12,
    )
    assert gain == pytest.approx(-best.fun, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("singular", [False, True])
def test_optimal_pair_step_on_random_boxes(singular):
    for terms, box in random_pairs(60, singular=singular):
        check_pair(terms, box)


@pytest.mark.parametrize(
    "terms",
    [
        (1.0, 2.0, 0.0, 0.0, 0.0),
        (1.0, -2.0, 0.0, 1.0, 0.0),
        (0.5, 1.0, 2.0, 0.0, 0.0),
        (1.0, 1.0, 1.0, 1.0, 1.0),
        (1.0, 1.0, 1.0, 1.0, -1.0),
        (0.3, 0.3, 1.0, 1.0, 1.0 - 1e-9),
        (0.0, 0.0, 1.0, 1.0, 0.5),
    ],
)
def test_optimal_pair_step_on_degenerate_pairs(terms):
    check_pair(terms, (-0.5, 2.0, 0.0, 1.5))
