"""Documents that mean the same, by the embeddings of a published encoder."""
