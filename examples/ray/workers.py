"""Have Ray keep N rowcall workers at work on a cluster until nothing of a batch job is left.

    rowcall enqueue config.toml         # with [store] path = "postgresql://user@host/database"
    python workers.py 8                 # with ROWCALL_STORE = that address, on a machine of the cluster

Ray only places the workers: it starts each of them on some node, and starts it again, perhaps on another one, where it
dies. What a dead one had in hand, who calls it then, and how fast all of them call together, is between the workers and
the store, as on one machine. Words after the number go to each ``rowcall work``: ``workers.py 8 --name reviews``.

Every node needs ``pip install 'rowcall[postgres]'`` and the variables with keys that the config names, since keys are
never in the store; what is called ROWCALL_... is taken along from here. Tested with Ray 2.
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
    """Let a worker whose actor is gone end its calls and give back the rest (Linux)."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


@ray.remote(num_cpus=0.5, max_restarts=-1, max_task_retries=-1)  # a worker waits more than it works
class Place:
    """A place in the cluster for one worker."""

    def work(self, words: list[str], environment: dict[str, str]) -> int:
        """Run ``rowcall work`` to its end; returns its exit code."""
        command = [sys.executable, "-m", "rowcall", "work", "--no-progress", *words]
        code = subprocess.call(command, env=os.environ | environment, preexec_fn=end_with_parent)
        if code < 0:  # it was killed; so Ray is to start both again
            os._exit(1)
        return code


def main(count: int, words: list[str]) -> int:
    """The highest exit code of all workers."""
    ray.init()
    environment = {name: value for name, value in os.environ.items() if name.startswith("ROWCALL_")}
    places = [Place.remote() for _ in range(count)]
    return max(ray.get([place.work.remote(words, environment) for place in places]))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
