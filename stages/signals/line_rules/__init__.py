"""Published rules that edit a text line by line, as views: what they cut, and what is left."""
