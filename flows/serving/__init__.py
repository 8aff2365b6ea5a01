"""A model of the store behind OpenAI's protocol, on this machine."""
