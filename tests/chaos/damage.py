"""Damage to one file of a store, drawn and done; whatever is done is said."""

import os
import re
import shutil
from pathlib import Path

BLOCK = 512
KINDS = ("bit flip", "zeroed block", "truncated", "extended", "removed", "swapped")


def files_of(store):
    """Return every file of a store, relative to it, in a fixed order."""
    store = Path(store)
    found = (p.relative_to(store) for p in store.rglob("*") if p.is_file())
    # Names of unfinished files are drawn anew each time: they do not decide the order.
    return sorted(map(str, found), key=lambda name: (re.sub("[0-9a-f]{16,}", "#", name), name))


def kind_of(name):
    """Return what tells one kind of file from another: its name without numbers and hashes."""
    folders = [part for part in name.split("/") if not part.startswith("c")]
    return re.sub(r"[0-9a-f]{8,}|\d+", "#", "/".join([*folders[-2:], os.path.basename(name)]))


def do_damage(store, kind, rng):
    """Damage one file of a store, drawn uniformly; return what was done, in words."""
    files = files_of(store)
    name = files[rng.integers(len(files))]
    path = Path(store) / name
    size = path.stat().st_size
    if kind == "removed":
        path.unlink()
        return f"removed {name}"
    if kind == "swapped":
        return _swap(store, name, files, rng)
    if kind == "extended":
        with path.open("ab") as file:
            file.write(rng.bytes(int(rng.integers(1, 2 * BLOCK))))
        return f"extended {name} of {size} to {path.stat().st_size} bytes"
    if size == 0:
        path.write_bytes(b"\0")
        return f"a byte in the empty {name}"
    at = int(rng.integers(size))
    if kind == "truncated":
        os.truncate(path, at)
        return f"truncated {name} of {size} to {at} bytes"
    return _overwrite(path, name, kind, at, rng)


def _overwrite(path, name, kind, at, rng):
    """Flip a bit, or zero the block, at a place of a file."""
    content = bytearray(path.read_bytes())
    if kind == "bit flip":
        bit = int(rng.integers(8))
        content[at] ^= 1 << bit
        path.write_bytes(content)
        return f"flipped bit {bit} of byte {at} of {name} ({len(content)} bytes)"
    start = at - at % BLOCK
    stop = min(start + BLOCK, len(content))
    content[start:stop] = bytes(stop - start)
    path.write_bytes(content)
    return f"zeroed bytes {start} to {stop} of {name} ({len(content)} bytes)"


def _swap(store, name, files, rng):
    """Exchange a file with another of its kind; with any other where it is the only one."""
    others = [other for other in files if other != name]
    alike = [other for other in others if kind_of(other) == kind_of(name)] or others
    if not alike:
        return f"nothing to swap {name} with"
    other = alike[rng.integers(len(alike))]
    a, b, scratch = Path(store) / name, Path(store) / other, Path(store) / ".swapping"
    shutil.move(a, scratch)
    shutil.move(b, a)
    shutil.move(scratch, b)
    return f"swapped {name} and {other}"
