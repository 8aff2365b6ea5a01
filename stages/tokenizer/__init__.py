"""Documents to a tokenizer."""
