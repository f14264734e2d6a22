"""Where the calls of a handler go, and the headers that ``[api]`` gives each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from rowcall.config import Secret
from rowcall.providers.build_request import Header, HeadersPart, parse_base_url, secrets_in, target_of
from rowcall.providers.dialect import PLAIN_OPERATION, Dialect, Preset
from rowcall.providers.http import HTTP
from rowcall.providers.openai import ANY_OPERATION


class Endpoint:
    """A base URL with its key and headers, which go to that scheme, host and port and nowhere else.

    Args:
        base_url: where paths are joined to; None: requests name whole URLs.
        api_key: goes out in the preset's header, unless one of that name is given.
        headers: those of ``[api]``, templates with ``row`` and ``call``.
        preset: whose API it is; ``Authorization: Bearer`` brings the key without one.

    Attributes:
        trees: the templates, for ``templates.check_columns``.
        target: scheme, host and port of the base URL; ``any`` without one.

    Raises:
        ConfigError: a value that cannot be used.
        TemplateError: a template that cannot be compiled.
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        api_key: Secret | str | None = None,
        headers: Mapping[str, Any] | None = None,
        preset: Preset = HTTP,
    ) -> None:
        self._base = parse_base_url(base_url) if base_url else None
        tables = {"preset": preset.headers, "api.headers": headers or {}}
        self._headers = HeadersPart(tables, api_key, preset.key_header)
        self._secrets = secrets_in(api_key, headers)
        self._preset = preset
        self.trees = self._headers.trees
        self.target = target_of(self._base) if self._base else "any"

    def __repr__(self) -> str:
        return f"<Endpoint {self.target}>"

    def url(self, url: str) -> httpx.URL:
        """A whole URL as it is, a path below the base URL, with the queries of both.

        Raises:
            ValueError: a path where there is no base URL.
            httpx.InvalidURL: neither.
        """
        asked = httpx.URL(url)
        if asked.is_absolute_url:
            return asked
        if self._base is None:
            raise ValueError(f"{url!r} needs a base_url; without one a request names the whole URL")
        path = _path(self._base).rstrip(b"/") + b"/" + _path(asked).lstrip(b"/")
        query = b"&".join(filter(None, (self._base.query, asked.query)))
        return self._base.copy_with(raw_path=path + (b"?" + query if query else b""))

    def headers(self, url: httpx.URL, row: Mapping[str, Any], key: str) -> list[Header]:
        """The headers for a request; none for another host than the base URL's.

        Raises:
            TemplateError: a template cannot be rendered for this record.
        """
        if self._base is None or target_of(url) != target_of(self._base):
            return []
        return self._headers.build(row, {"key": key})

    def dialect_at(self, path: str) -> Dialect:
        """What the documents of a path mean; where nobody knows, the names that most APIs have taken over."""
        form = self._preset.operation_at(path)
        return ANY_OPERATION if form is PLAIN_OPERATION else form.dialect

    def blotted(self, text: bytes) -> bytes:
        """A text of somebody else without the secrets that were sent."""
        for secret in self._secrets:
            text = text.replace(secret, b"***")
        return text


def _path(url: httpx.URL) -> bytes:
    return url.raw_path.partition(b"?")[0]
