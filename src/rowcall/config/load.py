"""From a file to a config: read, overrides on top, derived defaults below, every fault at once."""

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
from rowcall.config.error_text import ConfigFault, explain
from rowcall.config.key_lines import KeyPath, key_lines
from rowcall.config.preset_defaults import PRESET_DEFAULTS, PresetDefaults
from rowcall.model.errors import ConfigError, Problem

_SYNTAX_REMEDIES = {
    "Invalid value": 'text stands in quotes: key = "value"; true and false are lower case',
    "Unescaped": "in double quotes a backslash begins an escape; single quotes take the text as it is",
    "Cannot overwrite a value": "the key stands there twice",
    "Expected '=' after a key": "a line is key = value; a key with spaces or dots in it stands in quotes",
}
"""What to do about tomllib's errors, by their beginning."""


def load(
    path: Path, *, overrides: Mapping[str, Any] | None = None, env_file: Path | None = None, shown: str = ""
) -> Config:
    """Read a config file and check all of it.

    Nothing is called and no reference is followed; see ``Config.resolve``.

    Args:
        path: the config file.
        overrides: settings that go before those of the file, by dotted key: ``{"pace.concurrency": 8}``.
        env_file: where variables are looked up that the environment does not have; None: ``.env`` beside the file.
        shown: what messages call the file, which no person has written.

    Raises:
        ConfigError: every fault, in the order of the file.
    """
    written, lines = _read(path)
    overridden = _override(written, overrides or {})
    return _build(written, SettingOrigin(path, lines, overridden, copy.deepcopy(written), env_file, shown))


def compose(settings: SettingsTree, *, name: str, further: Mapping[str, Any]) -> Config:
    """A config that no file holds, checked in the same way; its paths are relative to the current folder.

    Args:
        settings: what a file would say.
        name: what messages call it in the place of the file.
        further: more settings, by dotted key.

    Raises:
        ConfigError: every fault.
    """
    _override(settings, further)
    return _build(settings, SettingOrigin(Path(name), {}, (), copy.deepcopy(settings)))


def _read(path: Path) -> tuple[SettingsTree, dict[KeyPath, int]]:
    text = _text(path)
    try:
        return tomllib.loads(text), key_lines(text.replace("\r\n", "\n"))
    except ValueError as error:  # tomllib's own, and one for a number of more than 4,300 digits
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
                "there is no such file",
                "`rowcall init` writes one to start from, `rowcall init --demo` one that runs as it is",
            )
        ) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(Problem(f"{path}:{line}", "is not UTF-8", "save the file as UTF-8")) from None
    except OSError as error:
        remedy = f"name the file: {path / 'config.toml'}" if path.is_dir() else ""
        raise ConfigError(Problem(str(path), f"cannot be read: {error.strerror}", remedy)) from None


def _syntax_problem(path: Path, message: str, text: str) -> Problem:
    """The message of tomllib with its line in front: ``Invalid value (at line 3, column 7)``."""
    found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
    line, place = (found[2], f"at column {found[3]}") if found else (text.count("\n") + 1, "at the end of the file")
    what = found[1] if found else message.removesuffix(" (at end of document)")
    remedy = next((words for start, words in _SYNTAX_REMEDIES.items() if what.startswith(start)), "")
    return Problem(f"{path}:{line}", f"not valid TOML {place}: {what}", remedy)


def _override(data: SettingsTree, overrides: Mapping[str, Any]) -> tuple[KeyPath, ...]:
    """Put overrides into the settings; those that would have to go into something that is no table stay out."""
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
        raise ConfigError(*_problems(faults, origin)) from None
    return config


def _problems(faults: list[ConfigFault], origin: SettingOrigin) -> list[Problem]:
    ordered = sorted(faults, key=lambda fault: origin.line(fault.path))
    return [Problem(origin.where(fault.path), fault.what, fault.remedy) for fault in ordered]


def _with_derived(data: SettingsTree, file: Path) -> SettingsTree:
    """The settings with the defaults that hang on other settings or on the file's name."""
    name = data.setdefault("name", default_name(file))
    api, request = table_in(data, "api"), table_in(data, "request")
    place = PRESET_DEFAULTS.get(str(api.get("preset")), PresetDefaults())
    _default(data, "api", "base_url", place.base_url)
    if "handler" not in data:
        _default(data, "request", "path", place.path or None)
        _default(data, "request", "method", "GET" if request.get("body") is None else "POST")
    _default(data, "input", "path", table_in(data, "input").get("store"))
    _default(data, "store", "path", f"{name}.db")
    return data


def _default(data: SettingsTree, table: str, key: str, value: Any) -> None:
    """Set a key that the table does not have; a table that is missing comes into being, but for ``[api]``."""
    if value is not None and (table in data or table != "api") and isinstance(data.setdefault(table, {}), dict):
        data[table].setdefault(key, value)


def default_name(file: Path) -> str:
    """The name of a job that does not say one: the config's own, or its folder's for a plain ``config.toml``."""
    path = file.resolve() if file.stem == "config" else file
    chosen = path.parent.name if path.stem == "config" else path.stem
    return re.sub(r"^\W+|[^\w.-]+", "-", chosen).strip("-.")[:100] or "rows"
