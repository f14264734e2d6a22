"""Turns what pydantic finds wrong in a config into plain messages."""

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
    ("api",): f"[api] names the API: {_PRESETS}",
    ("api", "preset"): _PRESETS,
    ("api", "api_key"): 'api_key = { env = "NAME" }, { file = "key.txt" } or { command = "pass show key" }',
    ("api", "proxy"): 'proxy = { env = "NAME" }; the variable contains http://user:password@host:port',
    ("store", "path"): 'path = "reviews.db", or { env = "DATABASE_URL" }',
    ("response", "schema"): 'schema = { file = "answer.schema.json" }, or the JSON Schema itself as a table',
}
"""What to write instead, by key."""

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
"""The message for each error type of pydantic (https://docs.pydantic.dev/latest/errors/validation_errors/)."""

_WITHOUT_VALUE = ("missing", "string_too_short", "too_short", "value_error")
"""Error types whose message does not repeat the value."""


@dataclass(frozen=True, slots=True)
class ConfigFault:
    """One error in a config: its key, what is wrong, and what to do."""

    path: KeyPath
    what: str
    remedy: str = ""


def explain(error: ValidationError, model: type[BaseModel]) -> list[ConfigFault]:
    """Return what pydantic found, in the words of the config file."""
    return [_fault(details, model) for details in error.errors(include_url=False)]


def name_of(path: KeyPath) -> str:
    """Return a key as messages write it: ``pace.concurrency``; a table in brackets."""
    return f"[{path[0]}]" if len(path) == 1 and path[0] != "name" else dotted(path)


def is_secret(path: KeyPath) -> bool:
    """Return whether the value there may be a secret, so that no message may show it."""
    return any(path[: len(secret)] == secret for secret in _SECRET_PATHS)


def _fault(details: ErrorDetails, model: type[BaseModel]) -> ConfigFault:
    path, kind = details["loc"], details["type"]
    if kind == "extra_forbidden":
        return _unknown_key(path, details["input"], model)
    words = _WORDS[kind](details.get("ctx", {})) if kind in _WORDS else f"is not valid: {details['msg']}"
    shown = "" if kind in _WITHOUT_VALUE or is_secret(path) else f", not {quoted(details['input'])}"
    remedy = "" if kind == "literal_error" else _REMEDIES.get(path, "")
    return ConfigFault(path, f"{name_of(path)} {words}{shown}", remedy)


def _unknown_key(path: KeyPath, value: Any, model: type[BaseModel]) -> ConfigFault:
    outer, key = path[:-1], str(path[-1])
    if isinstance(value, dict):
        what = f"[{dotted(path)}] is not a table of the config"
    else:
        what = f'"{key}" is not a setting ' + (f"of [{dotted(outer)}]" if outer else "outside of tables")
    return ConfigFault(path, what, _suggestion(outer, key, dict(_keys_by_table(model))))


def _suggestion(outer: KeyPath, key: str, known: dict[KeyPath, list[str]]) -> str:
    """Suggest the most similar key of this table, the table that has this key, or all keys of this table."""
    close = get_close_matches(key, known[outer], n=1)
    if close:
        return f'did you mean "{close[0]}"?'
    home = next((table for table, keys in known.items() if key in keys), None)
    return f"it belongs in [{dotted(home)}]" if home else f"the settings are: {', '.join(known[outer])}"


def _keys_by_table(model: type[BaseModel], path: KeyPath = ()) -> Iterator[tuple[KeyPath, list[str]]]:
    """Yield the keys of a model and of the models inside it."""
    fields = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    yield path, list(fields)
    for name, annotation in fields.items():
        for inner in (annotation, *get_args(annotation)):  # an optional table is annotated ``Table | None``
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                yield from _keys_by_table(inner, (*path, name))
