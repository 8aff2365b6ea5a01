"""A model that somebody else trained, as a checkpoint to go on from."""
