"""The fifteenth blind set: 140 or more different situations for each kind and sign."""
