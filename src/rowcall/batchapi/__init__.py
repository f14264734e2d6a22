"""Files for the providers' batch APIs: requests out, answers in."""
