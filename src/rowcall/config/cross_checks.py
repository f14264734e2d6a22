"""Checks that concern several keys of a config, or the inside of a tree such as ``[request.body]``.

They look at the file as it was read, not at the models, so that all errors of a config are reported together.
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

_INTEGERS = range(-(2**63), 2**64)  # the integers that orjson can write
_TABLES_OF_HEADERS = (("api", "headers"), ("request", "headers"))


def broken_rules(data: SettingsTree) -> Iterator[ConfigFault]:
    """Yield every error that no single model can find."""
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
    """Return the table at a path; an empty one if there is none, or something that is not a table."""
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
            what = f"{name_of(path)} has no effect with [handler], which makes its own requests and results"
            yield ConfigFault(path, what, f"remove {name_of(path)} or [handler]")


def _missing_for_preset(data: SettingsTree) -> Iterator[ConfigFault]:
    api, request = table_in(data, "api"), table_in(data, "request")
    preset = api.get("preset")
    if preset in ("http", "openai-batch") and "base_url" not in api:
        yield ConfigFault(("api",), "api.base_url is missing", 'base_url = "https://api.example.com/v1"')
    defaults = PRESET_DEFAULTS.get(str(preset), PresetDefaults())
    if "body" not in request:
        if defaults.sample and not (preset == "mock" and "path" in request):
            yield ConfigFault(("request",), f'request.body is missing; preset = "{preset}" needs one', defaults.sample)
    elif "path" not in request:
        yield from _missing_in_body(request["body"], defaults)


def _missing_in_body(body: Any, defaults: PresetDefaults) -> Iterator[ConfigFault]:
    if isinstance(body, dict) and not is_reference(body):
        for name in defaults.needs:
            if name not in body:
                yield ConfigFault(("request", "body"), f"request.body.{name} is missing", defaults.sample)


def _batch_lines(data: SettingsTree) -> Iterator[ConfigFault]:
    """Check the settings for OpenAI batch files: which ones the lines replace, and which only they allow."""
    lines, output = table_in(data, "api").get("preset") == "openai-batch", table_in(data, "output")
    if lines and table_in(data, "input").get("format") != "openai-batch":
        what = 'api.preset = "openai-batch" needs an OpenAI batch file as its input'
        yield ConfigFault(("api", "preset"), what, '[input] format = "openai-batch"')
    for path in _MADE_BY_HANDLER if lines else ():
        if path[-1] in table_in(data, *path[:-1]):
            what = f'{name_of(path)} has no effect with preset = "openai-batch": each line says what it sends'
            yield ConfigFault(path, what, f"remove {name_of(path)}")
    if output.get("format") == "openai-batch-output" and not lines:
        what = 'output.format = "openai-batch-output" works only with preset = "openai-batch"'
        yield ConfigFault(("output", "format"), what, '[api] preset = "openai-batch", or another format')
    if output.get("order") == "completion" and output.get("format") != "openai-batch-output":
        what = 'output.order = "completion" works only with format = "openai-batch-output"'
        yield ConfigFault(("output", "order"), what, 'order = "input"')


_OF_FILES = ("path", "header", "quoting", "encoding", "sql", "sheet", "format")
_OF_STORES = ("kind", "result")


def _table_name(data: SettingsTree) -> Iterator[ConfigFault]:
    output = table_in(data, "output")
    path, chosen = output.get("path"), output.get("format")
    suffix = PurePath(path).suffix.lower() if isinstance(path, str) else ""
    if "table" in output and (chosen or EXPORT_SUFFIXES.get(suffix)) != "sqlite":
        yield ConfigFault(("output", "table"), "output.table works only with a SQLite file", 'path = "answers.db"')


def _input_store(data: SettingsTree) -> Iterator[ConfigFault]:
    """Check that the keys of ``[input]`` belong to its kind of input: a file, or the store of another job."""
    table, by_store = table_in(data, "input"), "store" in table_in(data, "input")
    for key in (key for key in (_OF_FILES if by_store else _OF_STORES) if key in table):
        other = "with" if by_store else "without"
        yield ConfigFault(("input", key), f"input.{key} has no effect {other} input.store", f"remove {key}")


def _export_format(data: SettingsTree) -> Iterator[ConfigFault]:
    output = table_in(data, "output")
    path = output.get("path")
    if not isinstance(path, str) or path in ("", "-") or "format" in output:
        return
    if PurePath(path).suffix.lower() not in EXPORT_SUFFIXES:
        what = f"output.path {quoted(path)} does not say which format to write"
        yield ConfigFault(
            ("output", "path"), what, f"use a name that ends in {', '.join(EXPORT_SUFFIXES)}, or set format = ..."
        )


_SAYS_COST = ("from", "input", "output", "per_call")


def _unknown_cost(data: SettingsTree) -> Iterator[ConfigFault]:
    price = table_in(data, "price")
    if "max_cost" in table_in(data, "stop") and not any(name in price for name in _SAYS_COST):
        what = "stop.max_cost needs the price of a call"
        remedy = '[price] with input = ... and output = ... in dollars per million tokens, or from = "genai-prices"'
        yield ConfigFault(("stop", "max_cost"), what, remedy)


def _key_without_certificate(data: SettingsTree) -> Iterator[ConfigFault]:
    api = table_in(data, "api")
    if "client_key" in api and "client_cert" not in api:
        yield ConfigFault(("api", "client_key"), "api.client_key needs its certificate", "add client_cert = ...")


def _headers(path: KeyPath, table: SettingsTree) -> Iterator[ConfigFault]:
    for name, value in table.items():
        here = (*path, name)
        if not isinstance(value, str | Secret) and not is_reference(value):
            yield ConfigFault(here, f"{name_of(here)} must be text in quotes or a reference")
        elif name.lower() in SECRET_HEADERS and isinstance(value, str) and "{{" not in value:
            yield ConfigFault(
                here,
                f"{name_of(here)} must not be written in the file: anybody who can read the file could read it",
                f'{name} = {{ env = "NAME" }}; the variable contains the whole value of the header',
            )


def _parameter(path: KeyPath, value: Any) -> Iterator[ConfigFault]:
    items = value if isinstance(value, list) else [value]
    if any(isinstance(item, dict | list) and not is_reference(item) for item in items):
        yield ConfigFault(path, f"{name_of(path)} must be text, a number, true, false, a reference, or a list of these")
    else:
        yield from _tree(path, value)


def _tree(path: KeyPath, node: Any) -> Iterator[ConfigFault]:
    """Find what JSON cannot represent: dates, infinite numbers, integers beyond 64 bits."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield from _tree((*path, name), value)
    elif isinstance(node, list):
        for number, item in enumerate(node):
            yield from _tree((*path, number), item)
    elif isinstance(node, date | time):
        yield ConfigFault(path, f"{name_of(path)} is a date or time, which JSON does not have", f'in quotes: "{node}"')
    elif (isinstance(node, float) and not math.isfinite(node)) or (isinstance(node, int) and node not in _INTEGERS):
        yield ConfigFault(path, f"{name_of(path)} is a number that JSON does not have: {quoted(node)}")
