"""Handlers: the user's own functions, which make a record's calls, and the ``call`` object that they are given."""

from rowcall.calls.handlers.call import Call, SyncCall
from rowcall.calls.handlers.handler_caller import Function, HandlerCaller
from rowcall.calls.handlers.load_handler import check_signature, load_function
from rowcall.calls.handlers.plain_json import NotPlain, plain
from rowcall.calls.handlers.responses import NotJSON, Offline, Response, StatusFailed
from rowcall.calls.handlers.signals import Fail, RetryLater, StopRun

__all__ = [
    "Call",
    "Fail",
    "Function",
    "HandlerCaller",
    "NotJSON",
    "NotPlain",
    "Offline",
    "Response",
    "RetryLater",
    "StatusFailed",
    "StopRun",
    "SyncCall",
    "check_signature",
    "load_function",
    "plain",
]
