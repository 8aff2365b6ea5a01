"""The sixteenth blind set of labelled texts, by three writers who do not know the rules."""
