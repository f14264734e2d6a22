"""The user's own function in the place of a request, and the ``call`` that it is given."""

from rowcall.handlers.call import Call, SyncCall
from rowcall.handlers.caller import Function, HandlerCaller
from rowcall.handlers.loading import check_signature, load_function
from rowcall.handlers.plain import NotPlain, plain
from rowcall.handlers.replies import NotJSON, Offline, Response, StatusFailed
from rowcall.handlers.signals import Fail, RetryLater, StopRun

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
