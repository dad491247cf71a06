"""A fit of L3-SVMs: landmarks, the choice of C, the joint problem."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daskls.blas import one_blas_thread, undisturbed
from daskls.cluster import compute_each
from daskls.kernels.kernel import find_kernel
from daskls.kernels.landmarks import find_normalization, mean_square
from daskls.methods.landmarks.parts import (
    LinearModel,
    drop_phase,
    drop_states,
    read_landmarks,
    read_states,
    read_stats,
    write_landmarks,
    write_linear_model,
)
from daskls.methods.landmarks.plan import (
    LandmarkSpec,
    asked_landmarks,
    count_clusters,
    default_costs,
    edge_of,
    group_cells,
    has_map,
    most_landmarks,
    n_candidates,
    pick_cost,
)
from daskls.methods.landmarks.solve import (
    JointJob,
    ProblemBatch,
    Solutions,
    evaluate_group,
    solve_group,
    stored_cells,
)
from daskls.partition.space import VoronoiCells, cluster_cells
from daskls.records import CellReport, Float64, Int64, KernelSpec, Mask, Table
from daskls.run.contract import FitState, RegroupedRows
from daskls.seeds import LANDMARKS
from daskls.solvers.evaluate import total
from daskls.solvers.landmarks import (
    BiasSearch,
    Evaluation,
    draw_landmarks,
    find_components,
    find_features,
    scale_of_projections,
)

# Columns of a round's statistics: Newton steps, and rows with alpha > 0.
STEPS_STAT, SUPPORT_STAT = 5, 6


@dataclass(frozen=True, eq=False)
class BestRounds:
    """The solutions of p problems: the round of each one's best value, and its index there."""

    rounds: Int64
    indices: Int64
    biases: Float64
    steps: Int64
    is_open: Mask


def cluster_sample(method: LandmarkSpec, state: FitState) -> VoronoiCells:
    n_cells = method.n_cells or count_clusters(state.scan.n_kept)
    return cluster_cells(state.sample.X, n_cells, state.seed)


def fit_jointly(method: LandmarkSpec, state: FitState, regrouped: RegroupedRows) -> None:
    _choose_landmarks(state, method)
    exchange, leaf_rows = regrouped.exchange, regrouped.leaf_rows
    cells = stored_cells(state.root)
    spec, n_features = state.request.spec, state.rows.n_features
    n_landmarks = asked_landmarks(method, spec, n_features)
    n_problems = n_candidates(spec) * len(_positive(state))
    groups = group_cells(leaf_rows.tolist(), n_features, n_landmarks, n_problems)
    _solve(state, cells, groups, leaf_rows, JointJob(state.fit, exchange))


@undisturbed
def _choose_landmarks(state: FitState, method: LandmarkSpec) -> None:
    if read_landmarks(state.root) is not None:
        return
    X, normalization = state.sample.X, find_normalization(state.sample.X)
    n_features, n_rows = state.rows.n_features, state.scan.n_kept
    most = most_landmarks(method, n_rows, n_features)
    wanted = min(asked_landmarks(method, state.request.spec, n_features), most)
    drawn = LANDMARKS(state.seed, n_rows=state.scan.n_kept)
    with one_blas_thread():
        rows = draw_landmarks(X, normalization, wanted, drawn)
        if method.landmarks == "random":
            landmarks = rows
        else:
            landmarks, deviations = find_components(X, normalization, wanted)
            if find_kernel(method.projection).has_width:
                # Distances need points: those one standard deviation from the center.
                landmarks *= deviations[:, None]
        gamma, spec = None, state.request.spec
        if find_kernel(method.projection).has_width:
            gamma = spec.gamma[0] if spec.gamma else state.scale_gamma
        features = None
        if has_map(spec):
            seen_by = normalization.center, landmarks, gamma
            width = method.kernel_gamma or scale_of_projections(X, *seen_by)
            kernel = KernelSpec(spec.kernel, width, spec.degree, spec.coef0)
            features = find_features(rows, *seen_by, kernel)
    write_landmarks(state.root, landmarks, gamma, features)


def _positive(state: FitState) -> list[int]:
    """Return the class codes that are +1 in some problem: one for two classes, else all."""
    n_classes = state.scan.target.n_classes
    return [1] if n_classes == 2 else list(range(n_classes))


def _solve(
    state: FitState,
    cells: VoronoiCells,
    groups: list[tuple[int, int]],
    leaf_rows: Int64,
    job: JointJob,
) -> None:
    selected = state.root.attributes.get("selected") or _choose_cost(state, cells, groups, job)
    # The result is in the root by now, so a resumed fit does not need these rounds.
    drop_phase(state.root.store, "select")
    chosen, errors = selected["C"], np.array(selected["cell_errors"])
    problems = [(code, chosen, -1, 0.0) for code in _positive(state)]
    solved = _search("train", problems, groups, job, state)
    theta, support = _read_solution(solved, groups, job)
    root = state.root
    projection = read_landmarks(root)
    assert projection is not None
    shared = CellReport(0, 0, 0, state.scan.target.n_classes, float("nan"), C=chosen)
    shared = replace(
        shared,
        edge=edge_of(chosen, selected.get("candidates", ())),
        n_at_limit=selected["n_open"] + int(solved.is_open.sum()),
        n_trained=selected["n_problems"] + len(problems),
        seconds=float("nan"),
    )
    report = _report(shared, leaf_rows, solved, support, errors)
    write_linear_model(root, LinearModel(cells, *projection, theta, solved.biases), report)


def _choose_cost(
    state: FitState, cells: VoronoiCells, groups: list[tuple[int, int]], job: JointJob
) -> dict[str, Any]:
    """Choose C by cross-validation, unless one is given; store and return the result."""
    costs = _costs(state, cells)
    n_cells = groups[-1][1] + 1
    if len(costs) == 1:
        none = {"cell_errors": [float("nan")] * n_cells, "n_open": 0, "n_problems": 0}
        return {"C": costs[0], **none}
    codes, n_folds = _positive(state), job.fit.spec.cv
    problems = [(k, C, f, 0.0) for C in costs for f in range(n_folds) for k in codes]
    solved = _search("select", problems, groups, job, state)
    shape = len(costs), n_folds, len(codes)
    rounds, indices = solved.rounds.reshape(shape), solved.indices.reshape(shape)
    solutions = Solutions("select", rounds, indices, solved.biases.reshape(shape))
    results = compute_each(
        evaluate_group, [(group, solutions, job) for group in groups], state.client
    )
    wrong, held_out = (np.concatenate([result[i] for result in results]) for i in (0, 1))
    predicted = np.any([result[2] for result in results], axis=0)
    # The exact sum of the wrong rows' weights, rounded once, so equally good candidates tie.
    errors = [total(wrong[:, cost]) / total(held_out) for cost in range(len(costs))]
    unsolved = solved.is_open.reshape(shape).any(axis=(1, 2))
    varied = (predicted.sum(axis=2) > 1).any(axis=1)
    best = pick_cost(errors, np.asarray(unsolved), varied)
    selected = {
        "C": costs[best],
        "candidates": costs,
        "errors": errors,
        "cell_errors": (wrong[:, best].sum(axis=1) / held_out.sum(axis=1)).tolist(),
        "n_open": int(solved.is_open.sum()),
        "n_problems": len(problems),
    }
    state.root.update(selected=selected)
    return selected


@undisturbed
def _costs(state: FitState, cells: VoronoiCells) -> list[float]:
    if state.request.spec.C is not None:
        return sorted(state.request.spec.C)
    projection = read_landmarks(state.root)
    assert projection is not None
    with one_blas_thread():
        return default_costs(mean_square(state.sample.X, cells.center, *projection))


def _search(
    phase: str,
    problems: list[tuple[Any, ...]],
    groups: list[tuple[int, int]],
    job: JointJob,
    state: FitState,
) -> BestRounds:
    """Search the biases of all problems; a round solves all cells for one bias of each problem."""
    table = np.array(problems, np.float64)
    searches = [BiasSearch(job.fit.spec.tol) for _ in problems]
    indices: list[dict[int, int]] = [{} for _ in problems]
    steps = np.zeros(groups[-1][1] + 1, np.int64)
    number, still = 0, list(range(len(problems)))
    stored: set[int] = set()
    with state.clock.stage(phase, len(problems), lambda: sum(not s.is_open for s in searches)):
        while still:
            before = np.array([indices[p].get(number - 1, 0) for p in still])
            table[still, 3] = [searches[p].bias for p in still]
            now = ProblemBatch(phase, number, table[still], before)
            stats = np.concatenate(
                compute_each(solve_group, [(g, now, job) for g in groups], state.client)
            )
            # Summed in the order of cells, as the bits of a sum depend on its order.
            sums = stats.sum(axis=0)
            steps += stats[:, :, STEPS_STAT].sum(axis=1).astype(np.int64)
            for index, p in enumerate(still):
                indices[p][number] = index
                primal, dual, slope, curvature, cost = sums[index, :5].tolist()
                searches[p].add(
                    Evaluation(number, searches[p].bias, primal, dual, slope, curvature, cost)
                )
            # The next round starts from this one; a problem's solution is from its best round.
            stored.add(number)
            needed = {number, *(search.best.round for search in searches)}
            for old in stored - needed:
                drop_states(job.fit.root, phase, old)
            stored &= needed
            still = [p for p in still if searches[p].is_open]
            number += 1
    best = [search.best for search in searches]
    return BestRounds(
        np.array([e.round for e in best]),
        np.array([indices[p][e.round] for p, e in enumerate(best)]),
        np.array([e.bias for e in best]),
        steps,
        np.array([not search.is_solved for search in searches]),
    )


def _read_solution(
    solved: BestRounds, groups: list[tuple[int, int]], job: JointJob
) -> tuple[Float64, Int64]:
    """Return theta, (q, k, l), and the number of rows with alpha > 0 in each cell, (k,)."""
    theta: list[Float64] = []
    support: list[Int64] = []
    for group in groups:
        group_theta: list[Float64] = []
        counts = np.zeros(group[1] - group[0] + 1)
        for number, index in zip(solved.rounds.tolist(), solved.indices.tolist(), strict=True):
            task = job.fit.root, "train", number, group
            group_theta.append(read_states(*task).theta[:, index])
            stats = read_stats(*task)
            assert stats is not None
            counts += stats[:, index, SUPPORT_STAT]
        theta.append(np.stack(group_theta))
        support.append(counts.astype(np.int64))
    return np.concatenate(theta, axis=1), np.concatenate(support)


def _report(
    shared: CellReport, leaf_rows: Int64, solved: BestRounds, support: Int64, errors: Float64
) -> Table:
    rows = [
        replace(
            shared,
            cell=cell,
            leaf=cell,
            n_rows=int(leaf_rows[cell]),
            validation_error=float(errors[cell]),
            n_steps=int(solved.steps[cell]),
            n_support=int(support[cell]),
        ).as_tuple()
        for cell in range(len(leaf_rows))
    ]
    return np.array(rows, CellReport.dtype())
