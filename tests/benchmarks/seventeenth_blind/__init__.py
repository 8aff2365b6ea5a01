"""The seventeenth set of labelled texts for redaction: templates and the makers of their values."""
