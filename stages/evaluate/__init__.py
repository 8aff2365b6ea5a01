"""What a checkpoint is worth: benchmarks, held-out text, planted defects, and text it writes."""
