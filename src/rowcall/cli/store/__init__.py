"""Verbs for the store and the files beside it: export, import, verify, backup, prune, migrate."""
