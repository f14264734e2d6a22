"""``rowcall completion``: the script that makes a shell complete verbs and flags."""

from __future__ import annotations

import click


@click.command(epilog="Example: rowcall completion fish > ~/.config/fish/completions/rowcall.fish")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that makes a shell complete the verbs and flags of rowcall.

    bash: add to ~/.bashrc: eval "$(rowcall completion bash)"

    zsh: add to ~/.zshrc: eval "$(rowcall completion zsh)"

    fish: run the example below once.
    """
    from click.shell_completion import get_completion_class

    from rowcall.cli import cli

    completing = get_completion_class(shell)
    assert completing is not None  # the choices are click's own
    click.echo(completing(cli, {}, "rowcall", "_ROWCALL_COMPLETE").source())
