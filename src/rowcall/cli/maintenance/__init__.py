"""Verbs that look after the store: backup, prune, migrate, verify."""
