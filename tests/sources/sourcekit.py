"""What the tests of sources share."""

from pathlib import Path

DATA = Path(__file__).parent.parent / "data"


def rows(source):
    """The values of all records."""
    return [record.data for record in source]


def wheres(source):
    """Where all records were read."""
    return [record.where for record in source]
