"""A fake API on a real socket, for the demo, rehearsals and tests."""
