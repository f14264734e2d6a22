"""What concerns more than one key of a config, or the inside of a tree.

The rules look at the file as it was read, so that their faults are found together with those of the models.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, time
from pathlib import PurePath
from typing import Any

from rowcall.config.error_text import ConfigFault, name_of
from rowcall.config.export_formats import EXPORT_SUFFIXES
from rowcall.config.key_lines import KeyPath
from rowcall.config.preset_defaults import PRESET_DEFAULTS, PresetDefaults
from rowcall.config.reference_checks import broken_references
from rowcall.config.references import SECRET_HEADERS, is_reference
from rowcall.config.secret import Secret
from rowcall.config.units import quoted

SettingsTree = dict[str, Any]

_INTEGERS = range(-(2**63), 2**64)  # what the wire can write
_TABLES_OF_HEADERS = (("api", "headers"), ("request", "headers"))


def broken_rules(data: SettingsTree) -> Iterator[ConfigFault]:
    """Every fault that no single model can see."""
    yield from _beside_handler(data) if "handler" in data else _missing_for_preset(data)
    yield from _input_store(data)
    yield from _table_name(data)
    yield from _export_format(data)
    yield from _batch_lines(data)
    yield from _unknown_cost(data)
    yield from _key_without_certificate(data)
    for path in _TABLES_OF_HEADERS:
        yield from _headers(path, table_in(data, *path))
    for name, value in table_in(data, "request", "params").items():
        yield from _parameter(("request", "params", name), value)
    yield from _tree(("request", "body"), table_in(data, "request").get("body"))
    for table in ("api", "request", "store"):
        yield from broken_references(data.get(table), (table,))


def table_in(data: SettingsTree, *path: str) -> SettingsTree:
    """The table at a path; an empty one where there is none, or something else."""
    for name in path:
        inner = data.get(name)
        data = inner if isinstance(inner, dict) else {}
    return data


_MADE_BY_HANDLER = (
    ("request",),
    ("group",),
    *(("response", key) for key in ("extract", "parse", "schema", "assert", "on_truncated")),
)


def _beside_handler(data: SettingsTree) -> Iterator[ConfigFault]:
    for path in _MADE_BY_HANDLER:
        if path[-1] in table_in(data, *path[:-1]):
            what = f"{name_of(path)} means nothing beside [handler], which makes its requests and results by itself"
            yield ConfigFault(path, what, f"take {name_of(path)} or [handler] out")


def _missing_for_preset(data: SettingsTree) -> Iterator[ConfigFault]:
    api, request = table_in(data, "api"), table_in(data, "request")
    preset = api.get("preset")
    if preset in ("http", "openai-batch") and "base_url" not in api:
        yield ConfigFault(("api",), "api.base_url is missing", 'base_url = "https://api.example.com/v1"')
    place = PRESET_DEFAULTS.get(str(preset), PresetDefaults())
    if "body" not in request:
        if place.sample and not (preset == "mock" and "path" in request):
            yield ConfigFault(("request",), f'request.body is missing; preset = "{preset}" sends one', place.sample)
    elif "path" not in request:
        yield from _missing_in_body(request["body"], place)


def _missing_in_body(body: Any, place: PresetDefaults) -> Iterator[ConfigFault]:
    if isinstance(body, dict) and not is_reference(body):
        for name in place.needs:
            if name not in body:
                yield ConfigFault(("request", "body"), f"request.body.{name} is missing", place.sample)


def _batch_lines(data: SettingsTree) -> Iterator[ConfigFault]:
    """What an OpenAI batch file says by itself, and what only its answers have."""
    lines, output = table_in(data, "api").get("preset") == "openai-batch", table_in(data, "output")
    if lines and table_in(data, "input").get("format") != "openai-batch":
        what = 'api.preset = "openai-batch" sends the lines of an OpenAI batch file'
        yield ConfigFault(("api", "preset"), what, '[input] format = "openai-batch"')
    for path in _MADE_BY_HANDLER if lines else ():
        if path[-1] in table_in(data, *path[:-1]):
            what = f'{name_of(path)} means nothing beside preset = "openai-batch": each line says what it sends'
            yield ConfigFault(path, what, f"take {name_of(path)} out")
    if output.get("format") == "openai-batch-output" and not lines:
        what = 'output.format = "openai-batch-output" is for the lines of an OpenAI batch file'
        yield ConfigFault(("output", "format"), what, '[api] preset = "openai-batch", or another format')
    if output.get("order") == "completion" and output.get("format") != "openai-batch-output":
        what = 'output.order = "completion" is for format = "openai-batch-output"'
        yield ConfigFault(("output", "order"), what, 'order = "input"')


_OF_FILES = ("path", "header", "quoting", "encoding", "sql", "sheet", "format")
_OF_STORES = ("kind", "result")


def _table_name(data: SettingsTree) -> Iterator[ConfigFault]:
    output = table_in(data, "output")
    path, chosen = output.get("path"), output.get("format")
    suffix = PurePath(path).suffix.lower() if isinstance(path, str) else ""
    if "table" in output and (chosen or EXPORT_SUFFIXES.get(suffix)) != "sqlite":
        yield ConfigFault(("output", "table"), "output.table is for a SQLite file", 'path = "answers.db"')


def _input_store(data: SettingsTree) -> Iterator[ConfigFault]:
    """A store or a file is the input, each with its own keys."""
    table, by_store = table_in(data, "input"), "store" in table_in(data, "input")
    for key in (key for key in (_OF_FILES if by_store else _OF_STORES) if key in table):
        other = "beside" if by_store else "without"
        yield ConfigFault(("input", key), f"input.{key} means nothing {other} input.store", f"take {key} out")


def _export_format(data: SettingsTree) -> Iterator[ConfigFault]:
    output = table_in(data, "output")
    path = output.get("path")
    if not isinstance(path, str) or path in ("", "-") or "format" in output:
        return
    if PurePath(path).suffix.lower() not in EXPORT_SUFFIXES:
        what = f"output.path {quoted(path)} does not say in which format"
        yield ConfigFault(
            ("output", "path"), what, f"a name that ends in {', '.join(EXPORT_SUFFIXES)}, or format = ..."
        )


_SAYS_COST = ("from", "input", "output", "per_call")


def _unknown_cost(data: SettingsTree) -> Iterator[ConfigFault]:
    price = table_in(data, "price")
    if "max_cost" in table_in(data, "stop") and not any(name in price for name in _SAYS_COST):
        what = "stop.max_cost needs to know what a call costs"
        remedy = '[price] with input = ... and output = ... in dollars per million tokens, or from = "genai-prices"'
        yield ConfigFault(("stop", "max_cost"), what, remedy)


def _key_without_certificate(data: SettingsTree) -> Iterator[ConfigFault]:
    api = table_in(data, "api")
    if "client_key" in api and "client_cert" not in api:
        yield ConfigFault(
            ("api", "client_key"), "api.client_key is the key of a certificate", "name it: client_cert = ..."
        )


def _headers(path: KeyPath, table: SettingsTree) -> Iterator[ConfigFault]:
    for name, value in table.items():
        here = (*path, name)
        if not isinstance(value, str | Secret) and not is_reference(value):
            yield ConfigFault(here, f"{name_of(here)} must be text in quotes or a reference")
        elif name.lower() in SECRET_HEADERS and isinstance(value, str) and "{{" not in value:
            yield ConfigFault(
                here,
                f"{name_of(here)} must not be written out: whoever sees the file sees the secret",
                f'{name} = {{ env = "NAME" }}; the variable holds the whole value of the header',
            )


def _parameter(path: KeyPath, value: Any) -> Iterator[ConfigFault]:
    items = value if isinstance(value, list) else [value]
    if any(isinstance(item, dict | list) and not is_reference(item) for item in items):
        yield ConfigFault(path, f"{name_of(path)} must be text, a number, true, false, a reference or a list of these")
    else:
        yield from _tree(path, value)


def _tree(path: KeyPath, node: Any) -> Iterator[ConfigFault]:
    """What JSON cannot hold: dates, infinite numbers, integers beyond 64 bits."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield from _tree((*path, name), value)
    elif isinstance(node, list):
        for number, item in enumerate(node):
            yield from _tree((*path, number), item)
    elif isinstance(node, date | time):
        yield ConfigFault(path, f"{name_of(path)} is a date or time, which JSON does not have", f'in quotes: "{node}"')
    elif _is_endless(node):
        yield ConfigFault(path, f"{name_of(path)} is a number that JSON does not have: {quoted(node)}")


def _is_endless(node: Any) -> bool:
    if isinstance(node, float):
        return not math.isfinite(node)
    return isinstance(node, int) and node not in _INTEGERS
