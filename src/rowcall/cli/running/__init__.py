"""Verbs that run: run (with --rehearse), work, enqueue, batch."""
