"""Vectors before every conversation that are trained while the model stays as it is."""
