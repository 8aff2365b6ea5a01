"""A model as one GGUF file, which llama.cpp and what is built on it run."""
