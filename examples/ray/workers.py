"""Keeps N rowcall workers running on a Ray cluster until a batch job is finished.

    rowcall enqueue config.toml         # with [store] path = "postgresql://user@host/database"
    python workers.py 8                 # with ROWCALL_STORE set to that URL, on a machine of the cluster

Ray only decides where the workers run: it starts each of them on some node, and starts it again, perhaps on another
node, if it dies. Everything else is between the workers and the store, as it is on one machine: who takes over the
records of a dead worker, and how fast all of them call together. Words after the number go to each ``rowcall work``,
as in ``workers.py 8 --name reviews --env OPENAI_API_KEY``. The config in the store may use the variables that ``--env``
names; if it has a handler or a command, write ``--trust-store``.

Every node needs ``pip install 'rowcall[postgres]'`` and the variables for the API keys that the config names, since
keys are never in the store. Variables that begin with ROWCALL_ are passed on from here. Tested with Ray 2.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys

import ray

PR_SET_PDEATHSIG = 1  # prctl(2)


def end_with_parent() -> None:
    """Have the kernel send this worker SIGTERM if its Ray actor dies, so that it stops cleanly (Linux only)."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


@ray.remote(num_cpus=0.5, max_restarts=-1, max_task_retries=-1)  # a worker mostly waits for the network
class Worker:
    """One worker, on whatever node Ray chooses."""

    def work(self, words: list[str], environment: dict[str, str]) -> int:
        """Run ``rowcall work`` until it ends, and return its exit code."""
        command = [sys.executable, "-m", "rowcall", "work", "--no-progress", *words]
        code = subprocess.call(command, env=os.environ | environment, preexec_fn=end_with_parent)
        if code < 0:  # killed by a signal: fail the actor too, so that Ray starts it again
            os._exit(1)
        return code


def main(count: int, words: list[str]) -> int:
    """Run ``count`` workers and return the highest of their exit codes."""
    ray.init()
    environment = {name: value for name, value in os.environ.items() if name.startswith("ROWCALL_")}
    workers = [Worker.remote() for _ in range(count)]
    return max(ray.get([worker.work.remote(words, environment) for worker in workers]))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
