"""Programs that nobody has read: run apart from this machine, checked by tests out of reach."""
