"""The values everything speaks of: records, jobs, outcomes, events, errors, money."""
