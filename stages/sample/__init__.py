"""A sample of everything the pipeline reads, made of the running Python's own documentation."""
