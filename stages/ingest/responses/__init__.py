"""HTTP responses as archives hold them: heads, bodies, types, characters."""
