"""What works while a run is under way: reads, claims, paces, calls, settles."""
