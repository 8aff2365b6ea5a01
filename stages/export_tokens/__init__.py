"""Token shards to Megatron's indexed datasets."""
