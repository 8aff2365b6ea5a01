"""Answers of two models compared in pairs by a judge, which is itself compared with people."""
