"""What several verbs share."""
