"""What the pack stage wrote comes back as documents, whatever its strategy."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from packed_by_hand import read_megatron
from tokenizers import Tokenizer

from stages.export_tokens.stage import ExportTokens
from stages.pack.stage import Pack
from stages.tokenizer.stage import TokenizerStage

Make = Callable[..., Any]
WORDS = ["the", "a", "cat", "sat", "naïve", "你好", "Привет", "12", "345", "def", "import"]


def rows(snapshot: int, count: int) -> list[dict[str, Any]]:
    draw = random.Random(snapshot)
    return [
        {
            "source": draw.choice(["web", "web", "code/python"]),
            "text": " ".join(draw.choices(WORDS, k=int(draw.lognormvariate(3, 1.2)) + 1)),
        }
        for _ in range(count)
    ]


@pytest.mark.full
@pytest.mark.parametrize("strategy", ["best_fit", "concatenate", "best_fit_crop"])
def test_documents_are_what_the_tokenizer_makes_of_their_texts(
    run_stage: Make, make_documents: Make, read_input: Make, strategy: str
) -> None:
    """Two snapshots, packed one after the other; `best_fit_crop` keeps a document's beginning."""
    texts = [[rows(snapshot, 150), rows(snapshot + 9, 90)] for snapshot in (1, 2)]
    snapshots = [make_documents(shards, f"s{number}") for number, shards in enumerate(texts)]
    config: dict[str, Any] = {"vocabulary_size": 320, "held_share": 0.0}
    trained = run_stage(TokenizerStage, config, {"documents": snapshots}), "tokenizer"
    library = Tokenizer.from_str(read_input(*trained).read_bytes("tokenizer.json").decode())
    config = {"sequence_length": 64, "strategy": strategy, "repetition": None}
    packed = [
        run_stage(Pack, config, {"documents": [one], "tokenizer": [trained]}) for one in snapshots
    ]
    shards = [(one, split) for one in packed for split in ("train", "held_out")]
    manifest = run_stage(ExportTokens, {}, {"shards": shards}, {"workers": 2})
    found = read_input(manifest, "dataset")
    table = found.read_json("dataset.json")
    for source, one in table["sources"].items():
        found.local_path(f"{one['prefix']}.idx")
        place = found.local_path(f"{one['prefix']}.bin").with_name(one["prefix"])
        documents, _ = read_megatron(place)
        expected = [
            [0, *library.encode(row["text"], add_special_tokens=False).ids, 1]
            for shards_of in texts
            for row in shards_of[0] + shards_of[1]
            if row["source"] == source
        ]
        assert len(documents) == len(expected)
        if strategy == "best_fit_crop":
            beginnings = sorted(tuple(ids) for ids in documents)
            whole = {tuple(ids) for ids in expected}
            assert sum(ids not in whole for ids in beginnings) == one["incomplete"] > 0
            every = {ids[:end] for ids in whole for end in range(1, len(ids) + 1)}
            assert every.issuperset(beginnings)
        else:
            assert sorted(documents) == sorted(expected)
            assert one["incomplete"] == 0
