"""Helpers of a run: other processes of this machine that claim and call too, and are steered and counted by it."""
