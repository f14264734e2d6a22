"""The formats of an export."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

ExportFormat = Literal["csv", "tsv", "jsonl", "json", "parquet", "sqlite", "openai-batch-output"]

EXPORT_SUFFIXES: Mapping[str, ExportFormat] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".db": "sqlite",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
}
"""The format of an export by the suffix of its file."""
