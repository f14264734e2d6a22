"""Verbs that describe rowcall to other programs: schema, completion."""

from __future__ import annotations

import click

from rowcall.cli.shared.common import print_json


@click.command(epilog="Example: rowcall schema config > rowcall.schema.json")
@click.argument("what", type=click.Choice(["config", "summary", "events"]), default="config", required=False)
def schema(what: str) -> None:
    """The JSON Schema of a config file, of the summary (--json), or of a line of --events.

    Editors check a config by it, and show what each key means: with taplo or Even Better TOML by a first line
    "#:schema ./rowcall.schema.json".
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


@click.command(epilog="Example: rowcall completion fish > ~/.config/fish/completions/rowcall.fish")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """What makes a shell complete verbs and flags of rowcall.

    bash, in ~/.bashrc: eval "$(rowcall completion bash)"

    zsh, in ~/.zshrc: eval "$(rowcall completion zsh)"

    fish: once, as the example below.
    """
    from click.shell_completion import get_completion_class

    from rowcall.cli import cli

    completing = get_completion_class(shell)
    assert completing is not None  # the choices are click's own
    click.echo(completing(cli, {}, "rowcall", "_ROWCALL_COMPLETE").source())
