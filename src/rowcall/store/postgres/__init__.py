"""The store in PostgreSQL: the same job on as many machines as are wanted."""
