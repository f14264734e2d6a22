"""How each API is spoken to: builds requests and reads replies. Nothing is sent here."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from rowcall.model.errors import ConfigError, Problem
from rowcall.providers.anthropic import ANTHROPIC
from rowcall.providers.base import CallContext, Provider, Request
from rowcall.providers.classify_error_reply import classify
from rowcall.providers.dialect import Preset
from rowcall.providers.gemini import GEMINI
from rowcall.providers.http import HTTP, HttpProvider
from rowcall.providers.openai import MOCK, OLLAMA, OPENAI, OPENROUTER, VLLM
from rowcall.providers.openai_batch import LINES, BatchFileProvider
from rowcall.providers.provider_settings import ApiSettings, RequestSettings, ResponseSettings
from rowcall.providers.reply_reasons import REASONS

__all__ = [
    "PRESETS",
    "REASONS",
    "ApiSettings",
    "CallContext",
    "HttpProvider",
    "Provider",
    "Request",
    "RequestSettings",
    "ResponseSettings",
    "classify",
    "make_provider",
]

BATCH_FILE = "openai-batch"
"""The preset whose records name their own URL and body."""

PRESETS: Mapping[str, Preset] = {
    "openai": OPENAI,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "openrouter": OPENROUTER,
    "ollama": OLLAMA,
    "vllm": VLLM,
    BATCH_FILE: LINES,
    "http": HTTP,
    "mock": MOCK,
}


def make_provider(
    preset: str, *, api: ApiSettings, request: RequestSettings, response: ResponseSettings
) -> HttpProvider:
    """Make the provider of a preset.

    Raises:
        ConfigError: there is no such preset, or a setting cannot be used.
        TemplateError: a template cannot be compiled.
    """
    if preset == BATCH_FILE:
        return BatchFileProvider(api=api, request=request, response=response)
    if preset not in PRESETS:
        close = difflib.get_close_matches(preset, PRESETS, n=1)
        remedy = f"Did you mean {close[0]!r}?" if close else f"The presets are: {', '.join(PRESETS)}."
        raise ConfigError(Problem("api.preset", f"there is no preset {preset!r}", remedy))
    return HttpProvider(PRESETS[preset], api=api, request=request, response=response)
