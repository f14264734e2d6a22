"""One API call for every record of a file, carried to its end."""
