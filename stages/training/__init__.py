"""The training kernel: what every stage that trains a model shares.

Data first: `permutation` (a shuffle without an index file), `mixture` (exact shares by source),
`clock` (the batch of training step n as a pure function), `data` (token shards to arrays).
"""
