"""Many records in one call."""

from rowcall.groups.caller import GroupCaller
from rowcall.groups.gathering import Size

__all__ = ["GroupCaller", "Size"]
