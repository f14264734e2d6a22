"""From a record to the values of a request: Jinja2 in its sandbox."""
