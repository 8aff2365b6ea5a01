"""Artifacts that pass between stages: kinds, manifests, keys and the store."""
