"""Published encoders of text: read as data, run on batches whose shapes follow from the text."""
