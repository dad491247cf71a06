"""The registry of kernels: one line a kernel, by the name that users and stores know it by.

It names the modules of kernels: one is imported when it is looked up, all are when a trait is asked
for. What the package asks of a kernel is in `kernels.kernel`; nothing else compares a kernel's name
with another.
"""

from functools import cache

from daskls.kernels.kernel import Kernel
from daskls.registry import load_object

__all__ = ["KERNELS", "find_kernel", "kernels_with"]

# The `Kernel` of each name as ``module:class`` below the package.
KERNELS = {
    "rbf": "kernels.distances:Gaussian",
    "exponential": "kernels.distances:Exponential",
    "laplacian": "kernels.manhattan:Laplacian",
    "linear": "kernels.inner:Linear",
    "poly": "kernels.inner:Polynomial",
}


@cache
def find_kernel(name: str) -> Kernel:
    """Return the kernel of a name in `KERNELS`; its module is imported at the first call.

    >>> find_kernel("rbf").formula
    'exp(-gamma |x - z|^2)'
    """
    kernel: Kernel = load_object(KERNELS[name])()
    return kernel


def kernels_with(trait: str) -> tuple[str, ...]:
    """Return the names of the kernels that have a trait, in the registry's order.

    >>> kernels_with("is_raced")
    ('rbf', 'exponential', 'laplacian')
    """
    return tuple(name for name in KERNELS if getattr(find_kernel(name), trait))
