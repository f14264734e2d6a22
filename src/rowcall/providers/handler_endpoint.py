"""Where the calls of a handler go, and which headers of ``[api]`` they get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from rowcall.config import Secret
from rowcall.providers.build_request import Header, HeadersPart, parse_base_url, secrets_in, target_of, without_secrets
from rowcall.providers.dialect import PLAIN_OPERATION, Dialect, Preset
from rowcall.providers.http import HTTP
from rowcall.providers.openai import ANY_OPERATION


class Endpoint:
    """A base URL with its key and headers, which are sent to that scheme, host and port only.

    Args:
        base_url: the URL that paths are joined to. None: every request names a whole URL.
        api_key: sent in the preset's key header, unless ``headers`` contains it.
        headers: those of ``[api]``: templates with ``row`` and ``call``.
        preset: whose API it is. By default the key is sent as ``Authorization: Bearer``.

    Attributes:
        trees: the templates, for ``check_columns``.
        target: scheme, host and port of the base URL; ``any`` without one.

    Raises:
        ConfigError: a value cannot be used.
        TemplateError: a template cannot be compiled.
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
        """Return a whole URL unchanged, and a path joined to the base URL with the queries of both.

        Raises:
            ValueError: it is a path and there is no base URL.
            httpx.InvalidURL: it is neither a URL nor a path.
        """
        asked = httpx.URL(url)
        if asked.is_absolute_url:
            return asked
        if self._base is None:
            raise ValueError(f"{url!r} needs [api] base_url; without one, a request must name the whole URL")
        path = _path(self._base).rstrip(b"/") + b"/" + _path(asked).lstrip(b"/")
        query = b"&".join(filter(None, (self._base.query, asked.query)))
        return self._base.copy_with(raw_path=path + (b"?" + query if query else b""))

    def headers(self, url: httpx.URL, row: Mapping[str, Any], key: str) -> list[Header]:
        """Return the headers for a request; none if it goes to another host than the base URL's.

        Raises:
            TemplateError: a template cannot be rendered for this record.
        """
        if self._base is None or target_of(url) != target_of(self._base):
            return []
        return self._headers.build(row, {"key": key})

    def dialect_at(self, path: str) -> Dialect:
        """Return where the replies of a path state what; for an unknown API, the names that most APIs use."""
        operation = self._preset.operation_at(path)
        return ANY_OPERATION if operation is PLAIN_OPERATION else operation.dialect

    def without_secrets(self, text: bytes) -> bytes:
        """Replace the secrets that were sent by ``***`` in foreign text."""
        return without_secrets(text, self._secrets)


def _path(url: httpx.URL) -> bytes:
    return url.raw_path.partition(b"?")[0]
