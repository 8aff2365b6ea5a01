"""Tokenizers and documents to a comparison of how they cut the same texts."""
