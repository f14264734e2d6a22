"""Verbs that change jobs or steer live runs: retry, cancel, rollback, set."""
