"""What one call is: a request by templates, a user's function, or one request for a group of records."""
