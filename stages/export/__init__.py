"""A checkpoint as a Hugging Face model folder, proved to load before it is called a release."""
