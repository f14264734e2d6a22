"""The picture of a run: one self-contained page, made from the store alone."""

from rowcall.report.page import render
from rowcall.report.report_data import Facts, gather

__all__ = ["Facts", "gather", "render"]
