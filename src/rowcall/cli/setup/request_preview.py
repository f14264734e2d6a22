"""Builds the request of a record as it would be sent now, with a name in place of every secret."""

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
"""Headers that curl adds by itself."""
_JOIN = " \\\n  "
_NUL = "; printf '\\000'; "
"""Between two parts of a body: a word of a command cannot contain a NUL."""


@dataclass(slots=True)
class SecretPlaceholders:
    """Gives out placeholders for secrets, and replaces them in a finished request.

    A placeholder is random, so that no other text of the request can contain it.

    Attributes:
        folder: where the config is; files that hold secrets are relative to it.
        expressions: by placeholder, the shell expression that gives the secret.
    """

    folder: Path
    expressions: dict[str, str] = field(default_factory=dict)

    def __call__(self, reference: Reference) -> str:
        """Return a new placeholder; headers, URLs and JSON leave its characters unchanged."""
        placeholder = f"SECRET-{secrets.token_hex(8)}"
        self.expressions[placeholder] = self._expression(reference)
        return placeholder

    def named(self, text: str) -> str:
        """Return the text with each secret by its name, such as ``$OPENAI_API_KEY``."""
        return self._replaced(text, str, str)

    def quoted(self, text: str) -> str:
        """Return the text quoted as one word for a shell, which fills in the secrets."""
        return self._replaced(text, shell_word, '"{}"'.format) or "''"

    def _replaced(self, text: str, plain: Callable[[str], str], secret: Callable[[str], str]) -> str:
        if not self.expressions:
            return plain(text) if text else ""
        parts = (part for part in re.split("(" + "|".join(self.expressions) + ")", text) if part)
        return "".join(secret(self.expressions[p]) if p in self.expressions else plain(p) for p in parts)

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
    """A request without secrets, which can be shown; ``body`` is text."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: str
    curl: str

    def as_json(self) -> dict[str, Any]:
        """Return it as ``show --json`` prints it."""
        return {"method": self.method, "url": self.url, "headers": dict(self.headers), "body": self.body or None}

    def lines(self, longest: int | None = None) -> list[str]:
        """Return its lines for a terminal; the body is cut at ``longest`` characters."""
        body = clean(self.body)
        if longest is not None and len(body) > longest:
            body = f"{body[:longest]}... ({len(body):,} characters)"
        headers = [f"{name}: {clean(value)}" for name, value in self.headers.items()]
        return [f"{self.method} {clean(self.url)}", *headers, *([body] if body else [])]


class RequestPreview:
    """Builds the requests of a config without its secrets: it reads no variables, key files or command output.

    Raises:
        ConfigError: a file that cannot be read, a value that cannot be used.
        TemplateError: a template that cannot be compiled.
    """

    def __init__(self, config: Config) -> None:
        self._placeholders = SecretPlaceholders(config.folder)
        self._request_hash = request_hash(config.fingerprint())
        self.provider: Provider = provider_of(config.masked(self._placeholders))

    def show(self, key: str, data: Mapping[str, Any]) -> ShownRequest:
        """Build the request of one record.

        Raises:
            TemplateError: a template cannot be rendered for it.
        """
        hashed = input_hash(data, self.provider.columns, self.provider.files)
        call = CallContext(call_key(self._request_hash, key, hashed))
        request = self.provider.build(data, call)
        headers = {name: value for name, value in request.headers.items() if name not in _CURL_ADDS}
        return self._shown(request.method, str(request.url), headers, request.content)

    def _shown(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> ShownRequest:
        named, body = self._placeholders.named, content.decode("utf-8", "replace")
        shown = {name: named(value) for name, value in headers.items()}
        return ShownRequest(method, named(url), shown, named(body), self._curl(method, url, headers, body))

    def _curl(self, method: str, url: str, headers: Mapping[str, str], body: str) -> str:
        quoted = self._placeholders.quoted
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
