"""How the calls of a kind are made, as it travels with its records: for workers that have no config of their own.

A recipe holds the settings that were in force, the prompts and schemas that they name, and the handler with the modules
beside it; never a secret, nor anything of this machine alone. Where that cannot be, it says why.
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
from rowcall.config.cross_checks import Tree, table_in
from rowcall.config.key_lines import dotted
from rowcall.config.references import SECRET_HEADERS, fingerprint, is_reference
from rowcall.config.secret_scan import suspect_line, suspects
from rowcall.config.toml_text import as_toml

CONFIG = "config.toml"
_OF_THIS_MACHINE = ("store", "output")
"""Tables that no worker has a use for."""
_COMPARED = ("response", "group", "retry", "price", "handler")
"""Tables in which a worker may not differ; how fast it goes, and where it stores, is its own."""
_SENT = (("api", "headers"), ("request", "params"), ("request", "headers"), ("request", "body"))
"""Where a secret is known by the name of its key."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How calls are made.

    Attributes:
        prints: a hash of each part, by its name for people, so that a worker's own can be compared.
        files: texts by their name beside the config, which is one of them; empty where they cannot travel.
        withheld: why they cannot.
    """

    prints: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict)
    withheld: str = ""

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Self:
        """The recipe that a store keeps."""
        return cls(kept["prints"], kept["files"], kept["withheld"])

    def to_keep(self) -> dict[str, Any]:
        """It as JSON values."""
        return asdict(self)

    def unlike(self, other: Recipe) -> list[str]:
        """The parts in which another recipe differs."""
        names = dict.fromkeys([*self.prints, *other.prints])
        return [name for name in names if self.prints.get(name) != other.prints.get(name)]

    def write(self, folder: Path) -> Path:
        """Write the files into a folder; returns the config's.

        Raises:
            ValueError: a name that leads out of the folder.
        """
        for name, text in self.files.items():
            path = folder / name
            if not _stays(name):
                raise ValueError(f"{name!r} leads out of the folder")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return folder / CONFIG


class _Withheld(Exception):
    """Something that cannot travel, in words."""


def recipe_of(config: Config, *, attaches: bool) -> Recipe:
    """The recipe of a config. Reads files: blocks.

    Args:
        config: with its references as written.
        attaches: whether records name files that are sent along.

    Raises:
        ConfigError: a prompt or a schema that cannot be read.
    """
    prints = _prints_of_tables(config)
    try:
        files = _files(config, attaches=attaches)
    except _Withheld as why:
        return Recipe(prints, withheld=str(why))
    return Recipe(prints | {name: _print(text) for name, text in files.items() if name != CONFIG}, files)


def _prints_of_tables(config: Config) -> dict[str, str]:
    settings, written = config.settings(), config.written
    settings["response"]["schema"] = table_in(written, "response").get("schema")  # resolved, it would be its contents
    schema = _schema(written)
    headers = {name: value for name, value in table_in(written, "api", "headers").items() if not _is_secret(name)}
    return {
        "[request]": _print(config.fingerprint()),
        "[api] headers": _print(fingerprint(headers, folder=config.folder, where=config.where)),
        "[response] schema": _print(fingerprint(schema, folder=config.folder, where=config.where)),
        **{f"[{name}]": _print(settings[name]) for name in _COMPARED},
    }


def _schema(written: Tree) -> Any:
    """The reference to a schema's file; None where it stands in the config itself, in which nothing is a reference."""
    schema = table_in(written, "response").get("schema")
    return schema if is_reference(schema) else None


def _print(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _is_secret(header: str) -> bool:
    return header.lower() in SECRET_HEADERS


def _files(config: Config, *, attaches: bool) -> dict[str, str]:
    """The texts that make the calls, the config's settings among them.

    Raises:
        _Withheld: there is something that they may not, or cannot, hold.
    """
    if not config.file.is_file():
        raise _Withheld(f"{config.file} is no file: a program makes the calls")
    if attaches:
        raise _Withheld("its records name files to be sent along, which only this machine has")
    travelling = {name: value for name, value in config.written.items() if name not in _OF_THIS_MACHINE}
    _require_no_secret(config, travelling)
    _require_no_machine(config)
    texts = {name: _text(config, name) for name in _named_files(config)}
    return texts | {CONFIG: as_toml({"name": config.name} | travelling)}


def _require_no_secret(config: Config, travelling: Tree) -> None:
    sent = ((path, table_in(travelling, *path[:-1]).get(path[-1])) for path in _SENT)
    found = [place for path, node in sent for place in suspects(node, path, by_name=True)]
    for place in [*found, *suspects(travelling, by_name=False)]:
        what = f"{config.where(place)}: {dotted(place)} looks like a key that is written out"
        raise _Withheld(f'{what}; {{ env = "NAME" }} takes it from the environment')


def _require_no_machine(config: Config) -> None:
    """See that what every machine must have for itself is named so that it is found there."""
    api = config.api
    kept = {("api", name): getattr(api, name) for name in ("ca_file", "client_cert", "client_key")}
    secret = {("api", name): _file_in(getattr(api, name)) for name in ("api_key", "proxy")}
    headers = {(*path, name): _file_in(value) for path in _SENT[::2] for name, value in _headers(config, path)}
    for path, name in (kept | secret | headers).items():
        if name and _stays(name):
            raise _Withheld(f"{config.where(path)} names a file of this machine; by its whole path it can be on any")


def _headers(config: Config, path: KeyPath) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in table_in(config.written, *map(str, path)).items() if _is_secret(name)]


def _file_in(node: Any) -> str | None:
    """The file of a reference to one."""
    return node["file"] if is_reference(node) and "file" in node else None


def _named_files(config: Config) -> Iterator[str]:
    """The files that make the calls, by their names beside the config."""
    written = config.written
    trees = [table_in(written, *path[:-1]).get(path[-1]) for path in _SENT]
    for name in dict.fromkeys(_files_in([*trees, _schema(written)])):
        if not _stays(name):
            raise _Withheld(f"{name} is not beside {config.file.name}")
        yield name
    if config.handler:
        yield from _modules(config, config.handler.path.rpartition(":")[0])


def _files_in(node: Any) -> Iterator[str]:
    """The names in references to files, but for those of headers that are secrets."""
    if name := _file_in(node):
        yield name
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from () if _is_secret(key) else _files_in(value)
    elif isinstance(node, list):
        for item in node:
            yield from _files_in(item)


def _modules(config: Config, name: str) -> Iterator[str]:
    if not _stays(name):
        raise _Withheld(f"{name} is not beside {config.file.name}")
    try:
        for path in companions(config.folder / name):
            yield path.relative_to(config.folder).as_posix()
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise _Withheld(f"{name} cannot be read: {error}") from None


def _text(config: Config, name: str) -> str:
    try:
        text = (config.folder / name).read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise _Withheld(f"{name} cannot be read: {error}") from None
    if line := suspect_line(text):
        raise _Withheld(f"{name}:{line} looks like a key that is written out")
    return text


def _stays(name: str) -> bool:
    """Whether a name leads to a file in the folder that it is relative to."""
    path = PurePosixPath(name)
    return not (path.is_absolute() or ".." in path.parts or name.startswith("~"))
