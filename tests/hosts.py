"""Hosts that share nothing but a network: namespaces of this machine, with disks of their own."""

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack, contextmanager

from support import python_env

SUBNET = "10.77.0"
NAMES = ("daskls-1", "daskls-2")
# The machine itself, on the hosts' network.
ABOVE = f"{SUBNET}.254"
# What a host has of its own in place of the machine's: nothing of a test's files is seen there.
OWN_DISKS = ("/tmp", "/dev/shm")
INSIDE = " && ".join(f"mount -t tmpfs none {path}" for path in OWN_DISKS)
# No process of one host is seen by the other, as on two machines.
SPACES = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def why_not():
    """Return why this machine can have no hosts, or None."""
    if os.geteuid() or not shutil.which("ip") or not shutil.which("unshare"):
        return "namespaces need root, ip and unshare"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    try:
        with hosts(1) as (host,):
            out, err = host.start("-c", "print('here')", **pipes).communicate(timeout=60)
    except subprocess.CalledProcessError as error:
        return f"namespaces are refused here: {error.stderr.decode().strip()}"
    return None if out.strip() == "here" else f"no process runs in a namespace here: {err.strip()}"


class Host:
    """One of the hosts; ``address`` is its own."""

    def __init__(self, number):
        self.name, self.address = f"daskls-{number}", f"{SUBNET}.{number}"

    def start(self, *command, env=None, **options):
        """Start a Python process on it; it ends with the returned one."""
        script = f'{INSIDE} && cd /tmp && exec "$@"'
        return subprocess.Popen(
            [
                *("ip", "netns", "exec", self.name, *SPACES, "sh", "-c", script, "sh"),
                *(sys.executable, *command),
            ],
            env=python_env(**(env or {})),
            text=True,
            **options,
        )


@contextmanager
def hosts(n=2):
    """Yield hosts on one network, on which this machine is `ABOVE`."""
    with ExitStack() as stack:
        # Of a run that was killed.
        for old in (("link", "del", "daskls-net"), *(("netns", "del", name) for name in NAMES)):
            subprocess.run(["ip", *old], check=False, capture_output=True)
        ip("link", "add", "daskls-net", "type", "bridge")
        stack.callback(ip, "link", "del", "daskls-net")
        ip("addr", "add", f"{ABOVE}/24", "dev", "daskls-net")
        ip("link", "set", "daskls-net", "up")
        found = [Host(number) for number in range(1, n + 1)]
        for host in found:
            ip("netns", "add", host.name)
            stack.callback(ip, "netns", "del", host.name)
            ends = f"{host.name}-a", f"{host.name}-b"
            ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
            ip("link", "set", ends[0], "master", "daskls-net", "up")
            ip("link", "set", ends[1], "netns", host.name)
            inside = ("-n", host.name)
            ip(*inside, "addr", "add", f"{host.address}/24", "dev", ends[1])
            ip(*inside, "link", "set", ends[1], "up")
            ip(*inside, "link", "set", "lo", "up")
        yield found
