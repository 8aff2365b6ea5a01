"""Log-likelihoods of texts and choices under a model, text that it writes, and honest errors."""
