"""What a run is made of, from a config to its report."""
