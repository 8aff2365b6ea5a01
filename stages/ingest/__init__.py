"""From snapshots to documents: archives, tables, text and code, and what is turned away."""
