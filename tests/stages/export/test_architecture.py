"""What the card says of a decoder is what its config says, no more and no less."""

from __future__ import annotations

import pytest
from published_shapes import DEEPSEEK_YARN, EXPERTS, LATENT, shape

from stages.export.card import describe_architecture

WORDS = {
    "key and value heads": {},
    "latent attention (rank 12)": {"latent": LATENT},
    "normalised over each head": {"qk_norm": "head"},
    "normalised over all heads": {"qk_norm": "width"},
    "sliding windows of 7 tokens (layers SL)": {"window": 7, "window_pattern": "SL"},
    "3 of 8 experts of 16 and 2 shared": {"experts": EXPERTS},
    "active for a token": {"experts": EXPERTS},
    "RMSNorm on what each part adds": {"norm": "output"},
    "on 50% of the channels": {"rope_share": 0.5},
    "stretched 40 times by YaRN": {"rope_scaling": DEEPSEEK_YARN},
    "except in every 4th layer": {"nope_every": 4},
    "logits capped at 15": {"logit_softcap": 15.0},
    "embeddings not tied": {"tied_embeddings": False},
}


@pytest.mark.parametrize("words", WORDS)
def test_a_part_is_named_where_it_is_there_and_only_there(words):
    assert words in describe_architecture(shape(**WORDS[words]), "float32")
    without = {"latent": LATENT} if words == "key and value heads" else {}
    assert words not in describe_architecture(shape(**without), "float32")
