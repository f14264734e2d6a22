"""Loads a config: reads the file, applies overrides and derived defaults, and reports every error at once."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rowcall.config.config import Config, SettingOrigin
from rowcall.config.cross_checks import SettingsTree, broken_rules, table_in
from rowcall.config.error_text import explain
from rowcall.config.key_lines import KeyPath, key_lines
from rowcall.config.preset_defaults import PRESET_DEFAULTS, PresetDefaults
from rowcall.model.errors import ConfigError, Problem

_SYNTAX_REMEDIES = {
    "Invalid value": 'put text in quotes: key = "value"; true and false are lower case',
    "Unescaped": "in double quotes a backslash starts an escape; single quotes take the text literally",
    "Cannot overwrite a value": "the key appears twice; remove one",
    "Expected '=' after a key": "write key = value; put a key with spaces or dots in quotes",
}
"""What to do about tomllib's errors, by how their message starts."""


def load(
    path: Path, *, overrides: Mapping[str, Any] | None = None, env_file: Path | None = None, shown: str = ""
) -> Config:
    """Read and check a config file. No reference is followed; see ``Config.resolve``.

    Args:
        path: the config file.
        overrides: settings that replace those of the file, by dotted key: ``{"pace.concurrency": 8}``.
        env_file: file of variables that the environment lacks. None: ``.env`` beside the config file.
        shown: the name of the file in messages, if no person has written it. Empty: its path and line.

    Raises:
        ConfigError: lists every error, in the order of the file.
    """
    written, lines = _read(path)
    overridden = _override(written, overrides or {})
    return _build(written, SettingOrigin(path, lines, overridden, copy.deepcopy(written), env_file, shown))


def compose(settings: SettingsTree, *, name: str, further: Mapping[str, Any]) -> Config:
    """Make a config without a file, checked in the same way. Its paths are relative to the current folder.

    Args:
        settings: the tables of a config file.
        name: the name in messages, instead of a file's.
        further: more settings, by dotted key.

    Raises:
        ConfigError: lists every error.
    """
    _override(settings, further)
    return _build(settings, SettingOrigin(Path(name), {}, (), copy.deepcopy(settings)))


def _read(path: Path) -> tuple[SettingsTree, dict[KeyPath, int]]:
    text = _text(path)
    try:
        return tomllib.loads(text), key_lines(text.replace("\r\n", "\n"))
    except ValueError as error:  # tomllib's own error, and int()'s for more than 4,300 digits
        raise ConfigError(_syntax_problem(path, str(error), text)) from None
    except RecursionError:
        raise ConfigError(Problem(str(path), "is nested too deeply")) from None


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(
            Problem(
                str(path),
                "does not exist",
                "`rowcall init` writes a config to start from, `rowcall init --demo` one that runs at once",
            )
        ) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(Problem(f"{path}:{line}", "is not UTF-8", "save the file as UTF-8")) from None
    except OSError as error:
        remedy = f"name the file: {path / 'config.toml'}" if path.is_dir() else ""
        raise ConfigError(Problem(str(path), f"cannot be read: {error.strerror}", remedy)) from None


def _syntax_problem(path: Path, message: str, text: str) -> Problem:
    """Move the line to the front of tomllib's message, as in ``Invalid value (at line 3, column 7)``."""
    found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
    line, place = (found[2], f"at column {found[3]}") if found else (text.count("\n") + 1, "at the end of the file")
    what = found[1] if found else message.removesuffix(" (at end of document)")
    remedy = next((words for start, words in _SYNTAX_REMEDIES.items() if what.startswith(start)), "")
    return Problem(f"{path}:{line}", f"is not valid TOML {place}: {what}", remedy)


def _override(data: SettingsTree, overrides: Mapping[str, Any]) -> tuple[KeyPath, ...]:
    """Put overrides into the settings; return the keys that were set. One below a value that is not a table is not."""
    return tuple(filter(None, (_put(data, tuple(key.split(".")), value) for key, value in overrides.items())))


def _put(data: SettingsTree, path: tuple[str, ...], value: Any) -> KeyPath | None:
    table: Any = data
    for name in path[:-1]:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            return None
    table[path[-1]] = value
    return path


def _build(data: SettingsTree, origin: SettingOrigin) -> Config:
    faults = list(broken_rules(data))
    try:
        config = Config.model_validate(_with_derived(data, origin.file), context=origin)
    except ValidationError as error:
        faults += explain(error, Config)
    if faults:
        faults.sort(key=lambda fault: origin.line(fault.path))
        problems = (Problem(origin.where(fault.path), fault.what, fault.remedy) for fault in faults)
        raise ConfigError(*problems) from None
    return config


def _with_derived(data: SettingsTree, file: Path) -> SettingsTree:
    """Add the defaults that depend on other settings or on the file's name."""
    name = data.setdefault("name", default_name(file))
    api, request = table_in(data, "api"), table_in(data, "request")
    preset = PRESET_DEFAULTS.get(str(api.get("preset")), PresetDefaults())
    _default(data, "api", "base_url", preset.base_url)
    if "handler" not in data:
        _default(data, "request", "path", preset.path or None)
        _default(data, "request", "method", "GET" if request.get("body") is None else "POST")
    _default(data, "input", "path", table_in(data, "input").get("store"))
    _default(data, "store", "path", f"{name}.db")
    return data


def _default(data: SettingsTree, table: str, key: str, value: Any) -> None:
    """Set a key that the table lacks. A missing table is created, except ``[api]``: that one is reported as missing."""
    if value is not None and (table in data or table != "api") and isinstance(data.setdefault(table, {}), dict):
        data[table].setdefault(key, value)


def default_name(file: Path) -> str:
    """Return the default name of a job: that of the config file, or of its folder for a plain ``config.toml``."""
    path = file.resolve() if file.stem == "config" else file
    chosen = path.parent.name if path.stem == "config" else path.stem
    return re.sub(r"^\W+|[^\w.-]+", "-", chosen).strip("-.")[:100] or "rows"
