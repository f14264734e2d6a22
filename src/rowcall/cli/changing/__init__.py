"""Verbs that change jobs or running processes: retry, cancel, rollback, set."""
