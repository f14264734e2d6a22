"""Providers for tests, made from flat keys."""

from rowcall import providers
from rowcall.providers import ApiSettings, RequestSettings, ResponseSettings

OF_API = ("base_url", "api_key", "headers")
OF_RESPONSE = ("extract", "parse", "schema", "assertions", "answer")


def make_provider(preset, **keys):
    """The provider of a preset; ``headers`` are those of [api], ``request_headers`` those of [request]."""
    api = {name: keys.pop(name) for name in OF_API if name in keys}
    response = {name: keys.pop(name) for name in OF_RESPONSE if name in keys}
    request = {name.removeprefix("request_"): value for name, value in keys.items()}
    return providers.make_provider(
        preset, api=ApiSettings(**api), request=RequestSettings(**request), response=ResponseSettings(**response)
    )
