"""From snapshots of instruction data to conversations."""
