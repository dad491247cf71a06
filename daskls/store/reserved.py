"""What a finished model made of the rows that its fit reserved, in a group of its own."""

from daskls.errors import StoreError
from daskls.store.groups import Group
from daskls.store.layout import Root

__all__ = ["reserved_group"]


def reserved_group(root: Root, name: str, lacks: str) -> Group | None:
    """Return what a finished model keeps of its reserved rows; None of a model without such.

    Parameters
    ----------
    root : Root
    name : str. Of the group, and of what the model says of itself.
    lacks : str. What a model without the group does not have yet, and which parameter needs it.

    Raises
    ------
    StoreError : the fit was stopped before it
    """
    if name not in root.attributes["meta"]:
        return None
    group = root.find_group(name)
    if group is None:
        raise StoreError(
            f"The model at {root.where()} has no {lacks} needs. Call "
            f"fit again with store={root.where()!r} and the same data and parameters: nothing else "
            "runs."
        )
    return group
