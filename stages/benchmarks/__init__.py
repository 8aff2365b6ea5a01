"""From snapshots of evaluation data to benchmark items."""
