"""Pools of machines that steps are sent to; each type is an entry point of `ingot.dispatch`."""
