"""What limits calls: concurrency, rate limits, the API's own limits, and the budget. Pure, or of one process alone."""
