"""The main text of a page as Markdown."""
