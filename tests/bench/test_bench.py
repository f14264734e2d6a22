"""The measuring itself works; its figures are no test's business."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parent


@pytest.mark.slow
def test_it_measures(tmp_path):
    """Each part prints its table, rowcall in it."""
    words = [
        sys.executable,
        BENCH,
        "--rounds",
        "1",
        "--records",
        "50",
        "--most",
        "3",
        "--no-peer",
        "--folder",
        tmp_path,
    ]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    heads = [table.splitlines()[0] for table in ran.stdout.strip().split("\n\n")]
    wanted = (
        "server answers after 50 ms",
        "server answers at once",
        "bring in",
        "claim + settle",
        "start of a verb",
        "2 processes",
    )
    assert [word for word, head in zip(wanted, heads, strict=True) if word not in head] == []
    assert "rowcall run" in ran.stdout
