"""What other tools read of a store: metrics, lineage events, descriptions of data sets."""
