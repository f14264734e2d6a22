"""A real PostgreSQL server for tests: thrown away at the end, and as rough as a test wants it."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import psycopg
import pytest

from rowcall.store.postgres import PostgresStore

USER = "postgres"
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
CLOCK = """
    CREATE OR REPLACE FUNCTION rowcall.moment() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    $$SELECT to_timestamp(pg_read_file('{folder}/' || current_database() || '.clock')::float8)$$
"""


def binaries():
    """The folder of the server's programs; None where there are none."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -float(path.parent.name))
    return next((folder for folder in folders if (folder / "postgres").exists()), None)


def _as_user(*command):
    """A command as somebody whom initdb accepts: not root."""
    if os.getuid() != 0:
        return list(command)
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups", *command]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """A server on a free port of an address, with a data folder of its own. ``settings`` go into its command line."""

    def __init__(self, host="127.0.0.1", **settings):
        self.host = host
        self.folder = Path(tempfile.mkdtemp(prefix="rowcall-pg-"))
        self.port = free_port()
        self._bin = binaries()
        self._settings = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"} | settings
        self._process = None
        self._databases = count(1)
        self._template = None
        _give(self.folder)
        self._initialise()

    def _initialise(self):
        command = [self._bin / "initdb", "-D", self.folder / "data", "-U", USER, "-A", "trust", "-N", "-E", "UTF8"]
        subprocess.run(_as_user(*map(str, command), "--no-instructions", "--locale=C"), check=True, capture_output=True)
        with (self.folder / "data" / "pg_hba.conf").open("a") as hba:
            hba.write("host all all samenet trust\n")

    def start(self):
        """Start it, and wait until it takes connections."""
        told = {"port": self.port, "listen_addresses": self.host, "unix_socket_directories": self.folder}
        told |= {"shared_buffers": "128MB", "max_connections": 200, **self._settings}
        options = [f"-c{name}={value}" for name, value in told.items()]
        command = _as_user(str(self._bin / "postgres"), "-D", str(self.folder / "data"), *options)
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self.wait_until_ready()
        return self

    def wait_until_ready(self):
        try:
            wait_for(
                lambda: psycopg.connect(self.url("postgres"), connect_timeout=5).close(),
                lambda: self._process.poll() is None,
            )
        except psycopg.OperationalError:
            raise RuntimeError((self.folder / "log").read_text(errors="replace")[-2000:]) from None

    def stop(self, how=signal.SIGQUIT):
        """Stop it: SIGQUIT is ``immediate`` (as a crash), SIGINT ``fast``."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(how)
            self._process.wait(30)

    def restart(self, how=signal.SIGQUIT, away=0.0):
        """Stop it and start it again after ``away`` seconds."""
        self.stop(how)
        time.sleep(away)
        self.start()

    def throw_away(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database):
        return f"postgresql://{USER}@{self.host}:{self.port}/{database}"

    def execute(self, statement, database="postgres"):
        """Do one statement as the superuser; returns its rows, if it gives any."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def kill_backends(self, database, how="pg_terminate_backend(pid)"):
        """End all connections to a database but this one; returns how many."""
        ended = self.execute(
            f"SELECT {how} FROM pg_stat_activity WHERE datname = '{database}' AND pid <> pg_backend_pid()"
        )
        return len(ended)

    @contextmanager
    def database(self, template=None):
        """The name of a new database, dropped at the end."""
        name = f"test{os.getpid()}_{next(self._databases)}"
        self.execute(f"CREATE DATABASE {name} STRATEGY file_copy" + (f" TEMPLATE {template}" if template else ""))
        try:
            yield name
        finally:
            with suppress(psycopg.OperationalError):
                self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    # --- stores with a clock that a test moves

    @contextmanager
    def store(self):
        """The name of a new database with an empty store, which knows no time before ``set_clock``."""
        if self._template is None:
            self._template = "empty_store"
            self.execute(f"CREATE DATABASE {self._template}")
            with ThreadPoolExecutor(1) as apart:  # whoever asks has a loop of its own
                apart.submit(lambda: asyncio.run(self._make_store(self._template))).result()
            self.stop_clocks(self._template)
        with self.database(self._template) as name:
            yield name

    async def _make_store(self, database):
        await (await PostgresStore.open(self.url(database))).close()

    def stop_clocks(self, database):
        """From now on the store in that database, and in those made from it, goes by the files of ``set_clock``."""
        self.execute(CLOCK.format(folder=self.folder), database)

    def set_clock(self, database, seconds):
        """Let it be so many seconds since 1970 in a database."""
        path = self.folder / f"{database}.clock"
        path.write_text(repr(seconds))


class Bouncer:
    """A PgBouncer before a server, in transaction mode. A context manager."""

    def __init__(self, server):
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="rowcall-pgbouncer-"))
        (self._folder / "users").write_text(f'"{USER}" ""\n')
        (self._folder / "ini").write_text(
            f"[databases]\n* = host=127.0.0.1 port={server.port}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = trust\nauth_file = {self._folder}/users\npool_mode = transaction\n"
        )
        for path in (self._folder, *self._folder.iterdir()):
            _give(path)

    def __enter__(self):
        command = _as_user(shutil.which("pgbouncer", path=PATH), "-q", str(self._folder / "ini"))
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: psycopg.connect(self.url("postgres"), connect_timeout=5).close())
        return self

    def __exit__(self, *exc):
        self._process.kill()
        self._process.wait(30)
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, database):
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"


def wait_for(connect, alive=lambda: True):
    """Try until it works, for a minute at most."""
    until = time.monotonic() + 60
    while True:
        try:
            return connect()
        except psycopg.OperationalError:
            if not alive() or time.monotonic() > until:
                raise
            time.sleep(0.02)


def _give(path):
    """Give a file to the user that servers run as."""
    if os.getuid() == 0:
        owner = pwd.getpwnam(USER)
        os.chown(path, owner.pw_uid, owner.pw_gid)


_servers = []


def the_server():
    """The server of this test process, started by the first who wants it; the test is skipped where there is none."""
    if binaries() is None:
        pytest.skip("no binaries of a PostgreSQL server: install Debian's postgresql package, or put initdb into PATH")
    if not _servers:
        _servers.append(Server().start())
    return _servers[0]


def throw_away():
    """End it, if it was started."""
    while _servers:
        _servers.pop().throw_away()
