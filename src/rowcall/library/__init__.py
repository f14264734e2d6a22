"""The Python library: open a store, add records, run a handler, read the results.

It prints only through the display and never exits the program.
"""

from rowcall.library.batch_job import BatchJob
from rowcall.library.job_results import Result
from rowcall.library.open_job import map_rows, open_job, read

__all__ = ["BatchJob", "Result", "map_rows", "open_job", "read"]
