"""The decoder as a model of Hugging Face's `transformers`, both ways."""
