"""The command line: one module a command, each importing only what it needs."""
