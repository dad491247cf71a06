"""Damage to one file of a store, drawn and done; whatever is done is said."""

import re
from pathlib import Path

from damages import DAMAGES

KINDS = {
    "bit flip": "bit",
    **{kind: kind for kind in ("zeroed block", "truncated", "extended", "removed", "swapped")},
}


def files_of(store):
    """Return every file of a store, relative to it, in a fixed order."""
    store = Path(store)
    found = (p.relative_to(store) for p in store.rglob("*") if p.is_file())
    # Names of unfinished files are drawn anew each time: they do not decide the order.
    return sorted(map(str, found), key=lambda name: (re.sub("[0-9a-f]{16,}", "#", name), name))


def do_damage(store, kind, rng):
    """Damage one file of a store, drawn uniformly; return what was done, in words."""
    files = files_of(store)
    name = files[rng.integers(len(files))]
    DAMAGES[KINDS[kind]](Path(store) / name, rng, Path(store))
    return f"{kind}: {name}"
