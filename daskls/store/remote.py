"""Errors of drivers for URLs, as one error."""

from collections.abc import Iterator
from contextlib import contextmanager

import zarr

from daskls.errors import StoreError
from daskls.store.artifacts import is_bucket, open_store

__all__ = ["ABSENT", "remote_errors"]

# What Zarr raises where there is nothing, or something else.
ABSENT = (FileNotFoundError, ValueError, KeyError, zarr.errors.ContainsGroupError)


@contextmanager
def remote_errors(path: str) -> Iterator[None]:
    """Turn what a driver raises into one `StoreError`; that nothing is there passes as it is.

    Each driver has its own kinds of errors for missing credentials, a network that is away, or a
    bucket that is denied; a local path has those of the system.

    Raises
    ------
    StoreError
    """
    try:
        yield
    except (StoreError, *ABSENT):
        if is_bucket(path):
            # Zarr takes a bucket that is not there for an empty one: whoever asks it is told.
            open_store(path).exists("")
        raise
    except ImportError as error:
        raise StoreError(f"The driver for {path!r} is not installed: {error}.") from error
    except OSError as error:
        raise StoreError(f"Cannot open {path!r}: {_said(error)}. {_remedy(path)}") from error
    except Exception as error:
        if "://" not in path:
            raise
        if is_bucket(path):
            from daskls.store.bucket_errors import as_store_error

            raise as_store_error(path, error, "call again") from error
        raise StoreError(f"Cannot open {path!r}: {_said(error)}. {_remedy(path)}") from error


def _said(error: Exception) -> str:
    """Return an error's kind and words."""
    return f"{type(error).__name__}: {str(error).rstrip('.')}"


def _remedy(path: str) -> str:
    """Say what to look at."""
    if "://" not in path:
        return "Check the path and who may read it."
    return (
        "Check the address, the network, and the credentials, which the driver takes from its own "
        "environment variables and files, on every worker."
    )
