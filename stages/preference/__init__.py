"""Learning from preference pairs."""
