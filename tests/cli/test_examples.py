"""Every example runs as it stands, offline, with one command."""

from __future__ import annotations

import csv
import json
import math
import shutil
from pathlib import Path

import pytest
from project import Project

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def examples(tmp_path):
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("*.db*", "labels.csv"))
    return Project(tmp_path, None)


async def run(examples, name, *args):
    ran = await examples.run("run", f"examples/{name}/config.toml", *args)
    assert ran.code == 0, ran.err
    return examples.folder / "examples" / name


async def test_reviews(examples):
    """The reviews are labelled, and the mock's score stands beside the human one."""
    folder = await run(examples, "reviews", "-n", "60")
    with (folder / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3708
    assert list(rows[0]) == ["id", "score", "text", "label", "mock_score"]
    assert {row["label"] for row in rows[:60]} <= {"positive", "neutral", "negative"}


async def test_lookup(examples):
    """Every word is looked up; one that is unknown is an answer without a value."""
    folder = await run(examples, "lookup")
    with (folder / "valences.csv").open(newline="") as file:
        valence = {row["word"]: row["valence"] for row in csv.DictReader(file)}
    assert float(valence["excellent"]) > 0 > float(valence["terrible"])
    assert valence["zyzzyva"] == ""


async def test_handler(examples):
    """A function of one's own judges each sentence, and asks again about the neutral ones."""
    folder = await run(examples, "handler", "-n", "60")
    with (folder / "judged.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))[:60]
    assert {row["label"] for row in rows} <= {"positive", "neutral", "negative"}
    assert all(row["label"] == "neutral" for row in rows if row["because"])


async def test_embeddings(examples):
    """Every sentence has a vector of length 1, and like sentences point alike."""
    folder = await run(examples, "embeddings", "-n", "80")
    rows = [json.loads(line) for line in (folder / "vectors.jsonl").read_text().splitlines()]
    vectors = [row["vector"] for row in rows if row["vector"]]
    assert len(vectors) == 80
    assert all(math.isclose(math.hypot(*vector), 1, abs_tol=1e-3) for vector in vectors if any(vector))
