import re
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from rowcall.config import Config, load

EXAMPLE = Path(__file__).parents[2] / "config.example.toml"
REQUIRED = """\
[input]
path = "reviews.csv"
[api]
preset = "openai"
[request.body]
model = "gpt-5-mini"
messages = [{ role = "user", content = "Is this positive or negative?\\n\\n{{ row.text }}" }]
"""
OF_OTHERS = ("store = ", "kind = ", "result = ", "table = ")  # what these belong to is not what the example has
OFF = re.compile(r"^# (?=\[[a-z.]+\]|[A-Za-z_-]+ = )", re.MULTILINE)


@pytest.fixture
def load_text(tmp_path):
    def load_text(text):
        folder = tmp_path / "reviews"
        folder.mkdir(exist_ok=True)
        (folder / "config.toml").write_text(text)
        return load(folder / "config.toml")

    return load_text


def keys(model, path=()):
    """Every key of a model and of the models in it."""
    for name, field in model.model_fields.items():
        here = (*path, field.alias or name)
        tables = [kind for kind in (field.annotation, *get_args(field.annotation)) if is_table(kind)]
        if tables:
            yield from keys(tables[0], here)
        else:
            yield here


def is_table(kind):
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def named(data, known, path=()):
    """Every key that the data name, as deep as the models go."""
    for name, value in data.items():
        here = (*path, name)
        if isinstance(value, dict) and here not in known:
            yield from named(value, known, here)
        else:
            yield here


def all_on():
    return OFF.sub("", EXAMPLE.read_text())


def without(text, *starts):
    """The text without the lines that begin so; a table goes with all that belongs to it."""
    kept, inside = [], False
    for line in text.splitlines():
        if line.startswith("["):
            inside = line.startswith(starts)
        if not inside and not line.startswith(starts):
            kept.append(line)
    return "\n".join(kept)


def test_the_example_names_every_key_and_no_other():
    """A key that was added, renamed or taken away shows here until the example follows."""
    known = set(keys(Config))
    assert set(named(tomllib.loads(all_on()), known)) == known


def test_what_the_example_says_is_the_default(load_text):
    """The example as it stands is the config that says no more than it must."""
    assert load_text(EXAMPLE.read_text()).settings() == load_text(REQUIRED).settings()


def test_keys_that_are_off_stand_commented_out(load_text):
    """Every key whose default is nothing is commented out in the example, and no other."""
    known = set(keys(Config))
    on = set(named(tomllib.loads(EXAMPLE.read_text()), known))
    off = set(named(tomllib.loads(all_on()), known)) - on
    defaults = load_text(REQUIRED).settings()

    def default(path):
        value = defaults
        for name in path:
            value = value and value[name]  # a table that is off as a whole
        return value

    assert {path for path in known if default(path) in (None, {})} == off


def test_the_example_with_all_keys_on_is_valid(load_text):
    """What stands commented out can be used as it stands."""
    config = load_text(without(all_on(), "[handler]", *OF_OTHERS))
    assert config.input.header == ("id", "score", "text")
    assert config.output_format == "csv"


def test_the_example_with_a_handler_is_valid(load_text):
    """The handler can be used as it stands, in the place of the request."""
    off = ("[request", "[group]", "extract", "parse", "schema", "assert", "on_truncated", *OF_OTHERS)
    config = load_text(without(all_on(), *off))
    assert (config.handler.path, config.handler.columns) == ("tasks.py:label", ("text",))


def test_every_line_of_the_example_explains_itself_in_one_width():
    """The lines fit a terminal."""
    assert max(map(len, EXAMPLE.read_text().splitlines())) <= 120
