"""The request of a record as it would be sent now, with a name in the place of every secret."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rowcall.cli.setup.shell_words import LONGEST_WORD, shell_word
from rowcall.config import Config, Reference
from rowcall.engine.run_parts import call_key
from rowcall.progress import clean
from rowcall.providers.base import CallContext, Provider
from rowcall.run.make_calls import provider_of
from rowcall.sources.keys import input_hash, request_hash

_CURL_ADDS = ("host", "content-length")
"""Headers that every client writes by itself."""
_JOIN = " \\\n  "
_NUL = "; printf '\\000'; "
"""Between two parts of a body: no word of a command can hold a NUL."""


@dataclass(slots=True)
class Marks:
    """Stand-ins for secrets, which no text holds by chance: how a shell gets the secret behind each."""

    folder: Path
    by_mark: dict[str, str] = field(default_factory=dict)

    def __call__(self, reference: Reference) -> str:
        """A new stand-in; it goes unchanged through headers, URLs and JSON."""
        mark = f"SECRET-{secrets.token_hex(8)}"
        self.by_mark[mark] = self._expression(reference)
        return mark

    def named(self, text: str) -> str:
        """The text with each secret by its name, ``$OPENAI_API_KEY``."""
        return self._replaced(text, str, str)

    def quoted(self, text: str) -> str:
        """The text as one word of a shell that puts the secrets in."""
        return self._replaced(text, shell_word, '"{}"'.format) or "''"

    def _replaced(self, text: str, plain: Callable[[str], str], secret: Callable[[str], str]) -> str:
        if not self.by_mark:
            return plain(text) if text else ""
        parts = re.split("(" + "|".join(self.by_mark) + ")", text)
        return "".join(secret(self.by_mark[part]) if part in self.by_mark else plain(part) for part in parts if part)

    def _expression(self, reference: Reference) -> str:
        match reference.kind:
            case "env":
                return f"${reference.name}"
            case "file":
                return f"$(cat {shell_word(str(self.folder / Path(reference.name).expanduser()))})"
            case _:
                return f"$({' '.join(map(shell_word, shlex.split(reference.name)))})"


@dataclass(frozen=True, slots=True)
class ShownRequest:
    """A request that can be shown: no secret is in it. ``body`` is text."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: str
    curl: str

    def as_json(self) -> dict[str, Any]:
        """For ``show --json``."""
        return {"method": self.method, "url": self.url, "headers": dict(self.headers), "body": self.body or None}

    def lines(self, longest: int | None = None) -> list[str]:
        """For a terminal; the body is cut at ``longest`` characters."""
        body = clean(self.body)
        if longest is not None and len(body) > longest:
            body = f"{body[:longest]}... ({len(body):,} characters)"
        headers = [f"{name}: {clean(value)}" for name, value in self.headers.items()]
        return [f"{self.method} {clean(self.url)}", *headers, *([body] if body else [])]


class Preview:
    """Builds the requests of a config without its secrets; nothing is looked up but files that hold none.

    Raises:
        ConfigError: a file that cannot be read, a value that cannot be used.
        TemplateError: a template that cannot be compiled.
    """

    def __init__(self, config: Config) -> None:
        self._marks = Marks(config.folder)
        self._request_hash = request_hash(config.fingerprint())
        self.provider: Provider = provider_of(config.masked(self._marks))

    def show(self, key: str, data: Mapping[str, Any]) -> ShownRequest:
        """The request of one record.

        Raises:
            TemplateError: a template cannot be rendered for it.
        """
        hashed = input_hash(data, self.provider.columns, self.provider.files)
        call = CallContext(call_key(self._request_hash, key, hashed))
        request = self.provider.build(data, call)
        headers = {name: value for name, value in request.headers.items() if name not in _CURL_ADDS}
        return self._shown(request.method, str(request.url), headers, request.content)

    def _shown(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> ShownRequest:
        named, body = self._marks.named, content.decode("utf-8", "replace")
        shown = {name: named(value) for name, value in headers.items()}
        return ShownRequest(method, named(url), shown, named(body), self._curl(method, url, headers, body))

    def _curl(self, method: str, url: str, headers: Mapping[str, str], body: str) -> str:
        quoted = self._marks.quoted
        words = [f"curl -X {quoted(method)} {quoted(url)}"]
        if any(sign in url for sign in "[]{}"):
            words.append("--globoff")  # otherwise curl reads these signs as several URLs
        words += [f"-H {quoted(f'{name}: {value}' if value else f'{name};')}" for name, value in headers.items()]
        if not body:
            return _JOIN.join(words)
        word = quoted(body)
        if "\0" not in body and len(word.encode()) <= LONGEST_WORD:
            return _JOIN.join([*words, f"--data-raw {word}"])  # --data-binary takes @name for a file
        parts = (f"printf '%s' {quoted(part)}" for part in body.split("\0"))
        return f"{{ {_NUL.join(parts)}; }} | " + _JOIN.join([*words, "--data-binary @-"])
