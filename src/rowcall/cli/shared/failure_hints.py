"""What to do about each reason of a failure: for records that failed, and for a run that stopped."""

from __future__ import annotations

import re

_AGAIN = "try again with: rowcall retry {reason}"
_THEN = "then rowcall retry {reason}"
_NETWORK = f"the calls for these records did not get through, while others did; {_AGAIN}"
_TLS = f"the TLS certificate was rejected, while others were fine; is there a proxy or firewall in between? {_AGAIN}"
_SERVER = f"the API failed on these records, while others succeeded; {_AGAIN}"
_OTHER = f"fix these records, or {_AGAIN}"

HINTS = {
    # the API rejects the record
    "bad_request": f"the API rejects these; see one with: rowcall show KEY; fix [request] or the records, {_THEN}",
    "request_too_large": f"the request is too large for the API; shorten the record or ask for a higher limit, {_THEN}",
    "context_length": f"the text is longer than the model accepts; shorten it, or choose a larger model, {_THEN}",
    "content_filter": "the API's content filter rejects these records; trying again will not help",
    "not_found": f'if 404 is an answer rather than a failure, set [response] answer = ["404"], {_THEN}',
    "model_not_found": f"the API does not know the model; check [request], {_THEN}",
    "forbidden": f"the API key has no permission for these calls; check its permissions, {_THEN}",
    "bad_key": f"the API key was rejected; check [api] api_key, {_THEN}",
    "no_credit": f"the credit or quota was used up; top it up, {_THEN}",
    "proxy_auth": f"a proxy asked for a password; check HTTPS_PROXY, {_THEN}",
    "proxy_refused": f"a proxy did not let these calls through; {_AGAIN}",
    "redirected": f"the API redirected these calls to another URL; check [api] base_url and [request] path, {_THEN}",
    "rate_limited": f"the API refused these again and again for its rate limit; lower [pace] requests, {_THEN}",
    "overloaded": _SERVER,
    "html_reply": f"a web page came back instead of a reply; is there a proxy or login page in between? {_AGAIN}",
    # the answer breaks the contract
    "not_json": f"the answer is not valid JSON; ask for JSON in the prompt, or remove [response] parse, {_THEN}",
    "empty": "[response] extract found nothing in the reply; see one with: rowcall show KEY",
    "truncated": f"the answer hit its token limit; raise it in [request.body], or set [response] on_truncated, {_THEN}",
    "filtered": "the model or its content filter refused to answer; [response.retry] filtered = 1 asks once more",
    "schema": f"the answer does not match [response] schema; see one with: rowcall show KEY; fix the prompt, {_THEN}",
    "assertion": f"an expression of [response] assert is not true; see one with: rowcall show KEY, {_THEN}",
    "extract_failed": f"[response] extract does not fit these replies; see one with: rowcall show KEY, {_THEN}",
    "error_reply": f"the API reported an error in a reply with status 200; {_AGAIN}",
    # the record or the handler
    "template_error": f"a column that [request] uses is missing or has a different type here; fix the input, {_THEN}",
    "attachment": f"the attached file is missing or too large; add it or raise [request] max_attachment, {_THEN}",
    "handler_error": f"your function raised an exception; see its traceback with: rowcall show KEY; fix it, {_THEN}",
    "result_not_json": f"your function returned a value that JSON cannot represent; change it, {_THEN}",
    "put_off": f"your function asked a hundred times to retry these later; {_AGAIN}",
    "failed_by_handler": f"your function gave up on these, for the reason in the message; {_AGAIN}",
    "stopped_by_handler": f"your function stopped the run, for the reason in the message; {_AGAIN}",
    "poison": "rowcall died five times while it was calling the API for these; try one alone with: rowcall retry KEY",
    # the wire
    "unexpected_error": f"the call failed in an unknown way; see the details with: rowcall show KEY; {_AGAIN}",
    "unsendable": "the request is not valid and cannot be sent; look at it with: rowcall show KEY",
    "reply_too_large": "the reply is too large to be stored; ask the API for less",
    "timeout": f"the answer was not complete within [api] timeout; raise it, or ask for less, {_THEN}",
    **dict.fromkeys(("cannot_connect", "refused", "name_not_found", "no_route", "connect_broken"), _NETWORK),
    **dict.fromkeys(("connect_timeout", "pool_timeout", "too_many_files", "offline", "proxy_failed"), _NETWORK),
    **dict.fromkeys(("stale_connection", "reset", "closed_early", "body_cut", "garbled", "connection_lost"), _NETWORK),
    **dict.fromkeys(("tls_failed", "tls_untrusted", "tls_expired", "tls_wrong_host"), _TLS),
}
"""Advice for records that failed, by reason."""

STOPS = {
    "unreachable": "No server answers there. Check the network, any proxy or firewall, and the URL.",
    "offline": "The server no longer answers. Check the network. [stop] offline_for sets how long a run waits.",
    "max_failures": "See what failed with: rowcall errors; fix it, or allow more failures with [stop] max_failures.",
    "max_wait": "Run the same command again then; with another API key, use rowcall run --now. See [retry] max_wait.",
    "disk_full": "Free some space on the disk of the store. Nothing that was stored is lost.",
    "tls_untrusted": "To trust its certificate, name its authority in [api] ca_file; otherwise check [api] base_url.",
    "proxy_refused": "The proxy blocks these calls. Set another one in [api] proxy, or add the host to NO_PROXY.",
    **dict.fromkeys(
        ("tls_failed", "tls_expired", "tls_wrong_host"),
        "The certificate is not valid for this host. Check [api] base_url, this machine's clock, and any proxy.",
    ),
    **dict.fromkeys(
        ("not_json", "empty", "schema", "extract_failed", "truncated", "error_reply"),
        "All of the first answers failed in the same way. See a request and its reply with: rowcall check --probe",
    ),
    "handler_error": "Your function failed on all of the first records. See a traceback with: rowcall show KEY",
    "bad_request": "The API rejects the request itself, as its message says. See both with: rowcall check --probe",
}
"""Advice for a run that stopped, for reasons that are not explained by the reply of the API alone."""

_SINGLE_CALL = {_NETWORK: STOPS["unreachable"], _SERVER: "The API failed on this call. Try again later."}
_RETRY = re.compile(r"[;,]?(?: or)? (?:then|try again with:) rowcall retry \{reason\}$")


def hint_for(reason: str) -> str:
    """Return one line of advice about records that failed."""
    return _template(reason).replace("{reason}", reason)


def _template(reason: str) -> str:
    return HINTS.get(reason, _SERVER if reason.startswith("http_5") else _OTHER)


def call_hint(reason: str) -> str:
    """Return one line of advice about a call outside of a run, whose record is not stored and cannot be retried."""
    template = _template(reason)
    return _SINGLE_CALL.get(template) or stop_hint(reason) or _RETRY.sub("", template)


def stop_hint(reason: str) -> str:
    """Return one line of advice about a run that stopped; empty if there is nothing to do."""
    if reason in STOPS:
        return STOPS[reason]
    from rowcall.providers.reply_reasons import REASONS

    return REASONS.get(reason, "")
