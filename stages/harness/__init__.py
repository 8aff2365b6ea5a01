"""Tasks of lm-evaluation-harness on a checkpoint, and result files of that program."""
