"""Packs what a worker without a config needs, to be stored with the records: the recipe of their calls.

A recipe holds the settings in force, the prompt and schema files they name, and the handler with the modules beside it.
It never holds a secret or anything that exists only on this machine. If it cannot be packed, it says why.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Self

from rowcall.calls.handlers.imported_files import companions
from rowcall.config import Config, KeyPath
from rowcall.config.cross_checks import SettingsTree, table_in
from rowcall.config.key_lines import dotted
from rowcall.config.references import SECRET_HEADERS, fingerprint, is_reference
from rowcall.config.secret_scan import suspect_line, suspects
from rowcall.config.toml_text import as_toml

CONFIG = "config.toml"
_OF_THIS_MACHINE = ("store", "output")
"""Tables that a worker does not need."""
_COMPARED = ("response", "group", "retry", "price", "handler")
"""Tables that must be the same for all workers; rates, limits and the store may differ."""
_SENT = (("api", "headers"), ("request", "params"), ("request", "headers"), ("request", "body"))
"""Parts of the config in which a key's name shows that its value is a secret."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the calls of a kind are made.

    Attributes:
        prints: a hash of each part, by the part's name, to compare a worker's own config with.
        files: the texts of the config and of the files it uses, by their names; empty if they cannot be stored.
        withheld: why they cannot be stored; empty if they can.
    """

    prints: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict)
    withheld: str = ""

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Self:
        """Read a recipe from the values in a store."""
        return cls(kept["prints"], kept["files"], kept["withheld"])

    def to_keep(self) -> dict[str, Any]:
        """Return the recipe as JSON values."""
        return asdict(self)

    def unlike(self, other: Recipe) -> list[str]:
        """Return the names of the parts in which another recipe differs."""
        names = dict.fromkeys([*self.prints, *other.prints])
        return [name for name in names if self.prints.get(name) != other.prints.get(name)]

    def write(self, folder: Path) -> Path:
        """Write the files into a folder and return the path of the config.

        Raises:
            ValueError: a name leads out of the folder.
        """
        for name, text in self.files.items():
            path = folder / name
            if not stays_inside(name):
                raise ValueError(f"{name!r} leads out of the folder")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return folder / CONFIG


class _NotStorable(Exception):
    """Says what cannot be stored, and why."""


def recipe_of(config: Config, *, attaches: bool) -> Recipe:
    """Make the recipe of a config. Reads files, so it blocks.

    Args:
        config: the config, with its references as written.
        attaches: whether records name files that are attached to their requests.

    Raises:
        ConfigError: a prompt or a schema cannot be read.
    """
    prints = _prints_of_tables(config)
    try:
        files = _files(config, attaches=attaches)
    except _NotStorable as why:
        return Recipe(prints, withheld=str(why))
    return Recipe(prints | {name: _print(text) for name, text in files.items() if name != CONFIG}, files)


def _prints_of_tables(config: Config) -> dict[str, str]:
    settings, written = config.settings(), config.written
    settings["response"]["schema"] = table_in(written, "response").get("schema")  # not the file's contents
    schema = _schema(written)
    headers = {name: value for name, value in table_in(written, "api", "headers").items() if not _is_secret(name)}
    return {
        "[request]": _print(config.fingerprint()),
        "[api] headers": _print(fingerprint(headers, folder=config.folder, where=config.where)),
        "[response] schema": _print(fingerprint(schema, folder=config.folder, where=config.where)),
        **{f"[{name}]": _print(settings[name]) for name in _COMPARED},
    }


def _schema(written: SettingsTree) -> Any:
    """Return the reference to the schema's file; None if the schema itself is in the config."""
    schema = table_in(written, "response").get("schema")
    return schema if is_reference(schema) else None


def _print(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _is_secret(header: str) -> bool:
    return header.lower() in SECRET_HEADERS


def _files(config: Config, *, attaches: bool) -> dict[str, str]:
    """Return the texts that define the calls, including the config.

    Raises:
        _NotStorable: they contain a secret, or need something that exists only on this machine.
    """
    if not config.file.is_file():
        raise _NotStorable(f"{config.file} is not a file: a program makes the calls")
    if attaches:
        raise _NotStorable("its records name files to attach, which exist only on this machine")
    stored_tables = {name: value for name, value in config.written.items() if name not in _OF_THIS_MACHINE}
    _require_no_secret(config, stored_tables)
    _require_no_machine(config)
    texts = {name: _text(config, name) for name in _named_files(config)}
    return texts | {CONFIG: as_toml({"name": config.name} | stored_tables)}


def _require_no_secret(config: Config, stored_tables: SettingsTree) -> None:
    sent = ((path, table_in(stored_tables, *path[:-1]).get(path[-1])) for path in _SENT)
    found = [place for path, node in sent for place in suspects(node, path, by_name=True)]
    for place in [*found, *suspects(stored_tables, by_name=False)]:
        what = f"{config.where(place)}: {dotted(place)} looks like a key that is written out"
        raise _NotStorable(f'{what}; {{ env = "NAME" }} takes it from the environment')


def _require_no_machine(config: Config) -> None:
    """Check that certificates, keys and proxies are named by paths that can exist on every machine."""
    api = config.api
    kept = {("api", name): getattr(api, name) for name in ("ca_file", "client_cert", "client_key")}
    secret = {("api", name): _file_in(getattr(api, name)) for name in ("api_key", "proxy")}
    headers = {(*path, name): _file_in(value) for path in _SENT[::2] for name, value in _headers(config, path)}
    for path, name in (kept | secret | headers).items():
        if name and stays_inside(name):
            raise _NotStorable(f"{config.where(path)} names a file of this machine; use a path that every machine has")


def _headers(config: Config, path: KeyPath) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in table_in(config.written, *map(str, path)).items() if _is_secret(name)]


def _file_in(node: Any) -> str | None:
    """Return the file that a reference names; None for any other value."""
    return node["file"] if is_reference(node) and "file" in node else None


def _named_files(config: Config) -> Iterator[str]:
    """Yield the names of the files that define the calls, relative to the config."""
    written = config.written
    trees = [table_in(written, *path[:-1]).get(path[-1]) for path in _SENT]
    for name in dict.fromkeys(_files_in([*trees, _schema(written)])):
        if not stays_inside(name):
            raise _NotStorable(f"{name} is not beside {config.file.name}")
        yield name
    if config.handler:
        yield from _modules(config, config.handler.path.rpartition(":")[0])


def _files_in(node: Any) -> Iterator[str]:
    """Yield the files that references name, except in headers whose values are secrets."""
    if name := _file_in(node):
        yield name
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from () if _is_secret(key) else _files_in(value)
    elif isinstance(node, list):
        for item in node:
            yield from _files_in(item)


def _modules(config: Config, name: str) -> Iterator[str]:
    if not stays_inside(name):
        raise _NotStorable(f"{name} is not beside {config.file.name}")
    try:
        for path in companions(config.folder / name):
            yield path.relative_to(config.folder).as_posix()
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise _NotStorable(f"{name} cannot be read: {error}") from None


def _text(config: Config, name: str) -> str:
    try:
        text = (config.folder / name).read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise _NotStorable(f"{name} cannot be read: {error}") from None
    if line := suspect_line(text):
        raise _NotStorable(f"{name}:{line} looks like a key that is written out")
    return text


def stays_inside(name: str) -> bool:
    """Return whether a relative name stays inside the folder it is relative to."""
    path = PurePosixPath(name)
    return not (path.is_absolute() or ".." in path.parts or name.startswith("~"))
