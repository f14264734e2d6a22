"""``python -m rowcall``: the command."""

from rowcall.cli import main

main()
