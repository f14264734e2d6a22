"""From a record to the bytes of a request; what is the same for every record is made once."""

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
from rowcall.templates.sandbox import text_of

Header = tuple[bytes, bytes]

_JSON = (b"content-type", b"application/json")
_TEXT = (b"content-type", b"text/plain; charset=utf-8")


def parse_base_url(base_url: str) -> httpx.URL:
    """The URL that paths are joined to.

    Raises:
        ConfigError: no http(s) URL, or one with a user and password in it.
    """
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        raise _bad_url("it is no URL") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise _bad_url("it needs http:// or https://, and a host")
    if url.userinfo:
        raise _bad_url("it must not hold a user name or password; a header takes them from the environment")
    return url.copy_with(fragment=None)


def _bad_url(why: str) -> ConfigError:
    """The URL itself is never part of the message: it may hold a secret."""
    return ConfigError(Problem("api.base_url", why, 'Write it as "https://api.example.com/v1".'))


def target_of(base: httpx.URL) -> str:
    """Scheme, host and port."""
    return f"{base.scheme}://{base.netloc.decode('ascii')}"


def make_request(method: str, url: httpx.URL, headers: list[Header], content: bytes | None) -> httpx.Request:
    """What ``httpx.Request`` makes of its content, in a fifth of the time; header names are lower case."""
    if not content:
        return httpx.Request(method, url, headers=headers, content=content)
    given = {name for name, _ in headers}
    usual = ((b"host", url.netloc), (b"content-length", b"%d" % len(content)))
    whole = [*(header for header in usual if header[0] not in given), *headers]
    request = httpx.Request(method, url, headers=whole, stream=httpx.ByteStream(content))
    request.read()
    return request


def with_model(path: str, body: Any) -> tuple[str, Any]:
    """The path with the ``model`` of the body in the place of ``{model}``, and the body without it.

    Raises:
        ConfigError: the body has none, or one that is no text.
    """
    if "{model}" not in path:
        return path, body
    model = body.get("model") if isinstance(body, Mapping) else None
    if not isinstance(model, str) or not model:
        raise ConfigError(Problem("request.body.model", "is missing", "It stands in the path of this API's calls."))
    return path.replace("{model}", model), {name: value for name, value in body.items() if name != "model"}


class URLPart:
    """Builds the URL: ``base``, then ``path`` without doubled slashes, then the queries of both, then ``params``.

    In ``params`` null leaves a name out, and a list repeats it.
    """

    def __init__(self, base: httpx.URL, path: Any, params: Mapping[str, Any]) -> None:
        self._path = compile_tree(path, where="request.path", escape=_segment)
        self._params = compile_tree(dict(params), where="request.params")
        self._base = str(base.copy_with(query=None))
        self._base_query = base.query.decode("ascii")
        self.trees = (self._path, self._params)
        self._ready = self._join({}) if all(tree.constant for tree in self.trees) else None

    def build(self, row: Mapping[str, Any]) -> httpx.URL:
        """The URL for one record."""
        return self._ready or self._join(row)

    def _join(self, row: Mapping[str, Any]) -> httpx.URL:
        path, _, query = _shown(self._path.render(row)).partition("?")
        url = f"{self._base.rstrip('/')}/{path.lstrip('/')}" if path else self._base
        queries = self._base_query, query, urlencode(_pairs(self._params.render(row)), quote_via=quote)
        joined = "&".join(filter(None, queries))
        try:
            return httpx.URL(f"{url}?{joined}" if joined else url)
        except httpx.InvalidURL as error:
            raise TemplateError(f"request.path: {error}", remedy="See it with: rowcall preview") from error


def _segment(text: str) -> str:
    """A value inside a path: it can neither leave its segment nor start a query."""
    if text in ("", ".", ".."):
        raise ValueError(f"the value {text!r} cannot stand in the path of a URL")
    return quote(text, safe="")


def _pairs(params: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, _shown(item))
        for name, value in params.items()
        for item in (value if isinstance(value, list) else [value])
        if item is not None
    ]


class HeadersPart:
    """Builds the headers; null leaves one out.

    Args:
        tables: headers by their place in the config; later ones win, whatever the case of their names.
        api_key: goes out in ``key_header`` where no table has that header.
        key_header: its name, in lower case, and what stands before the key.
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
            self._ready.append((name.encode(), _header_value(f"{before}{_shown(api_key)}", "api.api_key")))

    def build(self, row: Mapping[str, Any], call: Mapping[str, Any]) -> list[Header]:
        """The headers for one record."""
        return [*self._ready, *_headers(self._rendered, row, call)]


def _compiled(table: Mapping[str, Any], where: str) -> Iterable[tuple[str, TemplateTree]]:
    for name, value in table.items():
        yield name.lower(), compile_tree(value, where=f"{where}.{name}", call=True)


def _headers(trees: Mapping[str, TemplateTree], row: Mapping[str, Any], call: Mapping[str, Any]) -> Iterable[Header]:
    for name, tree in trees.items():
        value = tree.render(row, call)
        if value is not None:
            yield name.encode(), _header_value(_shown(value), tree.where)


def _header_value(text: str, where: str) -> bytes:
    """The value is never part of the message: it may be a secret."""
    if any(character in text for character in "\r\n\0"):
        raise TemplateError(f"{where}: the value holds a line break", remedy="Take it out, with | trim for example.")
    return text.encode()


class BodyPart:
    """Builds the body: text goes out as text, everything else as JSON, null as no body.

    Args:
        body: templates.
        typed: the headers have a Content-Type.
        limits: where a body may limit the tokens of its answer.
        attachments: where its files are; those that the body names are found in it afterwards.
    """

    def __init__(self, body: Any, *, typed: bool, limits: Sequence[str] = (), attachments: Attachments) -> None:
        self._attachments = attachments
        self._tree = compile_tree(attachments.taken_from(body, "request.body"), where="request.body")
        self._typed = typed
        self._limits = limits
        self._secret = _holds_secret(body)
        self.trees = (self._tree, *(one.path for one in attachments.found))

    def build(
        self, row: Mapping[str, Any], limit: int | None = None, *, bare: bool = False
    ) -> tuple[list[Header], bytes | None]:
        """The body for one record, and its Content-Type unless the headers have one.

        Args:
            row: the record.
            limit: tokens that the answer may have, in the place of what the body says.
            bare: no attached file is read.
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
        headers = [] if self._typed else [_TEXT if isinstance(body, str) else _JSON]
        try:
            return headers, body.encode() if isinstance(body, str) else json_values.dumps(body)
        except (TypeError, ValueError) as error:
            raise TemplateError(f"request.body: {error}", remedy="See it with: rowcall preview") from error


def with_limit(body: Any, places: Sequence[str], tokens: int) -> Any:
    """A copy of a body with another limit of tokens: where it has one, else at the last of ``places``."""
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
    """What must not appear in a message; too short a text would blot out words that are none."""
    found: set[bytes] = set()
    for tree in trees:
        if isinstance(tree, Secret):
            found.add(tree.reveal().encode())
        elif isinstance(tree, Mapping | list | tuple):
            found |= secrets_in(*(tree.values() if isinstance(tree, Mapping) else tree))
    return frozenset(secret for secret in found if len(secret) >= _SHORTEST_SECRET)


_SHORTEST_SECRET = 4


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


def _shown(value: Any) -> str:
    """A value as text, where it goes out."""
    return value.reveal() if isinstance(value, Secret) else text_of(value)
