"""Which proxy a request goes through: ``[api] proxy``, or the usual environment variables."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from urllib.parse import unquote

import httpx

DIRECT = "none"
"""Written instead of a URL: no proxy, whatever the environment says."""

_SEPARATORS = re.compile(r"[\s,]+")


class UnusableProxy(ValueError):
    """A proxy that cannot be used: what names it, why, what to do. Its URL is not shown: it may hold a password."""

    def __init__(self, origin: str, what: str, remedy: str) -> None:
        super().__init__(f"{origin}: {what}")
        self.origin = origin
        self.what = what
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy.

    Attributes:
        url: without credentials.
        origin: the setting or variable that names it: ``api.proxy``, ``HTTPS_PROXY``.
        authorization: the ``Proxy-Authorization`` header to send; None without credentials.
    """

    url: str
    origin: str
    authorization: str | None = field(default=None, repr=False)


def parse_proxy(text: str, origin: str) -> Proxy:
    """Parse the URL of a proxy. Without a scheme it is ``http://``.

    Raises:
        UnusableProxy: it is not an http or https URL with a host.
    """
    text = text.strip()
    try:
        url = httpx.URL(text if "://" in text else f"http://{text}")
    except (httpx.InvalidURL, TypeError):
        raise _no_url(origin) from None
    if url.scheme.startswith("socks"):
        remedy = 'name an HTTP proxy, or none at all: [api] proxy = "none", or NO_PROXY'
        raise UnusableProxy(origin, "SOCKS proxies are not supported", remedy)
    if url.scheme not in ("http", "https") or not url.host:
        raise _no_url(origin)
    return Proxy(f"{url.scheme}://{url.netloc.decode('ascii')}", origin, _authorization(url))


def _no_url(origin: str) -> UnusableProxy:
    return UnusableProxy(origin, "is not the URL of a proxy", 'write it as "http://proxy.example.com:3128"')


def _authorization(url: httpx.URL) -> str | None:
    if not url.userinfo:
        return None
    user, _, password = url.userinfo.partition(b":")
    credentials = f"{unquote(user.decode())}:{unquote(password.decode())}"
    return f"Basic {b64encode(credentials.encode()).decode()}"


class Proxies:
    """Decides which proxy a URL goes through.

    A ``configured`` proxy is used for every URL. The environment's (HTTPS_PROXY or HTTP_PROXY by the URL's scheme, else
    ALL_PROXY; lower-case names win) are not used for hosts in NO_PROXY, nor for this machine itself.

    Args:
        configured: a URL, or ``none``; None to use the environment.
        environ: the variables.
    """

    def __init__(self, configured: str | None = None, environ: Mapping[str, str] | None = None) -> None:
        self._configured = parse_proxy(configured, "api.proxy") if configured and configured != DIRECT else None
        known = {} if configured or not environ else environ
        self._names = {scheme: _named(known, f"{scheme}_proxy", "all_proxy") for scheme in ("http", "https")}
        self._environ = known
        _, self._spared = _value(known, "no_proxy")

    def of(self, url: httpx.URL) -> Proxy | None:
        """The proxy for a URL, or None.

        Raises:
            UnusableProxy: the environment names a proxy that cannot be used.
        """
        if self._configured:
            return self._configured
        name = self._names.get(url.scheme)
        if name is None or _is_here(url.host) or _is_spared(url, self._spared):
            return None
        return parse_proxy(self._environ[name], name)


def _named(environ: Mapping[str, str], *names: str) -> str | None:
    """The first of the variables that is set, in lower or upper case."""
    return next((found for name in names if (found := _value(environ, name)[0])), None)


def _value(environ: Mapping[str, str], name: str) -> tuple[str | None, str]:
    """A variable's name as it is set, in lower case or upper, and its value."""
    for spelled in (name, name.upper()):
        if value := environ.get(spelled, "").strip():
            return spelled, value
    return None, ""


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _is_spared(url: httpx.URL, spared: str) -> bool:
    """Whether NO_PROXY names a URL's host: itself, a domain around it, its network, with a port or without."""
    port = url.port or (443 if url.scheme == "https" else 80)
    return any(entry == "*" or _fits(entry, url.host, port) for entry in _SEPARATORS.split(spared) if entry)


def _fits(entry: str, host: str, port: int) -> bool:
    name, _, wanted = entry.lower().rpartition(":") if re.search(r"[^:]:\d+$", entry) else (entry.lower(), "", "")
    name = name.removeprefix("*").removeprefix(".").strip("[]")
    if wanted and int(wanted) != port:
        return False
    return host == name or host.endswith(f".{name}") or _is_within(host, name)


def _is_within(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False
