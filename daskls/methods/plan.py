"""The plan of a fit: tasks, bytes and refusals, by the steps of a fit with expected sizes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from daskls.errors import MemoryPlanError
from daskls.memory import TaskSizes, assign_nbytes
from daskls.methods.predict import held_nbytes, rows_within
from daskls.plan.bundles import Resources, plan_sample
from daskls.plan.checks import check_sample, growing_nbytes
from daskls.plan.exchange import plan_exchange
from daskls.plan.fit import FitPlan
from daskls.plan.prediction import PredictionPlan
from daskls.records import F4, F8
from daskls.run.blocks import BlockRows
from daskls.run.contract import QUERY_NBYTES, FitRequest, sizes_of
from daskls.run.reserve import rows_expected
from daskls.run.resources import free_nbytes
from daskls.scaling.fit import plan_choice, usual_spec
from daskls.store.caches import BASELINE_NBYTES
from daskls.targets import Target


def plan_fit(
    request: FitRequest,
    rows: BlockRows,
    target: Target,
    resources: Resources,
    notes: tuple[str, ...] = (),
) -> FitPlan:
    """Return the plan of a fit; only shape, dtype and blocks of X are used."""
    n_rows, row_nbytes = rows.n_rows, rows.n_features * rows.X.dtype.itemsize
    reserved = request.reserved_for
    n_reserved = 0 if reserved is None else rows_expected(reserved, n_rows, row_nbytes)
    request = request.for_data(n_rows - n_reserved, rows.n_features, target.n_targets)
    rows, method = rows.planned(resources.task_nbytes), request.method
    raw = sizes_of(request, rows, replace(target, quantile=request.spec.quantile), n_rows)
    sampling = plan_sample(n_rows, rows.n_features, request.cell_size)
    chosen = _chosen(request, raw)

    n_partitions = request.n_partitions
    n_leaves = n_partitions * method.expected_leaves(n_rows, sampling, request.cell_size)
    exchange = plan_exchange(chosen, n_rows, n_leaves, n_partitions, resources.task_nbytes)
    training = method.expected(chosen, n_leaves, n_partitions, resources)
    # Two tasks a block draw the sample, as the first counts labels; one regroups it.
    n_tasks = 3 * rows.n_blocks + exchange.n_windows + training.n_tasks
    if exchange.n_windows > 1:
        n_tasks += exchange.n_groups * exchange.n_windows

    chosen_nbytes, choice_checks = plan_choice(request, raw, sampling.n_sample, resources)
    largest = max(training.nbytes, exchange.manifest_nbytes, chosen_nbytes)
    largest = max(largest, *(assign_nbytes(sizes, rows.block_rows) for sizes in (raw, chosen)))
    checks = [partial(check_sample, sampling, raw, free_nbytes(), request.sample_remedy)]
    # A method reports only the first task that does not fit. Where that is a block's, checking
    # again with blocks of one row finds the next.
    variants = raw, _without_blocks(raw), chosen, _without_blocks(chosen)
    checks += [partial(method.check, sizes, resources) for sizes in variants]
    return FitPlan(
        estimator=request.estimator,
        n_rows=n_rows,
        n_features=rows.n_features,
        n_tasks=n_tasks,
        n_bundles=training.n_tasks,
        n_models=training.n_models,
        resources=resources,
        task_nbytes=largest,
        client_nbytes=growing_nbytes(sampling, raw)
        + training.client_nbytes
        + n_reserved * row_nbytes,
        worker_nbytes=BASELINE_NBYTES + largest,
        exchange=exchange,
        model_nbytes=training.model_nbytes,
        prediction=_plan_prediction(request, raw, chosen, training.model_nbytes, resources),
        refusals=_refusals([*checks, *choice_checks]),
        notes=notes,
    )


def _plan_prediction(
    request: FitRequest, raw: TaskSizes, chosen: TaskSizes, model_nbytes: int, resources: Resources
) -> PredictionPlan:
    """Return the plan of predicting as many rows; an answer is assumed to be a number."""
    n_rows, n_partitions = chosen.n_rows, request.n_partitions
    held = held_nbytes(raw.n_features, chosen.n_features, raw.itemsize, chosen.n_outputs)
    most = rows_within(resources.task_nbytes, held + QUERY_NBYTES + F8 * n_partitions + F8)
    return PredictionPlan(
        n_rows,
        -(-n_rows // most),
        raw.n_features * raw.itemsize,
        F8,
        model_nbytes,
        n_partitions if request.method.predicts_by_place else 0,
    )


def _chosen(request: FitRequest, sizes: TaskSizes) -> TaskSizes:
    sizes = replace(sizes, spec=usual_spec(request.spec, request.scaling))
    if request.scaling is None or request.scaling.feature_scale is None:
        return sizes
    return replace(sizes, itemsize=F4, raw_nbytes=sizes.n_features * sizes.itemsize)


def _without_blocks(sizes: TaskSizes) -> TaskSizes:
    return replace(sizes, source_nbytes=0, unpack_nbytes=0, block_rows=1)


def _refusals(checks: Sequence[Callable[[], None]]) -> tuple[str, ...]:
    refusals = []
    for check in checks:
        try:
            check()
        except MemoryPlanError as error:
            refusals.append(str(error))
    return tuple(dict.fromkeys(refusals))
