"""The fifteenth blind set: broad, with many templates of weight 1, in kinds by three writers."""
