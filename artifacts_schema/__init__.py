"""The ground floor: what passes between stages, and where it lives."""
