"""Helper processes: with ``[pace] processes`` above 1, a run starts them on this machine to claim and call as well."""
