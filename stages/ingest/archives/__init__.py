"""Archives of crawls, record by record: WARC, WET, WAT and ARC in every compression."""
