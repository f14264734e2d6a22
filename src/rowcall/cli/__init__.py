"""The command: one file per family of verbs."""
