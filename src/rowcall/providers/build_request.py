"""Builds the URL, the headers and the body of a request. What is the same for every record is made once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from rowcall.config import Secret
from rowcall.model import json_values
from rowcall.model.errors import ConfigError, Problem, TemplateError
from rowcall.providers.attachments import Attachments
from rowcall.templates.compile import TemplateTree, compile_tree
from rowcall.templates.values import text_of

Header = tuple[bytes, bytes]

_JSON = (b"content-type", b"application/json")
_TEXT = (b"content-type", b"text/plain; charset=utf-8")


def parse_base_url(base_url: str) -> httpx.URL:
    """Parse the URL that paths are joined to.

    Raises:
        ConfigError: it is not an http(s) URL, or it contains a user name or password.
    """
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        raise _bad_url("it is not a URL") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise _bad_url("it needs http:// or https://, and a host")
    if url.userinfo:
        raise _bad_url("it must not contain a user name or password; send them in a header, as { env = ... }")
    return url.copy_with(fragment=None)


def _bad_url(why: str) -> ConfigError:
    """Never repeat the URL in the message: it may contain a secret."""
    return ConfigError(Problem("api.base_url", why, 'Write it as "https://api.example.com/v1".'))


def target_of(base: httpx.URL) -> str:
    """Return scheme, host and port of a URL."""
    return f"{base.scheme}://{base.netloc.decode('ascii')}"


def make_request(method: str, url: httpx.URL, headers: list[Header], content: bytes | None) -> httpx.Request:
    """Make the same request as ``httpx.Request`` does from content, in a fifth of the time.

    Header names must be lower case.
    """
    if not content:
        return httpx.Request(method, url, headers=headers, content=content)
    given = {name for name, _ in headers}
    usual = ((b"host", url.netloc), (b"content-length", b"%d" % len(content)))
    whole = [*(header for header in usual if header[0] not in given), *headers]
    request = httpx.Request(method, url, headers=whole, stream=httpx.ByteStream(content))
    request.read()  # so that ``request.content`` works, as in a request that httpx made
    return request


def with_model(path: str, body: Any) -> tuple[str, Any]:
    """Move the ``model`` of the body into the path, if the path contains ``{model}``.

    Raises:
        ConfigError: the body has no model, or it is not a text.
    """
    if "{model}" not in path:
        return path, body
    model = body.get("model") if isinstance(body, Mapping) else None
    if not isinstance(model, str) or not model:
        raise ConfigError(Problem("request.body.model", "is missing", "It is part of the path of this API's calls."))
    return path.replace("{model}", model), {name: value for name, value in body.items() if name != "model"}


class URLPart:
    """Builds the URL: ``base``, then ``path`` without doubled slashes, then the queries of both, then ``params``.

    In ``params``, null leaves a name out and a list repeats it.
    """

    def __init__(self, base: httpx.URL, path: Any, params: Mapping[str, Any]) -> None:
        self._path = compile_tree(path, where="request.path", escape=_path_segment)
        self._params = compile_tree(dict(params), where="request.params")
        self._base = str(base.copy_with(query=None))
        self._base_query = base.query.decode("ascii")
        self.trees = (self._path, self._params)
        self._ready = self._join({}) if all(tree.constant for tree in self.trees) else None

    def build(self, row: Mapping[str, Any]) -> httpx.URL:
        """Return the URL for one record."""
        return self._ready or self._join(row)

    def _join(self, row: Mapping[str, Any]) -> httpx.URL:
        path, _, query = _text_to_send(self._path.render(row)).partition("?")
        url = f"{self._base.rstrip('/')}/{path.lstrip('/')}" if path else self._base
        queries = self._base_query, query, urlencode(_pairs(self._params.render(row)), quote_via=quote)
        joined = "&".join(filter(None, queries))
        try:
            return httpx.URL(f"{url}?{joined}" if joined else url)
        except httpx.InvalidURL as error:
            raise TemplateError(f"request.path: {error}", remedy="See it with: rowcall preview") from error


def _path_segment(text: str) -> str:
    """Encode a value inside a path, so that a record can neither leave its segment nor start a query."""
    if text in ("", ".", ".."):
        raise ValueError(f"the value {text!r} cannot be part of the path of a URL")
    return quote(text, safe="")


def _pairs(params: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, _text_to_send(item))
        for name, value in params.items()
        for item in (value if isinstance(value, list) else [value])
        if item is not None
    ]


class HeadersPart:
    """Builds the headers. A header whose value is null is left out.

    Args:
        tables: headers by their place in the config. Later tables win; the case of names does not matter.
        api_key: sent in ``key_header``, unless a table has that header.
        key_header: its name, in lower case, and the text before the key.
    """

    def __init__(
        self,
        tables: Mapping[str, Mapping[str, Any]],
        api_key: Secret | str | None,
        key_header: tuple[str, str] = ("authorization", "Bearer "),
    ) -> None:
        trees = {name: tree for where, table in tables.items() for name, tree in _compiled(table, where)}
        self.names = frozenset(trees)
        self.trees = tuple(trees.values())
        self._rendered = {name: tree for name, tree in trees.items() if not tree.constant}
        self._ready = list(_headers({name: tree for name, tree in trees.items() if tree.constant}, {}, {}))
        name, before = key_header
        if api_key is not None and name not in trees:
            self._ready.append((name.encode(), _header_value(f"{before}{_text_to_send(api_key)}", "api.api_key")))

    def build(self, row: Mapping[str, Any], call: Mapping[str, Any]) -> list[Header]:
        """Return the headers for one record."""
        return [*self._ready, *_headers(self._rendered, row, call)]


def _compiled(table: Mapping[str, Any], where: str) -> Iterable[tuple[str, TemplateTree]]:
    for name, value in table.items():
        yield name.lower(), compile_tree(value, where=f"{where}.{name}", call=True)


def _headers(trees: Mapping[str, TemplateTree], row: Mapping[str, Any], call: Mapping[str, Any]) -> Iterable[Header]:
    for name, tree in trees.items():
        value = tree.render(row, call)
        if value is not None:
            yield name.encode(), _header_value(_text_to_send(value), tree.where)


def _header_value(text: str, where: str) -> bytes:
    """Never repeat the value in the message: it may be a secret."""
    if any(character in text for character in "\r\n\0"):
        raise TemplateError(f"{where}: the value contains a line break", remedy="Remove it, for example with | trim.")
    return text.encode()


class BodyPart:
    """Builds the body: text is sent as text, null as no body, everything else as JSON.

    Args:
        body: templates.
        has_type: the headers contain a Content-Type.
        limits: keys that limit the tokens of the answer; see ``Dialect``.
        attachments: gets every file that the body names.
    """

    def __init__(self, body: Any, *, has_type: bool, limits: Sequence[str] = (), attachments: Attachments) -> None:
        self._attachments = attachments
        self._tree = compile_tree(attachments.take_from(body, "request.body"), where="request.body")
        self._has_type = has_type
        self._limits = limits
        self._secret = _holds_secret(body)
        self.trees = (self._tree, *(one.path for one in attachments.found))

    def build(
        self, row: Mapping[str, Any], limit: int | None = None, *, bare: bool = False
    ) -> tuple[list[Header], bytes | None]:
        """Return the Content-Type header, unless the headers have one, and the body for one record.

        Args:
            row: the record.
            limit: token limit of the answer, instead of the body's own.
            bare: attached files are not read.
        """
        body = self._tree.render(row)
        if self._attachments.found:
            body = self._attachments.filled(body, row, bare=bare)
        if limit is not None:
            body = with_limit(body, self._limits, limit)
        if self._secret:
            body = _revealed(body)
        if body is None:
            return [], None
        headers = [] if self._has_type else [_TEXT if isinstance(body, str) else _JSON]
        try:
            return headers, body.encode() if isinstance(body, str) else json_values.dumps(body)
        except (TypeError, ValueError) as error:
            raise TemplateError(f"request.body: {error}", remedy="See it with: rowcall preview") from error


def with_limit(body: Any, places: Sequence[str], tokens: int) -> Any:
    """Return a copy of a body with another token limit, where it has one, else at the last of ``places``."""
    if not isinstance(body, Mapping):
        return body
    paths = [place.split(".") for place in places]
    return _with(body, next((path for path in paths if _has(body, path)), paths[-1]), tokens)


def _has(node: Any, path: Sequence[str]) -> bool:
    return not path or (isinstance(node, Mapping) and path[0] in node and _has(node[path[0]], path[1:]))


def _with(node: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    table = node if isinstance(node, Mapping) else {}
    return {**table, path[0]: _with(table.get(path[0]), path[1:], value)}


def secrets_in(*trees: Any) -> frozenset[bytes]:
    """Return the secrets that no message may show, except very short ones: hiding those would hide ordinary text."""
    found: set[bytes] = set()
    for tree in trees:
        if isinstance(tree, Secret):
            found.add(tree.reveal().encode())
        elif isinstance(tree, Mapping | list | tuple):
            found |= secrets_in(*(tree.values() if isinstance(tree, Mapping) else tree))
    return frozenset(secret for secret in found if len(secret) >= _SHORTEST_SECRET)


_SHORTEST_SECRET = 4


def without_secrets(text: bytes, secrets: Iterable[bytes]) -> bytes:
    """Replace every secret in a text by ``***``."""
    for secret in secrets:
        text = text.replace(secret, b"***")
    return text


def _holds_secret(tree: Any) -> bool:
    if isinstance(tree, dict | list):
        return any(map(_holds_secret, tree.values() if isinstance(tree, dict) else tree))
    return isinstance(tree, Secret)


def _revealed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _revealed(item) for name, item in value.items()}
    if isinstance(value, list):
        return list(map(_revealed, value))
    return value.reveal() if isinstance(value, Secret) else value


def _text_to_send(value: Any) -> str:
    """Return a value as the text that is sent; a secret is revealed here."""
    return value.reveal() if isinstance(value, Secret) else text_of(value)
