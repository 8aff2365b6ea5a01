"""Shared by the stages that read from outside: rows of JSON, Parquet and Arrow files."""
