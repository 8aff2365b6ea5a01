"""Scores of documents by a published neural classifier."""
