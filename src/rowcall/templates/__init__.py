"""Fills records into templates (Jinja2, sandboxed)."""
