"""A tokenizer that somebody else made, read as data."""
