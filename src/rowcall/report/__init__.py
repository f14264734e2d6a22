"""Makes the report: one self-contained HTML page about a batch job, read from the store alone."""

from rowcall.report.page import render
from rowcall.report.report_data import ReportData, read_report

__all__ = ["ReportData", "read_report", "render"]
