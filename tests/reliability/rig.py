"""The project of tests/cli, with what faults need: a wrapper around the command, and a name server to be broken."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
from dataclasses import dataclass

import aftermath
from project import Project

NAME = "api.rowcall.test"
NAME_SERVER = f"127.77.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"  # one of each process: tests run side by side
NXDOMAIN, SERVFAIL = 3, 2


@dataclass
class Rig(Project):
    """A project whose command can be started in surroundings of its own."""

    def answers(self):
        """The current answer of every record that is done, by key."""
        return aftermath.answers(self.folder)

    def is_sound(self):
        """Whether the store itself has no fault."""
        return aftermath.is_sound(self.folder)

    @property
    def place(self):
        """Where the store is, as a person names it."""
        return str(self.folder / "t.db")

    def lease(self, seconds):
        """Let a process be dead after so many seconds of silence."""
        self.replace("[stop]", f'[store]\nlease = "{seconds}s"\n[stop]')

    def is_writing(self, process):
        """Whether this process has the turn to write; it writes its number down."""
        with (self.folder / "t.db-turn").open("rb", buffering=0) as turn:
            try:
                fcntl.flock(turn, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return f"process {process.pid} ".encode() in turn.read()
            return False

    def look_up_by(self, address):
        """Let the command ask this name server and no other, by a mount that it alone sees."""
        (self.folder / "resolv.conf").write_text(f"nameserver {address}\noptions timeout:1 attempts:1\n")
        mounted = f"mount --bind '{self.folder}/resolv.conf' /etc/resolv.conf"
        self.before = ["unshare", "--mount", "sh", "-c", f'{mounted} && exec "$@"', "sh"]


class NameServer(asyncio.DatagramProtocol):
    """Answers every question for an IPv4 address with 127.0.0.1, or with ``failure``, a code of RFC 1035, 4.1.1."""

    failure = 0
    asked = 0

    @classmethod
    async def listening(cls):
        _, server = await asyncio.get_running_loop().create_datagram_endpoint(cls, (NAME_SERVER, 53))
        return server

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        self.asked += 1
        end = data.index(b"\0", 12) + 5
        wants_ipv4 = data[end - 4 : end - 2] == b"\0\1" and not self.failure
        head = data[:2] + struct.pack(">5H", 0x8180 | self.failure, 1, int(wants_ipv4), 0, 0)
        answer = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + bytes([127, 0, 0, 1]) if wants_ipv4 else b""
        self.transport.sendto(head + data[12:end] + answer, addr)
