"""The verbs that are the same in both databases, each written once."""
