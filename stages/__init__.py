"""Ingot stages: programs that make one artifact of inputs. Each has a package of its own."""
