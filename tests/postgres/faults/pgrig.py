"""The project of the reliability tests, with its store in PostgreSQL."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from aftermath import ANSWERS
from pgkit import Server
from rig import Rig

from rowcall.store.postgres.loaders import IsoLoader

_OTHERS = "datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
_WRITING = f"SELECT client_port FROM pg_stat_activity WHERE {_OTHERS} AND xact_start IS NOT NULL"
_INDEXES = "SELECT bt_index_check(indexrelid, true) FROM pg_stat_user_indexes WHERE schemaname = 'rowcall'"
_HEAPS = """
    SELECT relname, msg FROM pg_stat_user_tables, verify_heapam(relid::regclass) WHERE schemaname = 'rowcall'
"""


@dataclass
class PgRig(Rig):
    """A project whose store is in a database of a server."""

    server: Server = field(kw_only=True)
    database: str = field(kw_only=True)
    started: list = field(default_factory=list)

    @property
    def place(self):
        return self.server.url(self.database)

    async def start(self, *args, **options):
        self.started.append(await super().start(*args, **options))
        return self.started[-1]

    async def kill_all(self):
        """End what a test that failed has left."""
        for process in self.started:
            if process.returncode is None:
                await self.kill(process)

    def config(self, text):
        super().config(f'{text}[store]\npath = "{self.place}"\n')

    def lease(self, seconds):
        self.replace("[store]", f'[store]\nlease = "{seconds}s"')

    def sql(self, query, *args):
        with self._connection() as connection:
            cursor = connection.execute(query.replace("?", "%s"), args or None)
            return cursor.fetchall() if cursor.description else []

    def answers(self):
        """As in a file; what the dead have sent to the server may still be written."""
        self.wait_until_nobody_writes()
        if self.sql("SELECT to_regclass('rowcall.jobs')") == [(None,)]:
            return {}
        return dict(self.sql(ANSWERS))

    def is_sound(self):
        """Whether PostgreSQL finds no fault in the store's tables and their indexes."""
        self.sql("CREATE EXTENSION IF NOT EXISTS amcheck")
        self.sql(_INDEXES)
        return self.sql(_HEAPS) == []

    def is_writing(self, process):
        """Whether this process is in a transaction."""
        return not self._writing().isdisjoint(ports_of(process.pid))

    def wait_until_nobody_writes(self):
        until = time.monotonic() + 10
        while self._writing():
            assert time.monotonic() < until, "a transaction stays open"
            time.sleep(0.005)

    def _writing(self):
        """The ports from which somebody is in a transaction."""
        return {port for (port,) in self.sql(_WRITING)}

    @contextlib.contextmanager
    def _connection(self):
        with psycopg.connect(self.place, autocommit=True, options="-c search_path=rowcall,public") as connection:
            connection.adapters.register_loader("timestamptz", IsoLoader)
            yield connection


def ports_of(pid):
    """The local ports of a process's TCP connections."""
    files = (str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir())
    sockets = {name[8:-1] for name in files if name.startswith("socket:")}
    lines = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return {int(line[1].rpartition(":")[2], 16) for line in lines if line[9] in sockets}
