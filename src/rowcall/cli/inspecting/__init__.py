"""Verbs that look and change nothing: status, errors, show, report."""
