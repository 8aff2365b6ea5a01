"""Documents to packed sequences of token ids."""
