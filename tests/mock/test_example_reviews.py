from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import fastjsonschema

from rowcall.config import load
from rowcall.mock.sentiment import sentiment

EXAMPLE = Path(__file__).parents[2] / "examples" / "reviews"


def test_config_is_sound():
    """The example's config loads, and needs neither a key nor an address."""
    config = load(EXAMPLE / "config.toml")
    assert (config.api.preset, config.api.api_key, config.api.base_url) == ("mock", None, None)
    assert set(config.output.columns).isdisjoint(config.input.header)


def test_schema_takes_what_the_mock_answers():
    """The example's schema takes the mock's judgement of each of its sentences, and refuses what is none."""
    valid = fastjsonschema.compile(json.loads((EXAMPLE / "label.schema.json").read_text()))
    for line in (EXAMPLE / "reviews.tsv").read_bytes().decode().split("\r\n")[:-1]:
        valid(asdict(sentiment(line.split("\t")[2])))
    for wrong in [{}, {"label": "good", "score": 1}, {"label": "neutral", "score": 5}]:
        try:
            valid(wrong)
        except fastjsonschema.JsonSchemaValueException:
            continue
        raise AssertionError(f"{wrong} was taken")
