"""Models that judge text: n-gram model with cut-offs, and a classifier with its score card."""
