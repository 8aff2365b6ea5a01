"""The decoder: its config, attention, files, size, and its mapping to Hugging Face's Llama."""
