"""The method of a store, by the description that it keeps."""

from typing import Any

from daskls.errors import StoreError
from daskls.registry import METHODS, find_entry, load_object
from daskls.run.contract import Method
from daskls.store.guard import malformed_is_damage

__all__ = ["method_of"]


def method_of(values: dict[str, Any], where: str = "The model") -> Method:
    """Return the method that a store describes.

    Parameters
    ----------
    values : dict. What `Method.to_json` gave.
    where : str. Names the model in an error.

    Raises
    ------
    StoreError : no method of that name, or none with such values
    """
    name = str(values.get("name", ""))
    entry = find_entry(name)
    if entry is None:
        known = ", ".join(repr(entry.name) for entry in METHODS)
        raise StoreError(
            f"{where} was made by the method {name!r}, which this daskls does not know; it knows "
            f"{known}. Upgrade daskls."
        )
    with malformed_is_damage(where):
        method: Method = load_object(entry.method).from_json(values)
    return method
