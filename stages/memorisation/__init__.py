"""How much of its training text a model gives back word for word, by number of copies."""
