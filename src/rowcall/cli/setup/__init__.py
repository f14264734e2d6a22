"""Verbs to use before a run: init, check, preview."""
