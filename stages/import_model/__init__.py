"""A published model as a checkpoint to continue."""
