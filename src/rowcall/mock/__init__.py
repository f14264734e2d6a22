"""The mock API: a fake API on a real socket, for the demo, for rehearsals and for tests."""

from rowcall.mock.call_log import RecordedCall
from rowcall.mock.injected_faults import DEMO, Fault, Faults, RetryForm
from rowcall.mock.server import MockAPI, Outage, Poison, serve

__all__ = ["DEMO", "Fault", "Faults", "MockAPI", "Outage", "Poison", "RecordedCall", "RetryForm", "serve"]
