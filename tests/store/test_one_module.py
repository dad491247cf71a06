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
# Functions of a module, methods of paths and of open files, and fields.
NAMES = {
    *("listdir", "scandir", "stat", "lstat", "fdopen", "unlink", "symlink", "mkdir", "makedirs"),
    *("rmdir", "utime", "readlink"),
    *("chmod", "statvfs", "lexists", "isfile", "isdir", "islink", "getsize", "getmtime"),
    *("realpath", "memmap", "fromfile", "savez", "savez_compressed", "rename", "touch", "glob"),
    *("rglob", "iterdir", "read_text", "write_text", "read_bytes", "write_bytes", "is_dir"),
    *("is_file", "is_symlink", "symlink_to", "hardlink_to", "seek", "samefile", "tofile"),
}
# Names that have other senses elsewhere.
WHOLE = {
    *("os.replace", "os.path.exists", "os.open", "os.remove", "os.walk", "os.link", "os.access"),
    *("os.truncate", "np.load", "np.save", "open", "FileIO"),
}
STAMPS = {"st_ino", "st_dev", "st_mtime", "st_mtime_ns", "st_ctime_ns", "st_size"}


def touches(node):
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        names = {getattr(node, "module", None) or "", *(own.name for own in node.names)}
        return bool({name.partition(".")[0] for name in names} & MODULES)
    if isinstance(node, ast.Attribute):
        return node.attr in STAMPS
    if not isinstance(node, ast.Call):
        return False
    whole, name = ast.unparse(node.func), getattr(node.func, "attr", "")
    # Of a store `exists` takes a key, and of most else `open` takes no mode.
    if name == "open" and not whole.startswith("os."):
        return any(isinstance(own, ast.Constant) for own in node.args)
    return name in NAMES or whole in WHOLE or (name == "exists" and not node.args)


def test_the_back_end_alone_touches_what_lies_inside_a_store():
    found = set()
    for path in PACKAGE.rglob("*.py"):
        if any(map(touches, ast.walk(ast.parse(path.read_text(encoding="utf-8"))))):
            found.add(path.relative_to(PACKAGE).as_posix())
    # Nothing beside the exceptions, and no exception that is needed no more.
    assert {file for file in found if not file.startswith(MAY_OPEN)} == {BACK_END, *EXCEPTIONS}
