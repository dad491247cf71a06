"""Tables behind URLs: their files are copied to a temporary folder, as they are read repeatedly."""

import glob
import os
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from http.client import HTTPException
from itertools import takewhile
from pathlib import Path
from string import punctuation
from urllib.parse import quote, unquote
from urllib.request import urlretrieve
from weakref import WeakValueDictionary

from fsspec.core import url_to_fs

from daskls.errors import DataError
from daskls.store.bucket import split_url
from daskls.store.errors import READ_AGAIN, disk_errors
from daskls.store.objects import BaseStore, TemporaryFolder, is_bucket, open_store

COPIED_NBYTES = 32 << 20
# Copies, for as long as they are in use.
_copies: "WeakValueDictionary[str, TemporaryFolder]" = WeakValueDictionary()


def copied(url: str, is_table: Callable[[str], bool]) -> tuple[TemporaryFolder, str] | None:
    """Return a folder, and the path or pattern in it of a table's files; None for no table."""
    if is_bucket(url):
        base, path = split_url(url)
        store = open_store(base)
        sizes = {key: n for key, n in _sizes_at(store, path).items() if is_table(key)}
        if not sizes and not (is_table(path) or glob.has_magic(path)):
            return None
        if not sizes:
            raise DataError(f"There is no table at {url}. Check the URL.")
    else:
        # Not by urlsplit: what is no URL is refused below.
        path, sizes = Path(unquote(re.split(r"[?#]", url)[0])).name, None
        if not is_table(path):
            return None
    folder = _copies.get(url)
    if folder is None:
        folder = TemporaryFolder()
        with disk_errors(folder.where, READ_AGAIN):
            if sizes is None:
                _copy_page(url, folder.where / path)
            else:
                for key, nbytes in sizes.items():
                    _copy_object(store, key, nbytes, folder.where / key)
        _copies[url] = folder
    return folder, os.path.join(folder.where, path)


def _sizes_at(store: BaseStore, path: str) -> dict[str, int]:
    """Return the sizes of the objects at a path or a pattern, and below what it matches."""
    parts = path.split("/")
    fixed = "/".join(takewhile(lambda part: not glob.has_magic(part), parts))
    sizes = store.sizes(fixed)
    if fixed == path:
        return sizes or ({path: store.size(path)} if store.exists(path) else {})
    return {
        key: nbytes
        for key, nbytes in sizes.items()
        if len(names := key.split("/")) >= len(parts) and all(map(fnmatchcase, names, parts))
    }


def _copy_object(store: BaseStore, key: str, nbytes: int, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    with to.open("wb") as file:
        for start in range(0, nbytes, COPIED_NBYTES):
            file.write(store.range(key, start, min(start + COPIED_NBYTES, nbytes)).data)


def _copy_page(url: str, to: Path) -> None:
    try:
        if url.lower().startswith(("http:", "https:", "ftp:")):
            # Blanks and letters beyond ASCII, as a browser does.
            urlretrieve(quote(url, safe=punctuation), to)
        else:
            system, path = url_to_fs(url)
            system.get_file(path, str(to))
    except (OSError, ValueError, ImportError, HTTPException) as error:
        raise DataError(
            f"{url} cannot be read: {error}. Tables are read from s3://, gs://, az://, http(s)://, "
            "ftp://, and by fsspec from others; check the URL, or download the table."
        ) from error
