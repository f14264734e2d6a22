"""Verbs that write answers to files, or read them from there: export, import."""
