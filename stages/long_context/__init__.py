"""Questions that need a long context: needles in a haystack and the other families of RULER."""
