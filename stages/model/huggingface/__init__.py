"""The decoder as a model of Hugging Face's `transformers`, both ways.

`families` maps config and weights without importing `transformers`; `auto_classes` brings our own
class to it, for what no native class expresses.
"""

from stages.model.huggingface.families import (
    FAMILIES,
    adopt,
    adoption,
    family_of,
    from_config,
    from_weights,
    published_weights,
    to_config,
    to_weights,
    unread,
)

__all__ = [
    "FAMILIES",
    "adopt",
    "adoption",
    "family_of",
    "from_config",
    "from_weights",
    "published_weights",
    "to_config",
    "to_weights",
    "unread",
]
