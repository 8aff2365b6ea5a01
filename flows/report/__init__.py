"""Assembles what the stages' pages tell; knows no stage."""
