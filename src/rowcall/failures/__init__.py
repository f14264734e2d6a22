"""Decides who pays for a failure: the retry table, and the evidence that it reads."""
