"""Verbs that run: run, work, enqueue, batch."""
