"""One model per table of the config file, with its defaults. Durations are in seconds.

A model has one field per key of its table, so some are wide. The text of every ``ValueError`` follows the name of the
key in a message: "pace.requests must be ...".
"""

from __future__ import annotations

import codecs
import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from rowcall.config.export_formats import ExportFormat
from rowcall.config.references import is_reference
from rowcall.config.secret import Secret
from rowcall.config.units import Duration, MaxFailures, RateLimits, Share, Size, TokenRateLimits, quoted
from rowcall.model.store_location import StoreLocation

Preset = Literal["openai", "anthropic", "gemini", "openrouter", "ollama", "vllm", "openai-batch", "http", "mock"]
Policy = Literal["stop", "skip"]
InputFormat = Literal["csv", "tsv", "jsonl", "json", "sqlite", "parquet", "xlsx", "openai-batch"]


class ConfigTable(BaseModel):
    """A table of the config file. No value is converted, unknown keys are errors, and nothing can be changed later."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


def _known_encoding(name: str) -> str:
    try:
        codecs.lookup(name)
    except (LookupError, ValueError):
        raise ValueError(f'must be an encoding such as "utf-8", "latin-1" or "utf-16", not {quoted(name)}') from None
    return name


def _jmespath(expression: str) -> str:
    import jmespath
    from jmespath.exceptions import JMESPathError

    try:
        jmespath.compile(expression)
    except JMESPathError as error:
        raise ValueError(f"must be JMESPath, not {quoted(expression)}: {_first_line(error)}") from None
    return expression


def _first_line(error: Exception) -> str:
    """Return the line of a JMESPath error that says what is wrong, without the drawing of the expression below it."""
    text = str(error).replace("Invalid jmespath expression: ", "").replace("Bad jmespath expression: ", "")
    return text.split("\n", 1)[0].removesuffix(", for expression:").rstrip(":")


def _base_url(url: str) -> str:
    """Check an http(s) URL, which may have a query. Messages never repeat it: it may contain a password."""
    try:
        parts = urlsplit(url)
        fit = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and not parts.fragment
    except ValueError:
        fit = False
    if not fit or re.search(r"\s", url):
        raise ValueError('must be a URL such as "https://api.example.com/v1"')
    if "@" in parts.netloc:
        raise ValueError("must not contain a user name or password; send them in a header, as { env = ... }")
    return url


def _status(value: Any) -> str:
    text = str(value).lower() if isinstance(value, int | str) else ""
    if not re.fullmatch(r"[1-5](?:xx|\d\d)", text, re.ASCII):
        raise ValueError(f'must be a status such as "404" or "4xx", not {quoted(value)}')
    return text


def _function_path(path: str) -> str:
    file, _, name = path.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        raise ValueError(f'must be a file and a function in it, such as "tasks.py:label", not {quoted(path)}')
    return path


def _key_reference(value: Any) -> Any:
    """Check for a reference or a ``Secret``. Messages never repeat a key that is written in the file."""
    if isinstance(value, str):
        raise ValueError("must not be written in the file: anybody who can read the file could read the key")
    if not isinstance(value, Secret) and not is_reference(value):
        raise ValueError("must be a reference")
    return value


def _proxy(value: Any) -> Any:
    """Check for a URL without credentials, ``none``, a reference or a ``Secret``. Messages never repeat a URL."""
    if isinstance(value, Secret) or is_reference(value):
        return value
    if not isinstance(value, str) or not value.strip():
        raise ValueError('must be a URL such as "http://proxy.example.com:3128", "none", or a reference')
    if "@" in value:
        raise ValueError("must not contain a user name or password: anybody who can read the file could read them")
    return value


def _store_file(value: str) -> str:
    if "://" in value:
        raise ValueError("must be the file of a store; to read from a PostgreSQL store, export it and read the export")
    return value


def _store_path(value: Any) -> Any:
    """Check for a file, a URL or a reference. A URL with a password becomes a ``Secret``, named by its public part."""
    if isinstance(value, Secret) or (is_reference(value) and "command" not in value):
        return value
    if not isinstance(value, str):
        raise ValueError('must be a file or a URL in quotes, or a reference such as { env = "DATABASE_URL" }')
    if not value.strip():
        raise ValueError("must not be empty")
    place = StoreLocation.of(value)
    return Secret(str(place), value) if place.is_secret else value


def _dollars(value: float) -> float:
    if not 0 <= value < 1e6:
        raise ValueError(f"must be an amount in dollars, such as 0.25, not {quoted(value)}")
    return value


Text = Annotated[str, Field(min_length=1)]
PositiveDuration = Annotated[Duration, Field(gt=0)]
_FROM_LIST = Field(strict=False)  # TOML gives a list, and a frozen model needs a tuple
Texts = Annotated[tuple[str, ...], _FROM_LIST]
KeyReference = Annotated[dict[str, str] | Secret, BeforeValidator(_key_reference)]
Dollars = Annotated[float, AfterValidator(_dollars)]
ProxyReference = Annotated[str | dict[str, str] | Secret, BeforeValidator(_proxy)]
StoreFile = Annotated[Text, AfterValidator(_store_file)]
StoreReference = Annotated[str | dict[str, str] | Secret, BeforeValidator(_store_path)]
Natural = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Encoding = Annotated[str, AfterValidator(_known_encoding)]
JMESPath = Annotated[str, AfterValidator(_jmespath)]
Status = Annotated[str, BeforeValidator(_status), WithJsonSchema({"type": ["string", "integer"]})]


class InputTable(ConfigTable):
    """``[input]``: the records."""

    path: Text
    key: Text | None = None
    header: Annotated[Texts, Field(min_length=1)] | None = None
    quoting: bool | None = None
    encoding: Encoding | None = None
    sql: Text | None = None
    sheet: Text | None = None
    on_bad: Policy = "stop"
    dedupe: bool = False
    store: StoreFile | None = None
    kind: Text | None = None
    result: Text | None = None
    format: InputFormat | None = None


class MockTable(ConfigTable):
    """``[api.mock]``: how the fake API behaves."""

    latency: Duration = 0.05
    rate_limited: Share = 0.003
    errors: Share = 0.01
    resets: Share = 0.0
    retry_after: Duration = 1.0
    seed: int = 0

    @model_validator(mode="after")
    def _whole(self) -> MockTable:
        if self.rate_limited + self.errors + self.resets > 1:
            raise ValueError("must not draw more than 100% in rate_limited, errors and resets together")
        return self


class ApiTable(ConfigTable):
    """``[api]``: who is called. ``api_key`` is a reference as written, or a ``Secret`` once resolved."""

    preset: Preset
    base_url: Annotated[str, AfterValidator(_base_url)] | None = None
    api_key: KeyReference | None = None
    headers: dict[str, Any] = {}
    timeout: PositiveDuration = 90.0
    connect_timeout: PositiveDuration = 10.0
    proxy: ProxyReference | None = None
    ca_file: Text | None = None
    client_cert: Text | None = None
    client_key: Text | None = None
    mock: MockTable = MockTable()


class RequestTable(ConfigTable):
    """``[request]``: what every record sends; strings are templates, any value may be a reference."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    path: str = ""
    params: dict[str, Any] = {}
    headers: dict[str, Any] = {}
    body: Any = None
    attachments: Text | None = None
    max_attachment: Size = 20_000_000


class AnswerRetryTable(ConfigTable):
    """``[response] retry``: more tries for an answer that breaks the contract, by the reason of the failure."""

    empty: Count = 1
    not_json: Count = 1
    schema_: Count = Field(default=1, alias="schema")
    assertion: Count = 1
    extract_failed: Count = 1
    error_reply: Count = 1
    filtered: Count = 0


class OnTruncatedTable(ConfigTable):
    """``[response] on_truncated``: how an answer that was cut is asked for once more."""

    max_tokens: Natural


class ResponseTable(ConfigTable):
    """``[response]``: where the answer stands in a reply, and what it must look like."""

    extract: JMESPath | None = None
    parse: Literal["json", "text"] | None = None
    json_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    answer: Annotated[tuple[Status, ...], _FROM_LIST] = ()
    assertions: Annotated[tuple[JMESPath, ...], _FROM_LIST] = Field(default=(), alias="assert")
    retry: AnswerRetryTable = AnswerRetryTable()
    on_truncated: OnTruncatedTable | None = None

    @property
    def budgets(self) -> dict[str, int]:
        """More tries for a rejected answer, by reason; a truncated one only where a larger limit is named."""
        return {**self.retry.model_dump(by_alias=True), "truncated": 0 if self.on_truncated is None else 1}


class HandlerTable(ConfigTable):
    """``[handler]``: a function of the user's own in the place of ``[request]``."""

    path: Annotated[str, AfterValidator(_function_path)]
    version: Text = "1"
    columns: Annotated[Texts, Field(min_length=1)] | None = None


class OutputTable(ConfigTable):
    """``[output]``: the export; without a path none is written."""

    path: Text | None = None
    format: ExportFormat | None = None
    table: Text | None = None
    keep: Texts | None = None
    overwrite: bool = False
    flatten: bool = False
    order: Literal["input", "completion"] = "input"
    columns: Annotated[dict[str, JMESPath], Field(min_length=1)] = {"result": "@"}


class PaceTable(ConfigTable):
    """``[pace]``: how fast."""

    concurrency: Natural = 32
    processes: Natural = 1
    adaptive: bool = True
    requests: RateLimits | None = None
    tokens: TokenRateLimits | None = None
    loop: Literal["asyncio", "uvloop"] = "asyncio"


class GroupTable(ConfigTable):
    """``[group]``: many records in one call."""

    size: Annotated[int, Field(ge=1, le=2048)] | None = None
    characters: Natural | None = None


class BackoffTable(ConfigTable):
    """``[retry] backoff``: the first wait, doubled with every further one up to ``max``."""

    first: PositiveDuration = 1.0
    max: PositiveDuration = 60.0

    @model_validator(mode="after")
    def _ordered(self) -> BackoffTable:
        if self.first > self.max:
            raise ValueError("must not begin with a longer wait than its max")
        return self


class RetryTable(ConfigTable):
    """``[retry]``: charged tries per record."""

    attempts: Natural = 3
    backoff: BackoffTable = BackoffTable()
    max_wait: PositiveDuration | None = None


class PriceTable(ConfigTable):
    """``[price]``: what calls cost, in dollars, for a million tokens or for a call; a number goes before ``from``."""

    source: Literal["genai-prices", "reply"] | None = Field(default=None, alias="from")
    model: Text | None = None
    provider: Text | None = None
    input: Dollars | None = None
    output: Dollars | None = None
    cached: Dollars | None = None
    reasoning: Dollars | None = None
    per_call: Dollars | None = None


class StopTable(ConfigTable):
    """``[stop]``: when a run ends early."""

    max_cost: Annotated[Dollars, Field(gt=0)] | None = None
    grace: Duration = 30.0
    first_success: PositiveDuration = 60.0
    offline_for: PositiveDuration | None = None
    max_failures: MaxFailures | None = None


class StoreTable(ConfigTable):
    """``[store]``: the database."""

    path: StoreReference
    lease: PositiveDuration = 60.0
    durability: Literal["full", "normal"] = "full"
