"""Real token shards of a made corpus, and a tiny pretraining run on them."""

import itertools
import random

import pytest

from stages.pack.stage import Pack
from stages.pretrain.stage import Pretrain
from stages.tokenizer.stage import TokenizerStage

WORDS = {
    "web": ["the", "cat", "sat", "on", "a", "mat", "and", "dog", "ran", "far", "away", "from"],
    "code": ["def", "return", "self", "import", "value", "None", "for", "in", "range", "print"],
}

TINY = {
    "model": {"width": 32, "layers": 2, "heads": 2, "kv_heads": 1, "context": 32},
    "phases": [
        {
            "tokens": 32 * 4 * 6,
            "sequences_per_batch": 4,
            "learning_rate": {"peak": 1e-2, "warmup_share": 0.34},
        },
        {
            "tokens": 32 * 4 * 3,
            "sequences_per_batch": 4,
            "mixture": {"web": 0.25, "code": 0.75},
            "learning_rate": {"decay": "linear"},
        },
    ],
    "precision": "fp32",
    "held_out_every": 4,
    "max_held_out_sequences": 12,
    "optimizer": {"skip_limit": 0},
}
"""Nine training steps of four sequences."""

QUICK = {"device": "cpu", "micro_batch": 3, "checkpoint_every": 2, "threads": 1}


def corpus(seed, languages=(None,)):
    """240 sentences and code-like lines, drawn from few words; each line in the next language."""
    draw = random.Random(seed)
    rows, declared = [], itertools.cycle(languages)
    for _ in range(240):
        source = draw.choice(["web", "web", "code"])
        text = " ".join(draw.choices(WORDS[source], k=draw.randint(5, 40)))
        rows.append({"source": source, "text": text, "language": next(declared)})
    return rows


@pytest.fixture
def packed(run_stage, make_documents):
    """`packed(vocabulary_size=300, seed=0)` → inputs of the pretrain stage."""

    def make(
        vocabulary_size=300, seed=0, sequence_length=32, held_out_share=0.1, languages=(None,)
    ):
        documents = [make_documents([corpus(seed, languages)])]
        settings = {"vocabulary_size": vocabulary_size, "held_share": 0.0}
        tokenizer = [(run_stage(TokenizerStage, settings, {"documents": documents}), "tokenizer")]
        shards = run_stage(
            Pack,
            {"sequence_length": sequence_length, "held_out_share": held_out_share},
            {"documents": documents, "tokenizer": tokenizer},
        )
        return {
            "train": [(shards, "train")],
            "held_out": [(shards, "held_out")],
            "tokenizer": tokenizer,
        }

    return make


@pytest.fixture
def tiny():
    """The config that `pretrain` runs with."""
    return TINY


@pytest.fixture
def pretrain(run_stage):
    """`pretrain(inputs, **config)` with the tiny settings."""

    def run(inputs, execution=None, stop=lambda: False, **config):
        how = {**QUICK, **(execution or {})}
        return run_stage(Pretrain, {**TINY, **config}, inputs, how, stop=stop)

    return run
