"""A project whose verbs are called in this process."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from unittest import mock

from project import Project, Ran

from rowcall.cli import run_verb


class QuickProject(Project):
    """``run`` is a process of its own, since it takes signals; all other verbs are called here, as ``rowcall`` does."""

    async def run(self, *args):
        if args[0] == "run":
            return await super().run(*args)
        return await asyncio.to_thread(self._call, args)

    async def process(self, *args):
        """The verb in a process of its own."""
        return await super().run(*args)

    def _call(self, args):
        out, err = io.StringIO(), io.StringIO()
        env = {name: value for name, value in os.environ.items() if not name.startswith("ROWCALL_")} | self.env
        with (
            chdir(self.folder),
            mock.patch.dict(os.environ, env, clear=True),
            mock.patch.object(sys, "argv", ["rowcall", *args]),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            code = run_verb()
        assert code != 70, err.getvalue()
        return Ran(int(code), out.getvalue(), err.getvalue())
