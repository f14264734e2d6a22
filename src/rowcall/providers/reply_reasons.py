"""The reason codes of replies, and the advice that is shown with each of them."""

from __future__ import annotations

from collections.abc import Mapping

REASONS: Mapping[str, str] = {
    "rate_limited": "The API allows fewer calls or tokens at a time. rowcall waits; if it happens often, lower [pace].",
    "no_credit": "Credit or quota is used up: top it up or raise the limit with the provider, then run again.",
    "bad_key": "The API does not accept the key: check [api] api_key and the variable or file behind it.",
    "forbidden": "The key is not allowed to do this: check its permissions, project and region.",
    "not_found": "There is nothing at this URL: check [api] base_url and [request] path.",
    "model_not_found": "The API does not know the model, or the key may not use it: check its name in [request].",
    "redirected": "The API has moved, or the URL is wrong: check [api] base_url (http or https, www, trailing parts).",
    "proxy_auth": "A proxy asks for a password: check [api] proxy or HTTPS_PROXY.",
    "bad_request": "The API rejects what this record sends; the message says why. See the call with: rowcall show KEY",
    "request_too_large": "This record alone is above the limit: shorten it, or ask the provider for a higher limit.",
    "context_length": "The text is too long for the model: shorten it, or use a model with a larger context.",
    "content_filter": "The API's content rules reject this record.",
    "overloaded": "The API is overloaded; rowcall tried again.",
    "html_reply": "A web page came back instead of a reply: check for a login page, a proxy, or a wrong base_url.",
    "not_json": "The reply, or the text in it, is not valid JSON: ask for JSON in the prompt, or remove parse.",
    "empty": "The reply has no answer at the place that [response] extract names.",
    "truncated": "The answer was cut off at its token limit: raise it in [request.body], or set on_truncated.",
    "filtered": "The model or its content filter refused to answer; [response.retry] filtered = 1 asks once more.",
    "schema": "The answer does not match [response] schema; look at one with: rowcall show KEY",
    "assertion": "An expression in [response] assert is false for the reply; see one with: rowcall show KEY",
    "extract_failed": "[response] extract or assert cannot be applied to this reply.",
    "attachment": "A file that this record names is missing, too large or cannot be read; the message says which.",
    "error_reply": "The API reported an error inside a reply with status 200.",
}
"""What to do about each reason that a reply can get. A reason that is not listed is ``http_`` and the status."""
