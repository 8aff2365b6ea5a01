"""Passages that occur earlier in the corpus: lines, spans of three sentences, runs of tokens."""
