"""A run is killed and resumed, and compared with one that nothing disturbed."""
