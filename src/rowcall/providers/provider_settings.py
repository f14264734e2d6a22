"""What a provider is told by the tables ``[api]``, ``[request]`` and ``[response]``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rowcall.config import Secret
from rowcall.providers.attachments import LARGEST


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """Whose API is called.

    Attributes:
        base_url: the URL that paths are joined to. None: the preset's.
        api_key: sent in the preset's key header, unless the headers already contain that header.
        headers: templates by header name.
    """

    base_url: str | None = None
    api_key: Secret | str | None = None
    headers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """What is sent for each record.

    Attributes:
        method: None: POST if there is a body, else GET.
        path: a template. Values in it are percent-encoded, and ``{model}`` is replaced by the ``model`` of the body,
            which is then removed from the body. None or empty: the preset's.
        params: templates of the query.
        headers: templates by header name. They override those of ``ApiSettings``.
        body: templates. Text is sent as text, everything else as JSON.
        longer: token limit of a call that repeats one whose answer was truncated. None: as in the body.
        folder: relative paths of attached files start here. None: the current folder.
        attachments: the folder that the paths of attached files start in and cannot leave. None: each names its own.
        max_attachment: largest size of one attached file, in bytes.
        own_files: files of rowcall itself, which are never attached.
    """

    method: str | None = None
    path: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    longer: int | None = None
    folder: Path | None = None
    attachments: Path | None = None
    max_attachment: int = LARGEST
    own_files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class ResponseSettings:
    """How the answer is found in a reply, and what it must look like.

    Attributes:
        extract: JMESPath into the reply. None: the preset's.
        parse: ``json``: the extracted text is JSON. ``text``: it is not, and without ``extract`` the whole body is
            the answer, even if it is a web page. None: ``json`` if there is a schema, else ``text``.
        schema: JSON Schema of the answer.
        assertions: JMESPath expressions that must be true for the reply.
        answer: statuses that count as an answer with the value null: ``404``, ``4xx``.
    """

    extract: str | None = None
    parse: str | None = None
    schema: dict[str, Any] | bool | None = None
    assertions: Iterable[str] = ()
    answer: Iterable[str | int] = ()
