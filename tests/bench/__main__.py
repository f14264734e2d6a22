"""Measures rowcall on this machine and prints the figures as Markdown: ``python tests/bench [--help]``."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import calls
import claims
import rows
import startup

import processes

PARTS = ("calls", "rows", "claims", "startup", "processes")


def arguments():
    parser = argparse.ArgumentParser(prog="python tests/bench", description=__doc__.split(":")[0] + ".")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)}; left out: all")
    parser.add_argument("--rounds", type=int, default=5, help="each figure is the median of so many, 5 (once at 10^6)")
    parser.add_argument(
        "--records", type=int, default=5000, help="records of a run in calls, 5000; in processes 4 times"
    )
    parser.add_argument("--most", type=int, default=6, choices=[3, 4, 5, 6, 7], help="rows and claims up to 10^N, 6")
    parser.add_argument(
        "--no-peer", action="store_true", help="leave out async-batch-llm, which needs an index of packages"
    )
    parser.add_argument(
        "--folder", type=Path, help="where stores are written, on the disk that is meant; the usual one"
    )
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    return asked


def main():
    asked = arguments()
    parts = asked.parts or PARTS
    sizes = [10**power for power in (3, 5, 6, 7) if power <= asked.most]
    with tempfile.TemporaryDirectory(dir=asked.folder, prefix="rowcall-bench-") as name:
        folder = Path(name)
        benches = {
            "calls": lambda: calls.bench(folder, asked.rounds, asked.records, None if asked.no_peer else peer(folder)),
            "rows": lambda: rows.bench(folder, sizes, asked.rounds),
            "claims": lambda: claims.bench(folder, sizes, asked.rounds),
            "startup": lambda: startup.bench(folder, asked.rounds),
            "processes": lambda: processes.bench(folder, asked.rounds, 4 * asked.records),
        }
        for part in PARTS:
            if part in parts:
                print(benches[part](), end="\n\n", flush=True)


def peer(folder):
    """The interpreter of an environment with async-batch-llm in it; None where it cannot be made."""
    venv.create(folder / "peer", with_pip=True)
    python = folder / "peer" / "bin" / "python"
    made = subprocess.run([python, "-m", "pip", "install", "-q", calls.PEER], capture_output=True, text=True)
    if made.returncode == 0:
        return python
    print(f"async-batch-llm is left out, it cannot be installed: {made.stderr.strip()[-300:]}", file=sys.stderr)
    return None


if __name__ == "__main__":
    main()
