"""What numpy holds at most while something runs."""

import gc
import tracemalloc

# What else is counted: cycles that are not yet collected, threads that earlier tests left behind.
# In a whole run it was 0.27 MiB more than in a test alone.
SLACK = 1 << 19
N_RUNS = 2


def peak_of(run):
    """Return the most bytes that numpy held at once: the least of some runs.

    What threads of earlier tests allocate meanwhile comes and goes, and what is loaded or compiled
    for the first run alone.
    """
    return min(_peak_of_one(run) for _ in range(N_RUNS))


def assert_projected(run, projected, loosest, unseen=0):
    """Fail unless what something takes, and numpy does not see, is within what was projected."""
    peak = peak_of(run) + unseen
    assert peak - SLACK <= projected <= loosest * peak, f"{projected / peak:.2f}"


def _peak_of_one(run):
    gc.collect()
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
