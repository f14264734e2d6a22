"""Machines: network namespaces of their own, on one bridge, with this one at its end."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

_TAG = f"rc{os.getpid()}"  # interfaces have names of at most 15 characters
_OURS = re.compile(r"^(rc(\d+)(?:m\d+)?)\b", re.MULTILINE)
_SUBNET = f"198.{18 + (os.getpid() >> 8 & 1)}.{os.getpid() & 255}"  # of the range for tests of networks, RFC 2544


def require():
    """Skip the test where no machines can be made."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("needs Linux and root, to make network namespaces")
    if missing := [tool for tool in ("ip", "iptables") if shutil.which(tool) is None]:
        pytest.skip(f"needs {' and '.join(missing)}")
    if _do("ip", "link", "add", _TAG, "type", "bridge", check=False):
        pytest.skip("the kernel lets nobody make network devices")
    _do("ip", "link", "del", _TAG)
    _sweep()


def _sweep():
    """Take away what tests have left that were killed."""
    for kind, command in (("netns", ("ip", "netns", "list")), ("link", ("ip", "-brief", "link"))):
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for name, pid in _OURS.findall(listed):
            if not Path("/proc", pid).exists():
                _do("ip", kind, "del", name, check=False)


def _do(*command, check=True):
    done = subprocess.run(command, capture_output=True, text=True)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return done.returncode


class Machine:
    """A network namespace; what is to run there stands behind ``before``."""

    def __init__(self, name):
        self._name = name

    @property
    def before(self):
        return ["ip", "netns", "exec", self._name]

    def cut(self, port):
        """From now on nothing passes between this machine and a port of any other, in both directions."""
        for chain, side in (("OUTPUT", "--dport"), ("INPUT", "--sport")):
            _do(*self.before, "iptables", "-A", chain, "-p", "tcp", side, str(port), "-j", "DROP")

    def mend(self):
        """Let everything pass again."""
        _do(*self.before, "iptables", "-F")


class Network:
    """The machines of a test, and the address under which they reach this one."""

    here = f"{_SUBNET}.1"

    def __init__(self, machines):
        self.machines = machines


@contextmanager
def network(many):
    """A network with so many machines, which are gone at the end in any case."""
    with ExitStack() as stack:
        _made(stack, ("link", "add", _TAG, "type", "bridge"), ("link", "del", _TAG))
        _do("ip", "addr", "add", f"{Network.here}/24", "dev", _TAG)
        _do("ip", "link", "set", _TAG, "up")
        yield Network([_machine(stack, number) for number in range(many)])


def _machine(stack, number):
    name, outside = f"{_TAG}m{number}", f"{_TAG}v{number}"
    _made(stack, ("netns", "add", name), ("netns", "del", name))
    _do("ip", "link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
    _do("ip", "link", "set", outside, "master", _TAG, "up")
    for command in ("link set lo up", f"addr add {_SUBNET}.{number + 2}/24 dev eth0", "link set eth0 up"):
        _do("ip", "-n", name, *command.split())
    return Machine(name)


def _made(stack, make, unmake):
    _do("ip", *make)
    stack.callback(_do, "ip", *unmake, check=False)
