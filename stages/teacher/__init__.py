"""Log-probabilities of a teacher over packed shards, for distillation."""
