"""The training kernel: what every stage that trains a model shares.

Data first: `permutation` (a shuffle without an index file), `sample_clock` (exact shares by source,
the batch of training step n as a pure function), `token_shards` (files to arrays). Then `loop`.
"""
