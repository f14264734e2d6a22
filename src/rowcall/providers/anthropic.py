"""Anthropic's Messages API.

Source: https://docs.anthropic.com/en/api/messages. ``input_tokens`` excludes the tokens that were written to the cache
or read from it; ``output_tokens`` includes the model's thinking.
"""

from __future__ import annotations

from rowcall.config.preset_defaults import PRESET_DEFAULTS
from rowcall.providers.dialect import Dialect, Operation, Preset

MESSAGES = Operation(
    extract="join('', (content || `[]`)[?type=='text'].text)",
    dialect=Dialect(
        input=("usage.input_tokens", "usage.cache_creation_input_tokens", "usage.cache_read_input_tokens"),
        output=("usage.output_tokens",),
        cached=("usage.cache_read_input_tokens",),
        reasoning=("usage.output_tokens_details.thinking_tokens",),
        errors=("error",),
        ends=("stop_reason",),
        meanings={
            "max_tokens": "truncated",
            "model_context_window_exceeded": "truncated",
            "pause_turn": "truncated",
            "refusal": "filtered",
        },
        id="id",
        limits=("max_tokens",),
        text=True,
    ),
)

ANTHROPIC = Preset(
    defaults=PRESET_DEFAULTS["anthropic"],
    operations={"/messages": MESSAGES},
    key_header=("x-api-key", ""),
    headers={"anthropic-version": "2023-06-01"},
)
