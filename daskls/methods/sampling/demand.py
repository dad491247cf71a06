"""The work of methods that train one SVM on a chosen sample, before rows are read.

How many rows the samples have, and how many are tried, the data decide.
"""

from daskls.methods.sampling.plan import sample_nbytes
from daskls.methods.sampling.search import N_SEARCH_TASKS
from daskls.methods.sampling.spec import SamplingSpec
from daskls.partition.subsamples import plan_draws, sampling_sizes
from daskls.plan import Demand, Outlook, StageDemand, Work, model_nbytes
from daskls.run.gather import gather_stage

__all__ = ["demand_of_samples"]

TRAIN, SELECT = "methods.sampling.timed:train_sample", "methods.sampling.timed:select_on"
# Rows of a sample that is trained on, for each row of all subsamples: those of balls, and those of
# rounds; and samples that are tried. Of ijcnn1.
BALL_GROWTH, ROUND_GROWTH, N_TRIED = 6.0, 2.5, 6


def demand_of_samples(method: SamplingSpec, outlook: Outlook, *, has_radii: bool) -> Demand:
    """Return the demand of samples drawn around support rows.

    Parameters
    ----------
    method : SamplingSpec
    outlook : Outlook
    has_radii : bool. Whether all subsamples are trained first, and balls then grow.
    """
    extent = outlook.extent
    sizes, n_rows = extent.sizes, extent.n_rows
    fraction, n_subsamples = sampling_sizes(
        method.sample_fraction, method.n_subsamples, n_rows, sizes.n_classes
    )
    draws = plan_draws(n_rows, fraction, n_subsamples, 0)
    stages = [outlook.grown, gather_stage(outlook)]
    drawing = Work(outlook.reading.what, outlook.reading.size, outlook.reading.count)
    stages.append(
        StageDemand("draw", N_SEARCH_TASKS, extent.leaf_rows * sizes.row_nbytes, (drawing,))
    )
    n_selecting = method.n_selecting(draws)
    if n_selecting:
        nbytes = sample_nbytes(sizes, n_selecting)
        stages.append(StageDemand("select", 1, nbytes, (Work(SELECT, n_selecting, 1),)))
    size = max(draws.subsample_rows, 2)
    if has_radii:
        nbytes = sample_nbytes(sizes, size)
        work = Work(TRAIN, size, n_subsamples)
        n_tasks = min(n_subsamples, N_SEARCH_TASKS)
        stages.append(StageDemand("subsamples", n_tasks, nbytes, (work,)))
    growth = BALL_GROWTH if has_radii else ROUND_GROWTH
    trained = int(min(growth * draws.n_sampled, n_rows - draws.n_validation))
    n_tried = 1 if method.radius_scale is not None else N_TRIED
    nbytes = sample_nbytes(sizes, trained)
    search = Work(TRAIN, max(trained, 2), n_tried)
    # Drawing from balls, or searching neighbors, is shared out; one task trains.
    stages.append(
        StageDemand("search", n_tried * (1 + N_SEARCH_TASKS), nbytes, (search,), n_tried, 1.0)
    )
    return Demand(tuple(stages), 1, model_nbytes(sizes, trained), 0, n_tried)
