"""What to do about each reason of a failure: of records that failed, and of a run that stopped."""

from __future__ import annotations

import re

_AGAIN = "try again with: rowcall retry {reason}"
_THEN = "then rowcall retry {reason}"
_NETWORK = f"calls of these records did not get through while others did; {_AGAIN}"
_TLS = f"the certificate was not good while others passed: a proxy or firewall in between? {_AGAIN}"
_SERVER = f"the API failed on these while others passed; {_AGAIN}"
_OTHER = f"fix what is wrong with these records, or {_AGAIN}"

HINTS = {
    # the API refuses the record
    "bad_request": f"the API refuses what these send; see one with: rowcall show KEY; mend [request] or them, {_THEN}",
    "request_too_large": f"larger than the API takes: shorten these, or ask for a higher limit, {_THEN}",
    "context_length": f"longer than the model takes: shorten these, or choose a larger model, {_THEN}",
    "content_filter": "the API's content rules refuse these; trying again brings the same",
    "not_found": f'if this is an answer and no failure: [response] answer = ["404"], {_THEN}',
    "model_not_found": f"the API does not know the model for these: check [request], {_THEN}",
    "forbidden": f"the key may not do this for these; check its rights, {_THEN}",
    "bad_key": f"the key was refused for these; check [api] api_key, {_THEN}",
    "no_credit": f"credit or quota was used up: top it up, {_THEN}",
    "proxy_auth": f"a proxy asked for a password: check HTTPS_PROXY, {_THEN}",
    "proxy_refused": f"a proxy let nothing through to these; {_AGAIN}",
    "redirected": f"these were sent elsewhere: check [api] base_url and [request] path, {_THEN}",
    "rate_limited": f"refused again and again while others passed; lower [pace] requests, {_THEN}",
    "overloaded": _SERVER,
    "html_reply": f"a web page came instead of a reply: a proxy or login page in between? {_AGAIN}",
    # the answer breaks the contract
    "not_json": f"the answer was no JSON; ask for JSON in the prompt, or leave out [response] parse, {_THEN}",
    "empty": "the reply held nothing where [response] extract looked; look at one with: rowcall show KEY",
    "truncated": f"cut at its limit: raise it in [request.body], or set [response] on_truncated, {_THEN}",
    "filtered": "the model or its content filter refused; [response.retry] filtered = 1 asks once more",
    "schema": f"the answer breaks [response] schema; look at one with: rowcall show KEY; mend the prompt, {_THEN}",
    "assertion": f"an expression of [response] assert does not hold; look at one with: rowcall show KEY, {_THEN}",
    "extract_failed": f"[response] extract does not fit these replies; look at one with: rowcall show KEY, {_THEN}",
    "error_reply": f"the API reported an error inside a 200; {_AGAIN}",
    # the record or the handler
    "template_error": f"a column that [request] uses is missing or of another kind in these: mend the input, {_THEN}",
    "attachment": f"put the file there, make it smaller, or raise [request] max_attachment, {_THEN}",
    "handler_error": f"your function broke; rowcall show KEY has the traceback; mend it, {_THEN}",
    "result_not_json": f"your function returned what no JSON can hold; change it, {_THEN}",
    "put_off": f"your function put these off a hundred times; {_AGAIN}",
    "failed_by_handler": f"your function gave these up, and said why; {_AGAIN}",
    "stopped_by_handler": f"your function stopped the run, and said why; {_AGAIN}",
    "poison": "these records were being called when rowcall died, five times; try one alone with: rowcall retry KEY",
    # the wire
    "unexpected_error": f"the call broke in a way that rowcall does not know; rowcall show KEY has it; {_AGAIN}",
    "unsendable": "the request cannot be sent as it is; see it with: rowcall show KEY",
    "reply_too_large": "the reply is larger than rowcall keeps; ask the API for less",
    "timeout": f"no whole answer within [api] timeout: raise it, or ask for less, {_THEN}",
    **dict.fromkeys(("cannot_connect", "refused", "name_not_found", "no_route", "connect_broken"), _NETWORK),
    **dict.fromkeys(("connect_timeout", "pool_timeout", "too_many_files", "offline", "proxy_failed"), _NETWORK),
    **dict.fromkeys(("stale_connection", "reset", "closed_early", "body_cut", "garbled", "connection_lost"), _NETWORK),
    **dict.fromkeys(("tls_failed", "tls_untrusted", "tls_expired", "tls_wrong_host"), _TLS),
}
"""Advice for records that failed, by reason."""

STOPS = {
    "unreachable": "Nobody answers there: check the network, a proxy or firewall, and the URL.",
    "offline": "Nobody answers there any more: check the network; [stop] offline_for says how long a run waits.",
    "max_failures": "See what failed with: rowcall errors; mend it, or allow more in [stop] max_failures.",
    "max_wait": "The same command goes on then; with another key, rowcall run --now. See [retry] max_wait.",
    "disk_full": "Make room on the disk of the store; nothing stored is lost.",
    "tls_untrusted": "If its certificate should be trusted: [api] ca_file names the authority; else check base_url.",
    "proxy_refused": "The proxy lets nothing through to it: name another in [api] proxy, or the host in NO_PROXY.",
    **dict.fromkeys(
        ("tls_failed", "tls_expired", "tls_wrong_host"),
        "The certificate is not good for this host: check [api] base_url, this machine's clock, and any proxy.",
    ),
    **dict.fromkeys(
        ("not_json", "empty", "schema", "extract_failed", "truncated", "error_reply"),
        "The first answers were all unusable alike. See request and reply with: rowcall check --probe",
    ),
    "handler_error": "Your function broke on all of the first records; rowcall show KEY has the traceback of one.",
    "bad_request": "The API refuses the request itself: the message says what. See it with: rowcall check --probe",
}
"""Advice for a run that stopped, where that of the reason is another than for a reply."""

_ALONE = {_NETWORK: STOPS["unreachable"], _SERVER: "The API failed on this call: try again later."}
_RETRY = re.compile(r"[;,]?(?: or)? (?:then|try again with:) rowcall retry \{reason\}$")


def hint_for(reason: str) -> str:
    """One line of advice about records that failed."""
    return _template(reason).replace("{reason}", reason)


def _template(reason: str) -> str:
    return HINTS.get(reason, _SERVER if reason.startswith("http_5") else _OTHER)


def call_hint(reason: str) -> str:
    """One line of advice about a call that was made alone, outside of a run: none is stored to be retried."""
    template = _template(reason)
    return _ALONE.get(template) or stop_hint(reason) or _RETRY.sub("", template)


def stop_hint(reason: str) -> str:
    """One line of advice about a run that stopped; empty where there is nothing to do."""
    if reason in STOPS:
        return STOPS[reason]
    from rowcall.providers.reply_reasons import REASONS

    return REASONS.get(reason, "")
