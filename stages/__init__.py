"""Ingot stages: programs that make one artifact of given ones. Each has a room of its own."""
