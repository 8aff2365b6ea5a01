"""Pretraining on token shards."""
