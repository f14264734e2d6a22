"""Gemini's generateContent and embedContent.

Source: https://ai.google.dev/api/generate-content. The model is part of the path. ``promptTokenCount`` includes cached
tokens; ``candidatesTokenCount`` excludes the model's thinking. The reply to a blocked prompt has no candidates.
"""

from __future__ import annotations

from rowcall.config.preset_defaults import PRESET_DEFAULTS
from rowcall.providers.dialect import Dialect, Operation, Preset

_FILTERED = (
    *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "ESCALATION"),
    *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
)
_BROKEN = (
    *("OTHER", "IMAGE_OTHER", "NO_IMAGE", "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE"),
    *("UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE"),
)

GENERATE = Operation(
    extract="join('', (candidates[0].content.parts || `[]`)[?thought != `true` && text].text)",
    dialect=Dialect(
        input=("usageMetadata.promptTokenCount", "usageMetadata.toolUsePromptTokenCount"),
        output=("usageMetadata.candidatesTokenCount", "usageMetadata.thoughtsTokenCount"),
        cached=("usageMetadata.cachedContentTokenCount",),
        reasoning=("usageMetadata.thoughtsTokenCount",),
        errors=("error",),
        ends=("promptFeedback.blockReason", "candidates[0].finishReason"),
        meanings={
            "MAX_TOKENS": "truncated",
            **dict.fromkeys(_FILTERED, "filtered"),
            **dict.fromkeys(_BROKEN, "error_reply"),
        },
        id="responseId",
        limits=("generationConfig.maxOutputTokens",),
        text=True,
    ),
)

EMBED = Operation(
    extract="embedding.values", dialect=Dialect(input=("usageMetadata.promptTokenCount",), errors=("error",))
)

GEMINI = Preset(
    defaults=PRESET_DEFAULTS["gemini"],
    operations={":generateContent": GENERATE, ":embedContent": EMBED},
    key_header=("x-goog-api-key", ""),
)
