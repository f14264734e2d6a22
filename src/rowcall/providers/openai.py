"""OpenAI's chat completions, responses and embeddings, and the APIs that are compatible with them.

Source: https://platform.openai.com/docs/api-reference (chat, responses, embeddings). OpenRouter adds the cost of the
call in dollars. If a model fails after it has started, OpenRouter reports an ``error`` beside or inside ``choices`` in
a reply with status 200.
"""

from __future__ import annotations

from dataclasses import replace

from rowcall.config.preset_defaults import PRESET_DEFAULTS
from rowcall.providers.dialect import PLAIN_OPERATION, Dialect, GroupFormat, Operation, Preset

CHAT = Operation(
    extract="choices[0].message.content",
    dialect=Dialect(
        input=("usage.prompt_tokens",),
        output=("usage.completion_tokens",),
        cached=("usage.prompt_tokens_details.cached_tokens",),
        reasoning=("usage.completion_tokens_details.reasoning_tokens",),
        cost="usage.cost",
        errors=("error", "choices[0].error"),
        ends=("choices[0].finish_reason",),
        meanings={"length": "truncated", "content_filter": "filtered", "error": "error_reply"},
        refusal="choices[0].message.refusal",
        id="id",
        limits=("max_tokens", "max_completion_tokens"),
        text=True,
    ),
)

RESPONSES = Operation(
    extract="join('', (output[?type=='message'].content[] || `[]`)[?type=='output_text'].text)",
    dialect=Dialect(
        input=("usage.input_tokens",),
        output=("usage.output_tokens",),
        cached=("usage.input_tokens_details.cached_tokens",),
        reasoning=("usage.output_tokens_details.reasoning_tokens",),
        errors=("error",),
        ends=("incomplete_details.reason", "status"),
        meanings={"max_output_tokens": "truncated", "content_filter": "filtered", "failed": "error_reply"},
        refusal="output[].content[] | [?type=='refusal'].refusal | [0]",
        id="id",
        limits=("max_output_tokens",),
        text=True,
    ),
)

EMBEDDINGS = Operation(
    extract="data[0].embedding",
    dialect=Dialect(input=("usage.prompt_tokens",), errors=("error",)),
    group=GroupFormat(input="input", answers="data", index="index", most=2048),
)

ANY_OPERATION = Dialect(
    input=(*CHAT.dialect.input, *RESPONSES.dialect.input),
    output=(*CHAT.dialect.output, *RESPONSES.dialect.output),
    cached=(*CHAT.dialect.cached, *RESPONSES.dialect.cached),
    reasoning=(*CHAT.dialect.reasoning, *RESPONSES.dialect.reasoning),
    cost=CHAT.dialect.cost,
    id="id",
)
"""Where a reply of an unknown API may state its usage: under the names that most APIs have adopted from OpenAI."""

OPENAI = Preset(
    defaults=PRESET_DEFAULTS["openai"],
    operations={"/chat/completions": CHAT, "/responses": RESPONSES, "/embeddings": EMBEDDINGS},
)

_OLDER = replace(CHAT, dialect=replace(CHAT.dialect, limits=("max_completion_tokens", "max_tokens")))
_OPENAI_COMPATIBLE = replace(OPENAI, operations={**OPENAI.operations, "/chat/completions": _OLDER})
"""Like OpenAI, but with the older name of the token limit, which all compatible APIs know."""

OPENROUTER = replace(_OPENAI_COMPATIBLE, defaults=PRESET_DEFAULTS["openrouter"])
OLLAMA = replace(_OPENAI_COMPATIBLE, defaults=PRESET_DEFAULTS["ollama"])
VLLM = replace(_OPENAI_COMPATIBLE, defaults=PRESET_DEFAULTS["vllm"])

MOCK = replace(OPENAI, defaults=PRESET_DEFAULTS["mock"], other=PLAIN_OPERATION)
"""The local mock API: like OpenAI at OpenAI's paths, any HTTP API elsewhere. Its URL is known once it listens."""
