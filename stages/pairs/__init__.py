"""Preference pairs in any form of training: their answers as tokens, and their losses."""
