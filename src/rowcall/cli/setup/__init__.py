"""Verbs before a run: init, check, preview, and the rehearsal."""
