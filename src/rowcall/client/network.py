"""How the calls of a config reach their API: the client, its proxies and its TLS settings."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from rowcall.client import Client, Proxies, Proxy, UnusableFile, UnusableProxy, make_context
from rowcall.config import Config, Secret
from rowcall.model.errors import ConfigError, Problem
from rowcall.providers.build_request import parse_base_url

_ANYWHERE = ("http://any.invalid", "https://any.invalid")


@dataclass(frozen=True, slots=True)
class Network:
    """The proxies of a client, and its TLS context unless that is the usual one."""

    proxies: Proxies | None = None
    tls: ssl.SSLContext | None = None


def make_client(config: Config, concurrency: int, network: Network) -> Client:
    """Make the client, with a connection for every call in flight."""
    return Client(
        concurrency=concurrency,
        timeout=config.api.timeout,
        connect_timeout=config.api.connect_timeout,
        verify=network.tls or True,
        proxies=network.proxies,
    )


def make_network(config: Config) -> Network:
    """How a resolved config reaches its API; the fake API is reached directly. Reads files, so it blocks.

    Raises:
        ConfigError: a proxy or a file of certificates cannot be used.
    """
    if config.api.preset == "mock":
        return Network()
    variables = config.variables()
    return Network(_proxies(config, variables), _tls(config, variables))


def environment_proxy(config: Config) -> Proxy | None:
    """The proxy for the API's URL, if the environment names it rather than the config."""
    api = config.api
    if api.proxy or api.base_url is None or api.preset == "mock":
        return None
    with suppress(UnusableProxy):
        return Proxies(None, config.variables()).of(parse_base_url(api.base_url))
    return None


def _proxies(config: Config, variables: Mapping[str, str]) -> Proxies:
    """The proxies, checked with the API's URL. Without one, a handler may call any URL."""
    named, base_url = config.api.proxy, config.api.base_url
    written = named.reveal() if isinstance(named, Secret) else named
    assert not isinstance(written, dict)  # the config is resolved
    try:
        proxies = Proxies(written, variables)
        for url in (base_url,) if base_url else _ANYWHERE:
            proxies.of(parse_base_url(url))
    except UnusableProxy as error:
        raise ConfigError(Problem(_where(config, error.origin), error.what, error.remedy)) from None
    return proxies


def _tls(config: Config, variables: Mapping[str, str]) -> ssl.SSLContext | None:
    api = config.api
    if not (api.ca_file or api.client_cert or variables.get("SSL_CERT_FILE") or variables.get("SSL_CERT_DIR")):
        return None
    ca_file, cert, key = map(config.path_of, (api.ca_file, api.client_cert, api.client_key))
    try:
        return make_context(variables, ca_file=ca_file, client_cert=cert, client_key=key)
    except UnusableFile as error:
        raise ConfigError(Problem(_where(config, error.setting), error.what, error.remedy)) from None


def _where(config: Config, named_by: str) -> str:
    """Where a setting is written; for a variable, its name."""
    table, _, key = named_by.partition(".")
    return config.where((table, key)) if key else named_by
