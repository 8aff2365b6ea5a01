"""A checkpoint to one with a larger vocabulary."""
