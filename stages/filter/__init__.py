"""Deciding which documents stay, from what earlier stages measured; writing them and the ledger."""
