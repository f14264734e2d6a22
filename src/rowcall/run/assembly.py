"""Builds the parts of a run from its config: the input, the calls, the output columns and the network."""

from __future__ import annotations

from collections.abc import Sequence

from rowcall.client.network import make_network
from rowcall.config import Config
from rowcall.engine.run_parts import Calls, RunParts
from rowcall.model.errors import ConfigError, Problem
from rowcall.run.call_prices import make_prices
from rowcall.run.make_calls import calls_of
from rowcall.run.open_input import open_input
from rowcall.run.output_config import make_columns
from rowcall.sources.base import Source
from rowcall.sources.keys import Keying, compile_key, request_hash
from rowcall.sources.no_input import NoInput
from rowcall.templates.check_columns import check_columns


def assemble(config: Config, *, base_url: str | None = None) -> RunParts:
    """Build the parts that a resolved config names and check them against each other.

    Reads files, so it blocks. Sends nothing.

    Args:
        config: the config, with its references resolved.
        base_url: the API's URL, if it differs from the config's (the mock API listens on any free port).

    Raises:
        ConfigError: a value cannot be used.
        InputError: the input does not exist or cannot be read.
        TemplateError: a template does not fit the input.
    """
    return assemble_from(config, open_input(config), calls_of(config, base_url))


def assemble_without_input(config: Config, *, base_url: str | None = None) -> RunParts:
    """Do the same as ``assemble`` for a process that reads no input; the input file need not exist."""
    return assemble_from(config, NoInput(), calls_of(config, base_url))


def assemble_from(config: Config, source: Source, calls: Calls) -> RunParts:
    """Build the parts of a run that reads ``source`` and makes ``calls``; raises the same errors as ``assemble``."""
    key = compile_key(config.input.key)
    available = source.columns()
    check_columns([*calls.trees, *([key.tree] if key.tree else [])], available)
    check_handler_columns(config, available)
    columns = make_columns(config.output.columns)
    keying, hashed = Keying(key, calls.columns, calls.files), request_hash(config.fingerprint())
    # The mock API gets another port each time. Its limits and rests must still belong to one target.
    target = "mock" if config.api.preset == "mock" and config.api.base_url is None else calls.target
    network, prices = make_network(config), make_prices(config)
    return RunParts(source, calls.make_caller, keying, columns, hashed, target, network, prices)


def check_handler_columns(config: Config, available: Sequence[str] | None) -> None:
    """Check that the input has the columns of ``[handler] columns``.

    Args:
        config: the config.
        available: the input's columns; None if they are not known in advance.

    Raises:
        ConfigError: a column is missing.
    """
    wanted = (config.handler and config.handler.columns) or ()
    unknown = [name for name in wanted if available is not None and name not in available]
    if unknown:
        listed = ", ".join((available or ())[:50])
        what = f"handler.columns names {', '.join(map(repr, unknown))}, which the input does not have"
        raise ConfigError(Problem(config.where(("handler", "columns")), what, f"the columns are: {listed}"))
