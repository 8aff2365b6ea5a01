"""Prefect: the same loop that runs without it, watched, triggered and cancelled from its UI."""
