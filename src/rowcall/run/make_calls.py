"""Makes what a run calls: the provider of the requests, or the user's handler, and the mock API."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from rowcall.calls.groups import GroupCaller, Size
from rowcall.calls.handlers import Function, HandlerCaller, load_function
from rowcall.calls.requests import Caller, CallResources, RequestCaller
from rowcall.config import Config, Secret
from rowcall.engine.run_parts import Calls
from rowcall.model.errors import RowcallError
from rowcall.providers import PRESETS, ApiSettings, HttpProvider, RequestSettings, ResponseSettings, make_provider
from rowcall.providers.base import GroupProvider
from rowcall.providers.group_requests import Grouping
from rowcall.providers.handler_endpoint import Endpoint
from rowcall.providers.http import statuses
from rowcall.templates.check_columns import union

if TYPE_CHECKING:  # importing the mock imports a web server, which only the mock preset needs
    from rowcall.mock import MockAPI

_MOCK_URL = "http://mock.invalid/v1"
"""Base URL of the mock API in requests that are built but not sent."""


def calls_of(config: Config, base_url: str | None = None) -> Calls:
    """Return the calls that a resolved config describes: templated requests, or a handler loaded from its file.

    Raises:
        ConfigError: a value cannot be used, or the handler cannot be loaded.
        TemplateError: a template cannot be compiled.
    """
    table = config.handler
    if table is None:
        provider = provider_of(config, base_url)
        make_caller = request_caller(config, provider)
        return Calls(provider.columns, provider.trees, make_caller, provider.target, provider.files)
    function = load_function(table.path, folder=config.folder, where=config.where(("handler", "path")))
    return handler_calls(config, function, base_url)


def request_caller(config: Config, provider: GroupProvider) -> Callable[[CallResources], Caller]:
    """Return a factory for callers that send one record per request, or as many as ``[group]`` says.

    Raises:
        ConfigError: requests of this form cannot hold several records.
    """
    size = Size(config.group.size or 1, config.group.characters)
    if size.records == 1:
        return partial(RequestCaller, provider)
    return partial(GroupCaller, Grouping(provider, config.request.body), size)


def handler_calls(config: Config, function: Function, base_url: str | None = None) -> Calls:
    """Return the calls of a handler; its columns are those of ``[handler] columns``."""
    api, table = config.api, config.handler
    key = api.api_key if isinstance(api.api_key, Secret) else None
    endpoint = Endpoint(_base_url(config, base_url), api_key=key, headers=api.headers, preset=PRESETS[api.preset])
    shown = frozenset(table.columns) if table and table.columns else None
    in_headers = union(endpoint.trees)
    used = None if shown is None or in_headers is None else shown | in_headers
    make_caller = partial(HandlerCaller, function, shown, endpoint, statuses(config.response.answer))
    return Calls(used, endpoint.trees, make_caller, endpoint.target)


def provider_of(config: Config, base_url: str | None = None) -> HttpProvider:
    """Return the provider that builds the requests and reads the replies.

    Args:
        config: the config, with its references resolved.
        base_url: the API's URL, if it differs from the config's.

    Raises:
        RowcallError: the config names a handler, which makes its own requests.
        ConfigError: a value cannot be used.
        TemplateError: a template cannot be compiled.
    """
    if config.handler:
        raise RowcallError(f"{config.handler.path} makes its requests itself while it runs; they are not known before")
    api, request, response = config.api, config.request, config.response
    key = api.api_key if isinstance(api.api_key, Secret) else None
    return make_provider(
        api.preset,
        api=ApiSettings(_base_url(config, base_url), key, api.headers),
        request=RequestSettings(
            method=request.method,
            path=request.path,
            params=request.params,
            headers=request.headers,
            body=request.body,
            longer=None if response.on_truncated is None else response.on_truncated.max_tokens,
            folder=config.folder,
            attachments=config.path_of(request.attachments),
            max_attachment=request.max_attachment,
            own_files=config.own_files(),
        ),
        response=ResponseSettings(
            response.extract, response.parse, response.json_schema, response.assertions, response.answer
        ),
    )


def _base_url(config: Config, base_url: str | None) -> str | None:
    return base_url or config.api.base_url or (_MOCK_URL if config.api.preset == "mock" else None)


def make_mock(config: Config) -> MockAPI:
    """Return the mock API that ``[api.mock]`` describes."""
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
