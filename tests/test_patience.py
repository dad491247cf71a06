"""What a worker's process holds: garbage is looked for where it may be what fills it."""

import subprocess
import sys

import pytest

SCRIPT = """
import gc, weakref
import numpy as np
from daskls.run.resources import BASELINE_NBYTES, report_held

class Cycle:
    def __init__(self, nbytes):
        self.own, self.held = self, np.ones(nbytes, np.uint8)

# As in the middle of a fit: the interpreter's own turn comes when it comes.
gc.disable()
seen = weakref.ref(Cycle(1 << 10))
small = report_held().nbytes
assert small < BASELINE_NBYTES, small
print(seen() is not None)
seen = weakref.ref(Cycle(256 << 20))
large = report_held().nbytes
print(seen() is None, large - small < 32 << 20)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="measured on Linux")
def test_garbage_is_collected_where_there_may_be_much():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "True", "True"], done.stderr
