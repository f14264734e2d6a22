"""What to do about each reason of a failure."""

from __future__ import annotations

from rowcall.providers.failures import REASONS

_RETRY = "fix what is wrong with these records, or try again with: rowcall retry {reason}"

HINTS = {
    "template_error": "a column that [request] uses is missing or of another kind in these records",
    "attachment": "put the file there, make it smaller or raise [request] max_attachment, then rowcall retry {reason}",
    "context_length": "longer than the model takes: shorten it, or choose a larger model, then rowcall retry {reason}",
    "truncated": "raise the limit in [request.body] or set [response] on_truncated, then rowcall retry {reason}",
    "filtered": "the API's content filter refused; [response.retry] filtered = 1 asks once more",
    "empty": "the reply held nothing where [response] extract looked; look at one with: rowcall show KEY",
    "not_json": "the answer was no JSON; ask for JSON in the prompt, then rowcall retry {reason}",
    "schema": "the answer breaks [response] schema; look at one with: rowcall show KEY",
    "assertion": "an expression of [response] assert does not hold; look at one with: rowcall show KEY",
    "not_found": 'if this is an answer and no failure: [response] answer = ["404"], then rowcall retry {reason}',
    "forbidden": "the key may not read these records; check its rights, then rowcall retry {reason}",
    "rate_limited": "refused again and again while others passed; lower [pace] requests, then rowcall retry {reason}",
    "handler_error": "your function broke; rowcall show KEY has the traceback; mend it, then rowcall retry {reason}",
    "result_not_json": "your function returned what no JSON can hold; change it, then rowcall retry {reason}",
    "put_off": "your function put these off a hundred times; try again with: rowcall retry {reason}",
    "failed_by_handler": "your function gave these up, and said why; try again with: rowcall retry {reason}",
    "poison": "these records were being called when rowcall died, five times; try one alone with: rowcall retry KEY",
    "reply_too_large": "the reply is larger than rowcall keeps; ask the API for less",
}


def hint_for(reason: str) -> str:
    """One line of advice."""
    server = "the API failed on these while others passed; try again with: rowcall retry {reason}"
    hint = HINTS.get(reason) or (server if reason.startswith(("http_5", "overloaded")) else REASONS.get(reason, _RETRY))
    return hint.replace("{reason}", reason)
