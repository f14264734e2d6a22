"""The library's face: open a store, add records, run a handler, read the results. Nothing here prints or exits."""

from rowcall.library.batch_job import BatchJob, Result
from rowcall.library.open_job import map_rows, open_job, read

__all__ = ["BatchJob", "Result", "map_rows", "open_job", "read"]
