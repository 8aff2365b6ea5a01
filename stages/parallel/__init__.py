"""One model on many processes: layouts, the ranks of a run, and how its tensors are spread."""
