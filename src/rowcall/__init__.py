"""One API call for every record of a file, carried to its end."""

__version__ = "0.1.0"
