"""From snapshots to documents: archives, tables, text and code, and rejected records."""
