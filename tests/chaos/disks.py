"""A small disk of memory that can be filled up and made read-only while it is used."""

import errno
import os
import subprocess
import time
from pathlib import Path

SIZE = "64m"


def can_mount(folder):
    """Whether this machine and user may mount."""
    try:
        disk = SmallDisk(Path(folder) / "try-mount")
    except (OSError, subprocess.CalledProcessError):
        return False
    disk.unmount()
    return True


class SmallDisk:
    """A mounted tmpfs."""

    def __init__(self, path):
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        _run("mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(self.path))

    def fill(self):
        """Take all space that is left."""
        with (self.path / "ballast").open("wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12):
                _write_until_full(file, size)
        return "filled"

    def free(self):
        (self.path / "ballast").unlink(missing_ok=True)

    def forbid(self, within_s=5.0):
        """Make it read-only; refused by the kernel while a file is open for writing."""
        end = time.monotonic() + within_s
        while True:
            try:
                _run("mount", "-o", "remount,ro", str(self.path))
                return "read-only"
            except subprocess.CalledProcessError:
                if time.monotonic() > end:
                    return "never read-only"

    def allow(self):
        _run("mount", "-o", "remount,rw", str(self.path))

    def unmount(self):
        # Lazily: what is killed may hold a file for a moment more.
        _run("umount", "-l", str(self.path))
        self.path.rmdir()


def _write_until_full(file, size):
    while True:
        try:
            os.write(file.fileno(), bytes(size))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            return


def _run(*command):
    subprocess.run(command, check=True, capture_output=True)
