"""The whole config: its tables, the paths in it, its references."""

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
    """Where a config comes from.

    Attributes:
        file: the config file as it was named.
        lines: the line of every key in it.
        overridden: keys that a flag or a variable set instead.
        written: the settings as written, without any default.
        env_file: variables that the environment does not have; None: ``.env`` beside the config file.
        shown: what messages call the file, where that is not its path and line.
    """

    file: Path
    lines: Mapping[KeyPath, int]
    overridden: tuple[KeyPath, ...]
    written: SettingsTree
    env_file: Path | None = None
    shown: str = ""

    def where(self, path: KeyPath) -> str:
        """``config.toml:12`` for a key or the nearest table around it; who set it, where that was not the file."""
        if self.overrides(path):
            return f"{dotted(path)} (by flag or variable)"
        if self.shown:
            return self.shown
        line = self.line(path)
        return f"{self.file}:{line}" if line else str(self.file)

    def line(self, path: KeyPath) -> int:
        """The line of a key or of the nearest table around it; 0 where there is none, and for overrides."""
        if self.overrides(path):
            return 0
        return next((self.lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self.lines), 0)

    def has(self, path: KeyPath) -> bool:
        """Whether the file says something there."""
        node: Any = self.written
        for part in path:
            if not isinstance(node, dict) or part not in node:
                return False
            node = node[part]
        return True

    def overrides(self, path: KeyPath) -> bool:
        """Whether a flag or a variable says it."""
        return any(path[: len(key)] == key for key in self.overridden)


def _fit_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError("must be at most 100 letters, digits, - _ and . and begin with a letter or digit")
    return name


class Config(ConfigTable):
    """The settings of one batch job, checked, as ``load`` gives them.

    Paths in the tables are as written; ``input_path``, ``output_path`` and a file in ``store_location`` are absolute,
    and ``-`` stays ``-``. References are as written; ``resolve`` gives a copy in which they are replaced.
    """

    name: Annotated[str, AfterValidator(_fit_name)]
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
        """Keep the origin, which is what a config is validated in the context of."""
        self._origin = context

    @property
    def file(self) -> Path:
        """The config file as it was named."""
        return self._origin.file

    @property
    def written(self) -> SettingsTree:
        """The settings as they were written, those of flags and variables among them, without any default."""
        return self._origin.written

    @property
    def folder(self) -> Path:
        """The folder of the config file, absolute; paths in the config are relative to it."""
        return self.file.parent.resolve()

    @property
    def input_path(self) -> Path:
        """The input; ``Path("-")`` is standard input."""
        return self._absolute(self.input.path)

    @property
    def output_path(self) -> Path | None:
        """The export; ``Path("-")`` is standard output, None is no export."""
        return None if self.output.path is None else self._absolute(self.output.path)

    @property
    def output_format(self) -> str:
        """The format of the export: as written, or by the end of its name; csv where neither says."""
        return self.output.format or EXPORT_SUFFIXES.get(Path(self.output.path or "").suffix.lower(), "csv")

    @property
    def store_location(self) -> StoreLocation:
        """The database; a reference to it is followed now.

        Raises:
            ConfigError: a reference that leads nowhere, or to what is no place.
        """
        try:
            return StoreLocation.of(self._store_as_written(), self.folder)
        except ValueError as error:
            raise ConfigError(Problem(self.where(_STORE), f"store.path {error}")) from None

    def path_of(self, written: str | None) -> Path | None:
        """A path of the config, absolute; None for None."""
        return None if written is None else self._absolute(written)

    def variables(self) -> Mapping[str, str]:
        """The process environment, completed by ``.env`` beside the config file or the file named instead."""
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
        """Where a key is written, for messages: ``config.toml:12``."""
        return self._origin.where(path)

    def settings(self) -> dict[str, Any]:
        """The settings in force as JSON values; secrets by name, durations in seconds."""
        settings: dict[str, Any] = json.loads(json.dumps(self.model_dump(by_alias=True), default=str))
        return settings

    def fingerprint(self) -> dict[str, Any]:
        """What all records of this job send, as written, for hashing.

        That is ``[request]``, the preset and the base URL; files by the SHA-256 of their contents, secrets by name;
        nothing that a preset adds. Where there is a handler, it is its path and version.

        Raises:
            ConfigError: files that cannot be read.
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
        """A copy with every reference replaced: files by their text, variables and commands by a ``Secret``.

        A key or a header that is a secret becomes a ``Secret`` wherever it comes from, ``response.json_schema`` the
        JSON of its file. Runs commands and reads files: not for an event loop.

        Args:
            environ: the variables; None is the process environment, completed by the
                config's file of variables.

        Raises:
            ConfigError: every reference that leads nowhere.
        """
        variables = self.variables() if environ is None else environ
        return self._resolved(Resolver(self.folder, variables, self.where, env_file=self._origin.env_file))

    def masked(self, stand_in: Callable[[Reference], str]) -> Config:
        """As ``resolve``, with a stand-in for every secret: no variable is read, no command runs.

        Args:
            stand_in: what stands for the secret behind a reference; fit for a header, and never twice the same.

        Raises:
            ConfigError: files that cannot be read, but for those that hold secrets.
        """
        return self._resolved(Masker(self.folder, stand_in, self.where))

    def source_of(self, path: KeyPath) -> str:
        """Where a setting comes from: ``config.toml:12``, ``flag or variable``, ``default``."""
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
