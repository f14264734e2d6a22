"""What holds calls back: rate, concurrency, and the gate that closes when the API is gone."""
