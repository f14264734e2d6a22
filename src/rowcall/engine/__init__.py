"""Works on a live run: reads the input, claims jobs, starts their calls, settles, and stops."""
