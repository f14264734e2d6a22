"""The config file: one model per table, references to secrets and files, and every error with its line."""

from rowcall.config.config import Config
from rowcall.config.dotenv import environment
from rowcall.config.key_lines import KeyPath, key_lines
from rowcall.config.load import compose, default_name, load
from rowcall.config.reference_values import Reference
from rowcall.config.references import fingerprint
from rowcall.config.secret import Secret
from rowcall.config.tables import (
    ApiTable,
    BackoffTable,
    HandlerTable,
    InputTable,
    MockTable,
    OutputTable,
    PaceTable,
    RequestTable,
    ResponseTable,
    RetryTable,
    StopTable,
    StoreTable,
)
from rowcall.config.units import Rate, parse_duration, parse_rate, parse_share, parse_size

__all__ = [
    "ApiTable",
    "BackoffTable",
    "Config",
    "HandlerTable",
    "InputTable",
    "KeyPath",
    "MockTable",
    "OutputTable",
    "PaceTable",
    "Rate",
    "Reference",
    "RequestTable",
    "ResponseTable",
    "RetryTable",
    "Secret",
    "StopTable",
    "StoreTable",
    "compose",
    "default_name",
    "environment",
    "fingerprint",
    "key_lines",
    "load",
    "parse_duration",
    "parse_rate",
    "parse_share",
    "parse_size",
]
