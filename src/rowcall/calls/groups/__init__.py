"""Calls that carry many records in one request."""

from rowcall.calls.groups.gathering import Size
from rowcall.calls.groups.group_caller import GroupCaller

__all__ = ["GroupCaller", "Size"]
