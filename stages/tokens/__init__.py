"""Tokenizers and chat templates: vocabularies, pre-tokenizers, fertility, rendered messages."""
