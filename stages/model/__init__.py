"""The decoder: config, layers, attention backends, files, size; its names in Hugging Face."""
