"""What a failure is and who pays for it: the decision table, and the evidence that it reads."""
