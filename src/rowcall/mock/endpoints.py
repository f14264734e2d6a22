"""The endpoints of the mock API: OpenAI's, Anthropic's messages, Gemini's generateContent, and a REST look-up of words.

Requests and answers have the formats of the APIs' references. All errors have OpenAI's format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import orjson
from aiohttp import web

from rowcall.mock.chat_answers import (
    Prompt,
    Shape,
    as_candidates,
    as_chat,
    as_message,
    as_response,
    content_text,
    last_user_text,
    tokens,
)
from rowcall.mock.embedding import embedding
from rowcall.mock.sentiment import entry, sentiment

_WORDS = "/v1/words/"
_SENTIMENT = "/v1/sentiment"
_GENERATE = re.compile(r"/v1(?:beta)?/models/([^/:]+):generateContent")

Body = dict[str, Any]


class Question(Protocol):
    """A request that was read; ``text`` is what it asks about."""

    @property
    def text(self) -> str:
        """The last user message, the word or the sentence; empty without one."""

    def answer(self, id_: str) -> web.Response:
        """Return the correct answer; ``id_`` is the id of the request."""


_Reader = tuple[Callable[[Body], Question | None], Callable[[Body], Question]]
"""Two functions: one finds an error in a request's body, the other makes a question of a correct body."""


def read(method: str, path: str, query: Mapping[str, str], body: bytes, *, any_path: bool = False) -> Question:
    """Read a request. An incorrect request becomes a question whose answer is the error.

    With ``any_path`` an unknown path is not an error; its answer is an empty object.
    """
    if readers := _posts(path):
        return _read_json(body, *readers) if method == "POST" else _wrong_method(method, path)
    if path == _SENTIMENT:
        return _read_sentence(query) if method == "GET" else _wrong_method(method, path)
    if path.startswith(_WORDS) and len(path) > len(_WORDS):
        return _WordQuestion(path[len(_WORDS) :]) if method == "GET" else _wrong_method(method, path)
    if any_path:
        return _EmptyQuestion()
    return _IncorrectRequest(404, f"Unknown request URL: {method} {path}.", code="unknown_url")


def _posts(path: str) -> _Reader | None:
    """Return the functions that read the JSON sent to a path; None for an unknown path."""
    model = _GENERATE.fullmatch(path)
    return (_fault_of_contents, _contents(model[1])) if model else _POSTS.get(path)


def error(
    status: int,
    message: str,
    *,
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> web.Response:
    """Return an error in OpenAI's format; its type follows from the status."""
    detail = {"message": message, "type": _error_type(status), "param": param, "code": code}
    return json_response(status, {"error": detail}, headers)


def json_response(status: int, value: Any, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return a JSON value as a response."""
    all_headers = {"Content-Type": "application/json", **(headers or {})}
    return web.Response(status=status, body=orjson.dumps(value), headers=all_headers)


@dataclass(frozen=True, slots=True)
class _PromptQuestion:
    """A prompt, and the function that formats its answer."""

    prompt: Prompt
    shape: Shape

    @property
    def text(self) -> str:
        return self.prompt.text

    def answer(self, id_: str) -> web.Response:
        return json_response(200, self.shape(self.prompt.answer(id_)))


@dataclass(frozen=True, slots=True)
class _EmbeddingQuestion:
    texts: tuple[str, ...]
    model: str

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    def answer(self, id_: str) -> web.Response:
        data = [
            {"object": "embedding", "index": index, "embedding": embedding(text)}
            for index, text in enumerate(self.texts)
        ]
        read = sum(map(tokens, self.texts))
        usage = {"prompt_tokens": read, "total_tokens": read}
        return json_response(200, {"object": "list", "data": data, "model": self.model, "usage": usage})


@dataclass(frozen=True, slots=True)
class _WordQuestion:
    text: str

    def answer(self, id_: str) -> web.Response:
        found = entry(self.text)
        if found is None:
            return error(404, f"The word {self.text!r} is not in the lexicon.", code="unknown_word")
        return json_response(200, found)


@dataclass(frozen=True, slots=True)
class _SentenceQuestion:
    text: str

    def answer(self, id_: str) -> web.Response:
        return json_response(200, {"text": self.text, **asdict(sentiment(self.text))})


@dataclass(frozen=True, slots=True)
class _IncorrectRequest:
    status: int
    message: str
    code: str | None = None
    param: str | None = None
    text: str = ""

    def answer(self, id_: str) -> web.Response:
        return error(self.status, self.message, code=self.code, param=self.param)


@dataclass(frozen=True, slots=True)
class _EmptyQuestion:
    text: str = ""

    def answer(self, id_: str) -> web.Response:
        return json_response(200, {})


def _read_sentence(query: Mapping[str, str]) -> Question:
    text = query.get("text")
    return (
        _IncorrectRequest(400, "Missing required parameter: 'text'.", param="text")
        if text is None
        else _SentenceQuestion(text)
    )


def _read_json(body: bytes, fault_of: Callable[[Body], Question | None], make: Callable[[Body], Question]) -> Question:
    try:
        document = orjson.loads(body)
    except ValueError:
        return _IncorrectRequest(400, "We could not parse the JSON body of your request.", code="invalid_json")
    if not isinstance(document, dict):
        return _IncorrectRequest(400, "The body of your request must be a JSON object.", code="invalid_json")
    return fault_of(document) or make(document)


def _prompted(messages: list[tuple[str, str]], model: str, limit: Any, shape: Shape) -> Question:
    characters = sum(len(text) for _, text in messages)
    return _PromptQuestion(Prompt(last_user_text(messages), model, characters, limit), shape)


def _roles_and_texts(messages: Any, system: Any = None) -> list[tuple[str, str]]:
    """Return pairs of role and text; a string instead of messages is the user's."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    first = [("system", content_text(system))] if system else []
    return first + [(message.get("role", "user"), content_text(message.get("content"))) for message in messages]


def _chat(document: Body) -> Question:
    return _prompted(_roles_and_texts(document["messages"]), document["model"], _limit(document), as_chat)


def _response(document: Body) -> Question:
    messages = _roles_and_texts(document["input"], document.get("instructions"))
    return _prompted(messages, document["model"], document.get("max_output_tokens"), as_response)


def _messages(document: Body) -> Question:
    return _prompted(
        _roles_and_texts(document["messages"], document.get("system")),
        document["model"],
        document["max_tokens"],
        as_message,
    )


def _contents(model: str) -> Callable[[Body], Question]:
    def contents(document: Body) -> Question:
        messages = [(content.get("role", "user"), content_text(content["parts"])) for content in document["contents"]]
        limit = document.get("generationConfig", {}).get("maxOutputTokens")
        return _prompted(messages, model, limit, as_candidates)

    return contents


def _fault_of_response(document: Body) -> Question | None:
    if not isinstance(document.get("model"), str):
        return _invalid("model", "a model's name")
    given = document.get("input")
    if isinstance(given, str) or (isinstance(given, list) and all(isinstance(item, dict) for item in given)):
        return None
    return _invalid("input", "a text, or a list of items")


def _fault_of_messages(document: Body) -> Question | None:
    if not isinstance(document.get("max_tokens"), int):
        return _invalid("max_tokens", "a whole number of at least 1")
    return _fault_of_chat(document)


def _fault_of_contents(document: Body) -> Question | None:
    contents = document.get("contents")
    fit = isinstance(contents, list) and all(isinstance(one, dict) and "parts" in one for one in contents)
    return (
        None if fit and "model" not in document else _invalid("contents", "a list with parts; the model is in the path")
    )


def _fault_of_chat(document: Body) -> Question | None:
    messages, limit = document.get("messages"), _limit(document)
    if not isinstance(document.get("model"), str) or not document["model"]:
        return _invalid("model", "a model's name")
    if not isinstance(messages, list) or not messages:
        return _invalid("messages", "a list with at least one message")
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        return _invalid("max_tokens", "a whole number of at least 1")
    return next((fault for at, message in enumerate(messages) if (fault := _message_fault(at, message))), None)


def _texts(document: Body) -> Question:
    texts = document["input"]
    return _EmbeddingQuestion((texts,) if isinstance(texts, str) else tuple(texts), document["model"])


def _fault_of_texts(document: Body) -> Question | None:
    texts = document.get("input")
    if not isinstance(document.get("model"), str) or not document["model"]:
        return _invalid("model", "a model's name")
    if isinstance(texts, str) and texts:
        return None
    if isinstance(texts, list) and texts and all(isinstance(text, str) and text for text in texts):
        return None
    return _invalid("input", "a text, or a list of texts, none of them empty")


def _message_fault(at: int, message: Any) -> Question | None:
    if not isinstance(message, dict):
        return _invalid(f"messages[{at}]", "an object")
    if not isinstance(message.get("role"), str):
        return _invalid(f"messages[{at}].role", "a string")
    if not isinstance(message.get("content"), str | list | None):
        return _invalid(f"messages[{at}].content", "a string or a list of parts")
    return None


def _invalid(param: str, wanted: str) -> Question:
    return _IncorrectRequest(400, f"Invalid value for '{param}': expected {wanted}.", code="invalid_value", param=param)


def _wrong_method(method: str, path: str) -> Question:
    return _IncorrectRequest(405, f"Not allowed to {method} on {path}.", code="method_not_supported")


def _limit(document: Body) -> Any:
    """Return the token limit of the answer; ``max_tokens`` is the older name of the parameter."""
    return document.get("max_completion_tokens", document.get("max_tokens"))


def _error_type(status: int) -> str:
    if status == 429:
        return "requests"
    return "server_error" if status >= 500 else "invalid_request_error"


_POSTS: Mapping[str, _Reader] = {
    "/v1/chat/completions": (_fault_of_chat, _chat),
    "/v1/responses": (_fault_of_response, _response),
    "/v1/embeddings": (_fault_of_texts, _texts),
    "/v1/messages": (_fault_of_messages, _messages),
}
