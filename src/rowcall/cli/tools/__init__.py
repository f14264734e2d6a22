"""Verbs for other programs: mock, schema, completion."""
