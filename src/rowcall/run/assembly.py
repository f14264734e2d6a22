"""From a config to the parts of a run: the source, the calls, the client, the store, the output."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowcall.calls.groups import GroupCaller, Size
from rowcall.calls.handlers import Function, HandlerCaller, load_function
from rowcall.calls.requests import Caller, RequestCaller, Wire
from rowcall.client.network import make_network
from rowcall.config import Config, Secret
from rowcall.engine.run_parts import Calls, RunParts
from rowcall.model.errors import ConfigError, OutputError, Problem, RowcallError
from rowcall.model.price_list import Unlisted, listed
from rowcall.model.prices import Prices, nano
from rowcall.model.store_location import StoreLocation
from rowcall.output import FormatName, check_export
from rowcall.output.join import RENAME, Columns, OutputShape, said_of_clash
from rowcall.providers import PRESETS, HttpProvider, make_provider
from rowcall.providers.base import GroupProvider
from rowcall.providers.group_requests import Grouping
from rowcall.providers.handler_endpoint import Endpoint
from rowcall.providers.http import statuses
from rowcall.providers.read_reply import Unacceptable, compile_path
from rowcall.sources import open_source
from rowcall.sources.base import Source
from rowcall.sources.keys import Key, Keying, compile_key, request_hash
from rowcall.sources.no_input import NoInput
from rowcall.sources.pipe_copy import PipeCopy
from rowcall.sources.store_source import StoreSource
from rowcall.store import open_at
from rowcall.store.base import Reader, Store
from rowcall.templates.templates import check_columns, union

if TYPE_CHECKING:  # a server, which only the mock preset needs
    from rowcall.mock import MockAPI


def assemble(config: Config, *, base_url: str | None = None) -> RunParts:
    """The parts that a resolved config names, checked against each other; nothing is sent. Reads files: blocks.

    Args:
        config: what to do, with its references replaced.
        base_url: where the API is, if not where the config says (the mock API takes any free port).

    Raises:
        ConfigError: a value that cannot be used.
        InputError: the input is not there, or cannot be read.
        TemplateError: a template does not fit the input.
    """
    return fit_together(config, source_of(config), calls_of(config, base_url))


def assemble_to_work(config: Config, *, base_url: str | None = None) -> RunParts:
    """As ``assemble``, for who reads no input, which may not even be there."""
    return fit_together(config, NoInput(), calls_of(config, base_url))


def fit_together(config: Config, source: Source, calls: Calls) -> RunParts:
    """The parts of a run that reads ``source`` and makes ``calls``; raises what ``assemble`` does."""
    key = compile_key(config.input.key)
    available = source.columns()
    check_columns([*calls.trees, *([key.tree] if key.tree else [])], available)
    check_handler_columns(config, available)
    columns = make_columns(config.output.columns)
    keying, hashed = Keying(key, calls.columns, calls.files), request_hash(config.fingerprint())
    target, network, prices = _target(config, calls), make_network(config), make_prices(config)
    return RunParts(source, calls.make_caller, keying, columns, hashed, target, network, prices)


def _target(config: Config, calls: Calls) -> str:
    """Who is called; the mock API is one, whatever port it has this time."""
    return "mock" if config.api.preset == "mock" and config.api.base_url is None else calls.target


def check_handler_columns(config: Config, available: Sequence[str] | None) -> None:
    """See that the input has the columns of ``[handler]``; ``available`` is None where it does not say.

    Raises:
        ConfigError: it does not.
    """
    wanted = (config.handler and config.handler.columns) or ()
    unknown = [name for name in wanted if available is not None and name not in available]
    if unknown:
        listed = ", ".join((available or ())[:50])
        what = f"handler.columns names {', '.join(map(repr, unknown))}, which the input does not have"
        raise ConfigError(Problem(config.where(("handler", "columns")), what, f"the columns are: {listed}"))


def calls_of(config: Config, base_url: str | None = None) -> Calls:
    """The calls that a resolved config describes: a request, or a handler from its file."""
    table = config.handler
    if table is None:
        provider = provider_of(config, base_url)
        make_caller = request_caller(config, provider)
        return Calls(provider.columns, provider.trees, make_caller, provider.target, provider.files)
    function = load_function(table.path, folder=config.folder, where=config.where(("handler", "path")))
    return handler_calls(config, function, base_url)


def request_caller(config: Config, provider: GroupProvider) -> Callable[[Wire], Caller]:
    """What makes requests of one record each, or of as many as ``[group]`` says.

    Raises:
        ConfigError: these requests cannot be put together.
    """
    size = Size(config.group.size or 1, config.group.characters)
    if size.records == 1:
        return partial(RequestCaller, provider)
    return partial(GroupCaller, Grouping(provider, config.request.body), size)


def handler_calls(config: Config, function: Function, base_url: str | None = None) -> Calls:
    """The calls of a handler, whose columns and version are those of ``config.handler``."""
    api, table = config.api, config.handler
    key = api.api_key if isinstance(api.api_key, Secret) else None
    endpoint = Endpoint(_base_url(config, base_url), api_key=key, headers=api.headers, preset=PRESETS[api.preset])
    shown = frozenset(table.columns) if table and table.columns else None
    answers = statuses(config.response.answer)
    in_headers = union(endpoint.trees)
    used = None if shown is None or in_headers is None else shown | in_headers
    make_caller = partial(HandlerCaller, function, shown, endpoint, answers)
    return Calls(used, endpoint.trees, make_caller, endpoint.target)


def make_columns(paths: Mapping[str, str]) -> Columns:
    """New columns by their JMESPath into the answer.

    Raises:
        ConfigError: not a JMESPath.
    """
    return {name: _column(name, path) for name, path in paths.items()}


def _column(name: str, path: str) -> Callable[[Any], Any]:
    """Reads a new column from an answer; null where its path does not fit the answer's shape."""
    read = compile_path(path, where=f"output.columns.{name}")

    def column(answer: Any) -> Any:
        try:
            return read(answer)
        except Unacceptable:
            return None

    return column


def source_of(config: Config) -> Source:
    """Where the records come from; nothing is read yet."""
    table = config.input
    if table.store:
        _check_other_job(config)
        return StoreSource(config.input_path, table.store, table.kind, table.result or "result")
    source = open_source(
        config.input_path,
        name=table.path,
        format=table.format,
        header=table.header,
        quoting=table.quoting,
        encoding=table.encoding,
        sql=table.sql,
        sheet=table.sheet,
        on_bad=table.on_bad,
    )
    return source if source.rereadable else PipeCopy(source)


def _check_other_job(config: Config) -> None:
    """See that a job does not read its own results."""
    if config.store_place.is_at(config.input_path) and config.input.kind in (None, config.name):
        what = "input.store is the store of this job itself"
        remedy = "kind names the other job in it, or [store] path another file for this one"
        raise ConfigError(Problem(config.where(("input", "store")), what, remedy))


def provider_of(config: Config, base_url: str | None = None) -> HttpProvider:
    """What builds the requests and reads the replies; ``base_url`` as in ``assemble``.

    Raises:
        RowcallError: the config has a handler, which makes its own.
        ConfigError: a value that cannot be used.
        TemplateError: a template that cannot be compiled.
    """
    if config.handler:
        raise RowcallError(f"the requests of {config.handler.path} are made by it while it runs")
    api, request, response = config.api, config.request, config.response
    return make_provider(
        api.preset,
        base_url=_base_url(config, base_url),
        api_key=api.api_key,
        headers=api.headers,
        method=request.method,
        path=request.path,
        params=request.params,
        request_headers=request.headers,
        body=request.body,
        extract=response.extract,
        parse=response.parse,
        schema=response.json_schema,
        assertions=response.assertions,
        longer=response.on_truncated and response.on_truncated.max_tokens,
        answer=response.answer,
        folder=config.folder,
        max_attachment=request.max_attachment,
    )


def _base_url(config: Config, base_url: str | None) -> str | None:
    return base_url or config.api.base_url or (_NOWHERE if config.api.preset == "mock" else None)


_NOWHERE = "http://mock.invalid/v1"
"""Stands for the mock API where nothing is sent."""


def make_prices(config: Config) -> Prices | None:
    """What a call costs, as ``[price]`` says; None where it says nothing.

    Raises:
        ConfigError: a list of prices that is not there, or does not know the model.
    """
    table = config.price
    known = {name: getattr(table, name) for name in ("input", "output", "cached", "reasoning", "per_call")}
    written = {name: nano(dollars) for name, dollars in known.items() if dollars is not None}
    if table.source == "genai-prices":
        return replace(_listed(config), **written)
    return Prices(**written) if written else None


def _listed(config: Config) -> Prices:
    table, where = config.price, config.where(("price", "from"))
    body = config.request.body
    model = table.model or (body.get("model") if isinstance(body, dict) and not config.handler else None)
    if not isinstance(model, str) or "{{" in model:
        raise ConfigError(Problem(where, "price.model is missing", 'name it: model = "gpt-5-mini"'))
    try:
        return listed(model, provider=table.provider, base_url=config.api.base_url)
    except Unlisted as error:
        raise ConfigError(Problem(where, str(error), error.remedy)) from None


def make_mock(config: Config) -> MockAPI:
    """The fake API as ``[api.mock]`` describes it."""
    from rowcall.mock import Faults, MockAPI

    table = config.api.mock
    faults = Faults(
        rate_limited=table.rate_limited,
        errors=table.errors,
        resets=table.resets,
        retry_after=table.retry_after,
        seed=table.seed,
    )
    return MockAPI(latency=table.latency, faults=faults, keep_calls=False)


async def open_store(config: Config, waits: Callable[[str], None]) -> Store:
    """The store, made where there is none; ``waits`` is told who is in the way, where a wait gets long."""
    table = config.store
    return await open_at.open_store(config.store_place, durability=table.durability, lease=table.lease, waits=waits)


async def open_reader(config: Config) -> Reader:
    """The store for reading alone."""
    return await open_at.open_reader(config.store_place)


def check_output(config: Config, path: Path, format_: FormatName | None = None) -> None:
    """See that the export can be written, and replaces nothing the run lives on, before anything is called.

    Args:
        config: of the batch job.
        path: the export.
        format_: its format; None: the config's for the config's own path, else by the path's suffix.

    Raises:
        OutputError: it cannot, or it is.
    """
    for what, other in {
        "the input": StoreLocation(config.input_path),
        "the store": config.store_place,
        "the config": StoreLocation(config.file),
    }.items():
        if other.is_at(path) and str(path) != "-":
            raise OutputError(f"{path} is {what}", remedy="name another file in [output] path, or with -o")
    check_export(path, format=format_ or format_at(config, path))


def format_at(config: Config, path: Path) -> FormatName | None:
    """The config's format, which holds for the config's path alone."""
    return config.output.format if path == config.output_path else None


def check_output_columns(config: Config, available: Sequence[str] | None) -> None:
    """See that ``[output]`` fits the columns of the input; ``available`` is None where it does not say.

    Raises:
        ConfigError: a new column that the input has too, or one to keep that it does not have.
    """
    table, known = config.output, available or []
    unknown = [name for name in table.keep or () if available is not None and name not in known]
    if unknown:
        what = f"output.keep names {', '.join(map(repr, unknown))}, which the input does not have"
        raise ConfigError(Problem(config.where(("output", "keep")), what, f"the columns are: {', '.join(known[:50])}"))
    clash = set(OutputShape(keep=table.keep).kept(known)) & table.columns.keys()
    if clash and not (table.overwrite or table.flatten or table.format == "openai-batch-output"):
        raise ConfigError(Problem(config.where(("output", "columns")), said_of_clash(clash), RENAME))


def key_column(key: Key, keep: Sequence[str] | None) -> tuple[str, bool]:
    """The column that rows are found by in a table, and whether the input lacks it: ``key`` where it is no column."""
    named = key.spec is not None and "{{" not in key.spec and (keep is None or key.spec in keep)
    return (key.spec, False) if named and key.spec else ("key", True)
