"""The fifteenth blind set of labelled texts: many situations of each kind, one template each."""
