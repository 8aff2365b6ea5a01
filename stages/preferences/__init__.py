"""From snapshots of preference data to preference pairs."""
