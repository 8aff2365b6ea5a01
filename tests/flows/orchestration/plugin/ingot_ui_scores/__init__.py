"""A stage whose score a test sets, with a page that shows it as `evaluate` does its own."""
