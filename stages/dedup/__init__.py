"""Finding equal and nearly equal documents: measured pairs, no decisions."""
