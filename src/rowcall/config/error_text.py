"""Faults of a config in plain words: what pydantic found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from rowcall.config.key_lines import KeyPath, dotted
from rowcall.config.preset_defaults import PRESET_DEFAULTS
from rowcall.config.units import quoted

_SECRET_PATHS = (("api", "api_key"), ("api", "proxy"), ("api", "headers"), ("request", "headers"), ("store", "path"))

_PRESETS = 'preset = "{}" or "{}"'.format('", "'.join(list(PRESET_DEFAULTS)[:-1]), list(PRESET_DEFAULTS)[-1])
_REMEDIES: dict[KeyPath, str] = {
    ("input",): '[input] names the records: path = "records.csv"',
    ("input", "path"): 'path = "records.csv", or "-" for standard input',
    ("api",): f"[api] says who is called: {_PRESETS}",
    ("api", "preset"): _PRESETS,
    ("api", "api_key"): 'api_key = { env = "NAME" }, { file = "key.txt" } or { command = "pass show key" }',
    ("api", "proxy"): 'proxy = { env = "NAME" }; the variable holds http://user:password@host:port',
    ("store", "path"): 'path = "reviews.db", or { env = "DATABASE_URL" }',
    ("response", "schema"): 'schema = { file = "answer.schema.json" }, or the JSON Schema itself as a table',
}
"""What to write, by key."""

_WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "missing": lambda context: "is missing",
    "string_type": lambda context: "must be text in quotes",
    "int_type": lambda context: "must be a whole number",
    "float_type": lambda context: "must be a number",
    "bool_type": lambda context: "must be true or false",
    "tuple_type": lambda context: "must be a list",
    "dict_type": lambda context: "must be a table",
    "model_type": lambda context: "must be a table",
    "literal_error": lambda context: f"must be {context['expected']}".replace("'", '"'),
    "greater_than": lambda context: f"must be more than {context['gt']:g}",
    "greater_than_equal": lambda context: f"must be {context['ge']} or more",
    "less_than_equal": lambda context: f"must be {context['le']} or less",
    "string_too_short": lambda context: "must not be empty",
    "too_short": lambda context: "must not be empty",
    "value_error": lambda context: str(context["error"]),
}
"""What each of pydantic's errors says here (https://docs.pydantic.dev/latest/errors/validation_errors/)."""

_SAY_ENOUGH = ("missing", "string_too_short", "too_short", "value_error")
"""Errors whose words need no value behind them."""


@dataclass(frozen=True, slots=True)
class ConfigFault:
    """One fault: the way to it in the tree, what it is, what to do."""

    path: KeyPath
    what: str
    remedy: str = ""


def explain(error: ValidationError, model: type[BaseModel]) -> list[ConfigFault]:
    """What pydantic found, in the words of the config."""
    return [_fault(details, model) for details in error.errors(include_url=False)]


def name_of(path: KeyPath) -> str:
    """How a message calls a key: ``pace.concurrency``; a table by its brackets."""
    return f"[{path[0]}]" if len(path) == 1 and path[0] != "name" else dotted(path)


def is_secret(path: KeyPath) -> bool:
    """Whether a secret may stand there, so that its value is shown in no message."""
    return any(path[: len(secret)] == secret for secret in _SECRET_PATHS)


def _fault(details: ErrorDetails, model: type[BaseModel]) -> ConfigFault:
    path, kind = details["loc"], details["type"]
    if kind == "extra_forbidden":
        return _unknown_key(path, details["input"], model)
    words = _WORDS[kind](details.get("ctx", {})) if kind in _WORDS else f"is wrong: {details['msg']}"
    shown = "" if kind in _SAY_ENOUGH or is_secret(path) else f", not {quoted(details['input'])}"
    remedy = "" if kind == "literal_error" else _REMEDIES.get(path, "")
    return ConfigFault(path, f"{name_of(path)} {words}{shown}", remedy)


def _unknown_key(path: KeyPath, value: Any, model: type[BaseModel]) -> ConfigFault:
    outer, key = path[:-1], str(path[-1])
    if isinstance(value, dict):
        what = f"unknown table [{dotted(path)}]"
    else:
        what = f'unknown key "{key}" ' + (f"in [{dotted(outer)}]" if outer else "above the first table")
    return ConfigFault(path, what, _suggestion(outer, key, dict(_keys_by_table(model))))


def _suggestion(outer: KeyPath, key: str, known: dict[KeyPath, list[str]]) -> str:
    """The key of this table that comes closest, the table that has this key, or all that this table knows."""
    close = get_close_matches(key, known[outer], n=1)
    if close:
        return f'did you mean "{close[0]}"?'
    home = next((table for table, keys in known.items() if key in keys), None)
    return f"it belongs in [{dotted(home)}]" if home else f"known here: {', '.join(known[outer])}"


def _keys_by_table(model: type[BaseModel], path: KeyPath = ()) -> Iterator[tuple[KeyPath, list[str]]]:
    """The keys of a model and of the models inside it."""
    fields = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    yield path, list(fields)
    for name, annotation in fields.items():
        for inner in (annotation, *get_args(annotation)):  # a table that may be left out is ``Table | None``
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                yield from _keys_by_table(inner, (*path, name))
