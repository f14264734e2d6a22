"""The picture of a run: one self-contained page, made from the store alone."""

from rowcall.report.gathering import Facts, gather
from rowcall.report.page import render

__all__ = ["Facts", "gather", "render"]
