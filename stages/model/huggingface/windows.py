"""Which layers have a sliding window, as `transformers` lists them, both ways."""

from __future__ import annotations

from typing import Any

from stages.model.config import ModelConfig
from stages.model.huggingface.fields import Fields

SLIDING, FULL = "sliding_attention", "full_attention"


def window_fields(config: ModelConfig) -> dict[str, Any]:
    """`sliding_window`, whether it is used, and the type of each layer."""
    sliding = [config.window_of(layer) is not None for layer in range(config.layers)]
    return {
        "use_sliding_window": any(sliding),
        "sliding_window": config.window,
        "layer_types": [SLIDING if slides else FULL for slides in sliding],
    }


def read_windows(fields: Fields, layers: int, *, unlisted: list[bool]) -> dict[str, Any]:
    """`window` and `window_pattern` of a shape; `unlisted` says what slides without a list."""
    window = fields.size("sliding_window", None)
    if window is None or not fields.flag("use_sliding_window", False):
        return {}
    listed = fields.sequence("layer_types")
    if listed is None:
        slides = unlisted
    else:
        if len(listed) != layers or not set(listed) <= {SLIDING, FULL}:
            raise fields.wrong("layer_types", f"is not {layers} times {SLIDING} or {FULL}")
        slides = [kind == SLIDING for kind in listed]
    if not any(slides):
        return {}
    return {"window": window, "window_pattern": repeated_unit(slides)}


def repeated_unit(slides: list[bool]) -> str:
    """The shortest pattern of S and L that gives this list when it is repeated."""
    letters = "".join("S" if one else "L" for one in slides)
    count = len(letters)
    fitting = (n for n in range(1, count + 1) if (letters[:n] * count)[:count] == letters)
    return letters[: next(fitting)]
