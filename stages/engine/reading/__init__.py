"""Shared by the stages that read from outside: rows of JSON and Parquet files, chat messages."""
