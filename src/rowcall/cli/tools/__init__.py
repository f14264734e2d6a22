"""Verbs that serve other programs: mock, schema, completion."""
