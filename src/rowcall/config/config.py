"""The whole config: its tables, its paths and its references."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, PrivateAttr

from rowcall.config.cross_checks import SettingsTree, table_in
from rowcall.config.dotenv import environment
from rowcall.config.export_formats import EXPORT_SUFFIXES
from rowcall.config.key_lines import KeyPath, dotted
from rowcall.config.reference_values import Reference
from rowcall.config.references import Fingerprinter, Masker, Resolver, files_in
from rowcall.config.secret import Secret
from rowcall.config.tables import (
    ApiTable,
    ConfigTable,
    GroupTable,
    HandlerTable,
    InputTable,
    OutputTable,
    PaceTable,
    PriceTable,
    RequestTable,
    ResponseTable,
    RetryTable,
    StopTable,
    StoreTable,
)
from rowcall.model.errors import ConfigError, Problem
from rowcall.model.store_location import StoreLocation

_STORE = ("store", "path")
_BESIDE_STORE = ("-wal", "-shm", "-journal", "-turn")
_NAME = re.compile(r"\w[\w.-]{0,99}")


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """Where the settings of a config come from.

    Attributes:
        file: the config file, as the user named it.
        lines: the line of every key in the file.
        overridden: keys that a flag or a variable sets instead of the file.
        written: the settings as written, without defaults.
        env_file: file of variables that the environment lacks. None: ``.env`` beside the config file.
        shown: the name of the file in messages. Empty: its path and line.
    """

    file: Path
    lines: Mapping[KeyPath, int]
    overridden: tuple[KeyPath, ...]
    written: SettingsTree
    env_file: Path | None = None
    shown: str = ""

    def where(self, path: KeyPath) -> str:
        """Return ``config.toml:12`` for a key or the nearest table around it, or who set it if the file did not."""
        if self.overrides(path):
            return f"{dotted(path)} (by flag or variable)"
        if self.shown:
            return self.shown
        line = self.line(path)
        return f"{self.file}:{line}" if line else str(self.file)

    def line(self, path: KeyPath) -> int:
        """Return the line of a key or of the nearest table around it; 0 for overrides and for unknown keys."""
        if self.overrides(path):
            return 0
        return next((self.lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self.lines), 0)

    def has(self, path: KeyPath) -> bool:
        """Return whether the file sets this key."""
        node: Any = self.written
        for part in path:
            if not isinstance(node, dict) or part not in node:
                return False
            node = node[part]
        return True

    def overrides(self, path: KeyPath) -> bool:
        """Return whether a flag or a variable sets this key."""
        return any(path[: len(key)] == key for key in self.overridden)


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError("must be at most 100 letters, digits, - _ and . and start with a letter or digit")
    return name


class Config(ConfigTable):
    """The checked settings of one batch job, as ``load`` returns them.

    Paths in the tables are as written; ``input_path``, ``output_path`` and a file in ``store_location`` are absolute,
    and ``-`` stays ``-``. References are as written; ``resolve`` returns a copy in which they are replaced.
    """

    # One field per table of the config file: as many as the file has tables.

    name: Annotated[str, AfterValidator(_checked_name)]
    input: InputTable
    api: ApiTable
    request: RequestTable = RequestTable()
    handler: HandlerTable | None = None
    response: ResponseTable = ResponseTable()
    output: OutputTable = OutputTable()
    group: GroupTable = GroupTable()
    pace: PaceTable = PaceTable()
    retry: RetryTable = RetryTable()
    price: PriceTable = PriceTable()
    stop: StopTable = StopTable()
    store: StoreTable

    _origin: SettingOrigin = PrivateAttr()

    def model_post_init(self, context: SettingOrigin) -> None:
        """Keep the origin, which ``load`` passes as pydantic's validation context."""
        self._origin = context

    @property
    def file(self) -> Path:
        """The config file, as the user named it."""
        return self._origin.file

    @property
    def written(self) -> SettingsTree:
        """The settings as written, with those of flags and variables, without defaults."""
        return self._origin.written

    @property
    def folder(self) -> Path:
        """The folder of the config file, absolute; paths in the config are relative to it."""
        return self.file.parent.resolve()

    @property
    def input_path(self) -> Path:
        """The input file; ``Path("-")`` is standard input."""
        return self._absolute(self.input.path)

    @property
    def output_path(self) -> Path | None:
        """The export file; ``Path("-")`` is standard output, None means no export."""
        return None if self.output.path is None else self._absolute(self.output.path)

    @property
    def output_format(self) -> str:
        """The format of the export: as written, else by the suffix of the file, else csv."""
        return self.output.format or EXPORT_SUFFIXES.get(Path(self.output.path or "").suffix.lower(), "csv")

    @property
    def store_location(self) -> StoreLocation:
        """The store. If the config names it by a reference, the reference is followed now.

        Raises:
            ConfigError: the reference cannot be followed, or what it names is neither a file nor a URL.
        """
        try:
            return StoreLocation.of(self._store_as_written(), self.folder)
        except ValueError as error:
            raise ConfigError(Problem(self.where(_STORE), f"store.path {error}")) from None

    def path_of(self, written: str | None) -> Path | None:
        """Make a path of the config absolute; None stays None."""
        return None if written is None else self._absolute(written)

    def variables(self) -> Mapping[str, str]:
        """Return the process environment, completed by ``.env`` beside the config file or the file named instead."""
        return environment(self._origin.env_file or self.folder / ".env", os.environ)

    def own_files(self) -> tuple[Path, ...]:
        """The files of this job that no request may carry: config, ``.env``, store, keys and certificates."""
        api = self.written.get("api", {})
        keys = [*files_in(api), *files_in(self.written.get("store")), api.get("client_cert"), api.get("client_key")]
        named = [self._absolute(name) for name in keys if isinstance(name, str)]
        with suppress(ConfigError):  # the variable that names the store is not set here
            if store := self.store_location.path:
                named += [store, *(store.with_name(store.name + end) for end in _BESIDE_STORE)]
        return (self.file, self._origin.env_file or self.folder / ".env", *named)

    def where(self, path: KeyPath) -> str:
        """Return where a key is written, for messages: ``config.toml:12``."""
        return self._origin.where(path)

    def settings(self) -> dict[str, Any]:
        """Return the settings in force as JSON values, secrets by name and durations in seconds."""
        settings: dict[str, Any] = json.loads(json.dumps(self.model_dump(by_alias=True), default=str))
        return settings

    def fingerprint(self) -> dict[str, Any]:
        """Return what all records of this job send, as written, for hashing.

        That is ``[request]``, the preset and the base URL, with files as the SHA-256 of their contents and secrets by
        name. What a preset adds is left out, so that a new version of rowcall does not change the request. For a
        handler it is the handler's path and version.

        Raises:
            ConfigError: a file cannot be read.
        """
        if self.handler:
            return {"handler": {"path": self.handler.path, "version": self.handler.version}}
        written = self._origin.written
        request, api = table_in(written, "request"), table_in(written, "api")
        printer = Fingerprinter(self.folder, self.where)
        printed = {
            **request,
            "params": printer.table(table_in(request, "params"), ("request", "params")),
            "headers": printer.headers(table_in(request, "headers"), ("request", "headers")),
            "body": printer.tree(request.get("body"), ("request", "body")),
        }
        printer.finish()
        return {"preset": api.get("preset"), "base_url": api.get("base_url"), "request": printed}

    def resolve(self, environ: Mapping[str, str] | None = None) -> Config:
        """Return a copy with every reference replaced: files by their text, variables and commands by a ``Secret``.

        The API key and secret headers become a ``Secret`` wherever they come from; ``response.json_schema`` becomes
        the JSON of its file. This runs commands and reads files, so do not call it in an event loop.

        Args:
            environ: the variables. None: those of the process and of the env file.

        Raises:
            ConfigError: lists every reference that cannot be followed.
        """
        variables = self.variables() if environ is None else environ
        return self._resolved(Resolver(self.folder, variables, self.where, env_file=self._origin.env_file))

    def masked(self, stand_in: Callable[[Reference], str]) -> Config:
        """Return the same as ``resolve`` with a stand-in for every secret. No variable is read and no command runs.

        Args:
            stand_in: returns the text for a reference to a secret: valid in a header, and unique.

        Raises:
            ConfigError: a file cannot be read. Files with secrets are not read.
        """
        return self._resolved(Masker(self.folder, stand_in, self.where))

    def source_of(self, path: KeyPath) -> str:
        """Return where a setting comes from: ``config.toml:12``, ``flag or variable`` or ``default``."""
        if self._origin.overrides(path):
            return "flag or variable"
        return self.where(path) if self._origin.has(path) else "default"

    def _resolved(self, resolver: Resolver) -> Config:
        tables = {
            "api": self._resolved_api(resolver),
            "request": self._resolved_request(resolver),
            "response": self.response.model_copy(
                update={"json_schema": resolver.document(self.response.json_schema, ("response", "schema"))}
            ),
        }
        resolver.finish()
        return self.model_copy(update=tables)

    def _resolved_api(self, resolver: Resolver) -> ApiTable:
        values = {
            "api_key": resolver.secret(self.api.api_key, ("api", "api_key")),
            "headers": resolver.headers(self.api.headers, ("api", "headers")),
            "proxy": resolver.secret(self.api.proxy, ("api", "proxy")),
        }
        return self.api.model_copy(update=values)

    def _resolved_request(self, resolver: Resolver) -> RequestTable:
        values = {
            "params": resolver.table(self.request.params, ("request", "params")),
            "headers": resolver.headers(self.request.headers, ("request", "headers")),
            "body": resolver.tree(self.request.body, ("request", "body")),
        }
        return self.request.model_copy(update=values)

    def _store_as_written(self) -> str:
        written: Any = self.store.path
        if isinstance(written, dict):
            resolver = Resolver(self.folder, self.variables(), self.where, env_file=self._origin.env_file)
            written = resolver.tree(written, _STORE)
            resolver.finish()
        return (written.reveal() if isinstance(written, Secret) else str(written)).strip()

    def _absolute(self, written: str) -> Path:
        return Path(written) if written == "-" else self.folder / Path(written).expanduser()
