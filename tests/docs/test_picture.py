"""The README's picture shows what the command says today."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path

import pytest
from project import Project

ROOT = Path(__file__).parents[2]
DRAWN = (ROOT / "examples" / "run.svg").read_text()
DEMO = "examples/reviews"
FAST = [
    argument
    for setting in ("latency=1ms", "errors=0", "rate_limited=0")
    for argument in ("--set", f"api.mock.{setting}")
]


def plain(line):
    """A line without its numbers, which differ from run to run, and without the statuses that were met."""
    return re.sub(r"\d[\d,.]*(ms|s)?", "N", re.sub(r" +\(2.*\)$", "", line)).strip()


def drawn_lines():
    """The lines of the picture."""
    lines: dict[float, str] = {}
    for y, text in re.findall(r'<text class="run-r\d+"[^>]* y="([\d.]+)"[^>]*>([^<\n]+)', DRAWN):
        lines[float(y)] = lines.get(float(y), "") + html.unescape(text).replace("\xa0", " ")
    return {plain(line) for line in lines.values()}


@pytest.fixture
def demo(tmp_path):
    shutil.copytree(ROOT / DEMO, tmp_path / DEMO, ignore=shutil.ignore_patterns("*.db*", "labels.csv"))
    return Project(tmp_path, None)


async def test_the_picture_shows_what_a_run_prints(demo):
    """Where a message changes, ``python tests/docs/picture.py`` draws the picture again."""
    begun = await demo.run("run", f"{DEMO}/config.toml", "-n", "100", *FAST)
    ended = await demo.run("run", f"{DEMO}/config.toml", *FAST)
    resume = begun.err.splitlines()[-1].split(" --set")[0]
    assert plain(resume) in drawn_lines()
    said = ended.err.splitlines()
    summary = next(number for number, line in enumerate(said) if "finished" in line)
    assert {plain(line) for line in (*said[:2], *said[summary:])} <= drawn_lines()  # between: progress, if it is slow
