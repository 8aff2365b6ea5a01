"""Analysis of a store: typed results that commands, the report and notebooks share."""
