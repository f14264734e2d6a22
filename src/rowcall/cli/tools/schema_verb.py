"""``rowcall schema``: the JSON Schemas of what rowcall reads and writes."""

from __future__ import annotations

import click

from rowcall.cli.shared.console import print_json


@click.command(epilog="Example: rowcall schema config > rowcall.schema.json")
@click.argument("what", type=click.Choice(["config", "summary", "events"]), default="config", required=False)
def schema(what: str) -> None:
    """Print the JSON Schema of a config file, of the summary (--json), or of a line of --events.

    With the first, editors check a config and show what each key means. For taplo or Even Better TOML, let the config
    begin with the line "#:schema ./rowcall.schema.json".
    """
    if what == "events":
        from rowcall.cli.running.event_log import schema as events_schema

        print_json(events_schema())
    elif what == "summary":
        from rowcall.run.summary import Summary

        print_json(Summary.model_json_schema())
    else:
        from rowcall.cli.tools.config_schema import config_schema

        print_json(config_schema())
