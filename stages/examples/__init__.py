"""From snapshots of instruction, preference and evaluation data to tables of examples."""
