"""The mock's model: judges the sentiment of a text and answers in the formats of four APIs.

The formats are those in the references of OpenAI's chat completions and responses, Anthropic's messages and Gemini's
generateContent.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from rowcall.mock.sentiment import sentiment

CHARACTERS_PER_TOKEN = 4

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChatReply:
    """The model's answer.

    Attributes:
        id: the id of the request.
        model: the name of the model.
        text: the text, JSON.
        cut: the token limit has cut the text.
        read: input tokens.
        written: output tokens.
    """

    id: str
    model: str
    text: str
    cut: bool
    read: int
    written: int


Shape = Callable[[ChatReply], Document]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt for the model.

    Attributes:
        text: the text to judge.
        model: the name of the model.
        characters: the number of characters in all messages.
        most: the token limit of the answer; None: none.
    """

    text: str
    model: str
    characters: int
    most: int | None

    def answer(self, id_: str) -> ChatReply:
        """Return the correct answer: the sentiment as JSON."""
        whole = orjson.dumps(asdict(sentiment(self.text))).decode()
        cut = self.most is not None and tokens(whole) > self.most
        text = whole[: (self.most or 0) * CHARACTERS_PER_TOKEN] if cut else whole
        return ChatReply(id_, self.model, text, cut, math.ceil(self.characters / CHARACTERS_PER_TOKEN), tokens(text))


def tokens(text: str) -> int:
    """Estimate the number of tokens in a text: one for every four characters."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def content_text(content: Any) -> str:
    """Return the text of a message's content, which is a string or a list of parts."""
    if not isinstance(content, list):
        return content or ""
    parts = (part.get("text") for part in content if isinstance(part, dict))
    return "".join(text for text in parts if isinstance(text, str))


def as_chat(reply: ChatReply) -> Document:
    """Format a reply as an OpenAI chat completion."""
    message = {"role": "assistant", "content": reply.text, "refusal": None}
    return {
        "id": f"chatcmpl-{reply.id}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": reply.model,
        "choices": [{"index": 0, "message": message, "finish_reason": "length" if reply.cut else "stop"}],
        "usage": {
            "prompt_tokens": reply.read,
            "completion_tokens": reply.written,
            "total_tokens": reply.read + reply.written,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


def as_response(reply: ChatReply) -> Document:
    """Format a reply as an OpenAI response."""
    text = {"type": "output_text", "text": reply.text, "annotations": []}
    return {
        "id": f"resp_{reply.id}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "incomplete" if reply.cut else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if reply.cut else None,
        "model": reply.model,
        "output": [{"type": "message", "id": f"msg_{reply.id}", "role": "assistant", "content": [text]}],
        "usage": {
            "input_tokens": reply.read,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": reply.written,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": reply.read + reply.written,
        },
    }


def as_message(reply: ChatReply) -> Document:
    """Format a reply as an Anthropic message, with half of the input as cached; ``input_tokens`` excludes that."""
    cached = reply.read // 2
    return {
        "id": f"msg_{reply.id}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": [{"type": "text", "text": reply.text}],
        "stop_reason": "max_tokens" if reply.cut else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": reply.read - cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": cached,
            "output_tokens": reply.written,
        },
    }


def as_candidates(reply: ChatReply) -> Document:
    """Format a reply as a response of Gemini's generateContent."""
    content = {"role": "model", "parts": [{"text": reply.text}]}
    return {
        "candidates": [{"content": content, "finishReason": "MAX_TOKENS" if reply.cut else "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": reply.read,
            "candidatesTokenCount": reply.written,
            "totalTokenCount": reply.read + reply.written,
        },
        "modelVersion": reply.model,
        "responseId": reply.id,
    }


def last_user_text(messages: Iterable[tuple[str, str]]) -> str:
    """Return the last text of the user from pairs of role and text."""
    return next((text for role, text in reversed(list(messages)) if role == "user"), "")
