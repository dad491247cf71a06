"""What lies inside a store is touched by its back end; each exception has a reason.

Read from the syntax trees: calls that look at, open, write, rename or remove files, imports of
modules that do, and the numbers that tell one file from another.
"""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "daskls"
BACK_END = "store/folder.py"
# Readers of users' files, the command line, and plots, which write where a person says.
MAY_OPEN = ("datasets/", "sources/", "cli/", "plotting/")
# Of the rest, and what each touches.
EXCEPTIONS = {
    "estimators/store.py": "unpacks a pickle's archive into a new temporary folder",
    "estimators/tables.py": "looks at users' .npy files",
    "kernels/_jit.py": "its own sources, which what was compiled and kept is of",
    "parsed_code.py": "its own sources, which help is read from",
    "store/bucket.py": "a file of this process, for what is put when all of it is known",
    "store/dataset.py": "data sets, which Zarr reads and writes",
    "store/owner.py": "whether a process still runs: /proc",
    "store/objects.py": "a new folder under Dask's temporary-directory",
    "workers.py": "asks every worker whether it sees the user's data",
}

MODULES = {"shutil", "mmap", "tempfile", "glob", "tarfile", "zipfile", "fcntl"}
OF_OS = {
    *("listdir", "walk", "scandir", "stat", "lstat", "open", "fdopen", "remove", "unlink"),
    *("rename", "replace", "link", "symlink", "mkdir", "makedirs", "rmdir", "utime", "truncate"),
    *("access", "readlink", "chmod", "statvfs", "path.exists", "path.lexists", "path.isfile"),
    *("path.isdir", "path.islink", "path.getsize", "path.getmtime", "path.realpath"),
}
OF_NUMPY = {"memmap", "fromfile", "load", "save", "savez", "savez_compressed"}
# Methods of paths and of open files.
METHODS = {
    *("unlink", "rename", "rmdir", "mkdir", "touch", "glob", "rglob", "stat", "lstat", "iterdir"),
    *("read_text", "write_text", "read_bytes", "write_bytes", "is_dir", "is_file", "is_symlink"),
    *("symlink_to", "hardlink_to", "seek", "samefile", "tofile"),
}
STAMPS = {"st_ino", "st_dev", "st_mtime", "st_mtime_ns", "st_ctime_ns", "st_size"}


def dotted(node):
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else None


def complaint(node):
    if isinstance(node, ast.Import):
        names = [alias.name.split(".")[0] for alias in node.names]
        return next((f"import {name}" for name in names if name in MODULES), None)
    if isinstance(node, ast.ImportFrom):
        is_os = node.module == "os" and {alias.name for alias in node.names} & OF_OS
        base = (node.module or "").split(".")[0]
        return f"from {node.module}" if base in MODULES or is_os else None
    if isinstance(node, ast.Attribute) and node.attr in STAMPS:
        return node.attr
    return of_call(node) if isinstance(node, ast.Call) else None


def of_call(node):
    if isinstance(node.func, ast.Name):
        return node.func.id if node.func.id in {"open", "FileIO"} else None
    if not isinstance(node.func, ast.Attribute):
        return None
    name, method = dotted(node.func) or "", node.func.attr
    package, _, rest = name.partition(".")
    if package in {"os", "np"}:
        return name if rest in (OF_OS if package == "os" else OF_NUMPY) else None
    # Of a store `exists` takes a key, and of most else `open` takes no mode.
    bare = method == "exists" and not node.args
    with_mode = method == "open" and any(isinstance(arg, ast.Constant) for arg in node.args)
    return f".{method}" if method in METHODS or bare or with_mode else None


def touches(root):
    """Return, by file, the lines that touch files, and how."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        own = [(node.lineno, what) for node in ast.walk(tree) if (what := complaint(node))]
        if own:
            found[path.relative_to(root).as_posix()] = sorted(own)
    return found


def test_the_back_end_alone_touches_what_lies_inside_a_store():
    found = {
        file: lines for file, lines in touches(PACKAGE).items() if not file.startswith(MAY_OPEN)
    }
    assert len(found.pop(BACK_END)) > 20
    # Nothing beside the exceptions, and no exception that is needed no more.
    assert {file: lines for file, lines in found.items() if file not in EXCEPTIONS} == {}
    assert set(EXCEPTIONS) == set(found)
