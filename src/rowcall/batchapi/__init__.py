"""Writes request files for the providers' batch APIs and imports their answers."""
