"""What disks, programs and people do to files."""

import re

import numpy as np

BLOCK = 512


def _flip(file, rng, store):
    content = bytearray(file.read_bytes())
    if content:
        content[rng.integers(len(content))] ^= 1 << rng.integers(8)
    file.write_bytes(content)


def _zero(file, rng, store):
    content = file.read_bytes()
    start = int(rng.integers(0, max(len(content), 1)))
    end = min(start + BLOCK, len(content))
    file.write_bytes(content[:start] + bytes(end - start) + content[end:])


def _truncate(file, rng, store):
    content = file.read_bytes()
    file.write_bytes(content[: int(rng.integers(0, max(len(content), 1)))])


def _extend(file, rng, store):
    file.write_bytes(file.read_bytes() + rng.bytes(int(rng.integers(1, BLOCK))))


def _swap(file, rng, store):
    """Let the file change places with another one, of its kind if there is one."""
    others = [other for other in files_of(store) if other != file]
    alike = [other for other in others if kind_of(other) == kind_of(file)]
    if others:
        other = (alike or others)[rng.integers(len(alike or others))]
        aside = file.with_name("aside")
        file.rename(aside)
        other.rename(file)
        aside.rename(other)


def kind_of(file):
    return re.sub(r"\d+", "", file.name)


DAMAGES = {
    "bit": _flip,
    "zeroed block": _zero,
    "truncated": _truncate,
    "extended": _extend,
    "removed": lambda file, rng, store: file.unlink(),
    "swapped": _swap,
}


def files_of(folder):
    """Return all plain files below a folder, in order; dot files are nobody's."""
    files = (file for file in folder.rglob("[!.]*") if file.is_file())
    return sorted(file for file in files if "/." not in f"/{file.relative_to(folder)}")


def draw_damages(folder, n, seed):
    """Yield ``n`` drawn pairs of a file of a folder, relative to it, and a kind of damage."""
    rng, files, kinds = np.random.default_rng(seed), files_of(folder), sorted(DAMAGES)
    for _ in range(n):
        file = files[rng.integers(len(files))].relative_to(folder)
        yield file, kinds[rng.integers(len(kinds))], rng
