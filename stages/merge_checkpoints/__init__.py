"""Several checkpoints of one architecture to one."""
