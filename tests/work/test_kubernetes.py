"""How the example for Kubernetes starts a worker."""

from __future__ import annotations

import asyncio
import re
import signal
from pathlib import Path
from textwrap import dedent

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples/kubernetes/workers.yaml"
WORKER = "rowcall work --no-progress"
HEARING = "trap 'sleep 0.3; echo left in good order; exit 143' TERM; echo ready; while :; do sleep 0.05; done"


async def start(worker):
    """The shell of the example, with something else in the place of the worker."""
    text = EXAMPLE.read_text()
    script = dedent(re.search(r"- \|.*\n((?: {14}.*\n)+)", text)[1]).replace(WORKER, f'sh -c "{worker}"')
    return await asyncio.create_subprocess_exec("sh", "-c", script, stdout=asyncio.subprocess.PIPE)


@pytest.mark.parametrize(("code", "is_over"), [(0, True), (1, True), (2, False), (3, False)])
async def test_a_worker_that_ends(code, is_over):
    """A worker that has nothing left is started no more, one that stopped is."""
    shell = await start(f"exit {code}")
    assert (await shell.wait() == 0) is is_over


async def test_a_pod_that_is_ended():
    """SIGTERM reaches the worker, and the pod is there until it has let its calls end."""
    shell = await start(HEARING)
    assert await shell.stdout.readline() == b"ready\n"
    shell.send_signal(signal.SIGTERM)
    assert await shell.stdout.read() == b"left in good order\n"
    assert await shell.wait() != 0
