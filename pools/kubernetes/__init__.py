"""Kubernetes: the manifests of a step, and the pool that sends them."""
