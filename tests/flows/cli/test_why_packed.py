"""`ingot why` about documents that pack left out, whole or in part."""

from __future__ import annotations

import json

from stages.pack.stage import Pack
from stages.tokenizer.stage import TokenizerStage


def test_what_pack_excluded_is_shown_with_its_reason(run_stage, make_documents, ingot):
    texts = {
        "a" * 32: "the cat sat on the mat and the dog ran " * 2,
        "b" * 32: "dog cat " * 300,
        "c" * 32: "the dog ran. " + " ".join(map(str, range(200))) + " cat" * 400,
    }
    documents = make_documents([[{"doc_id": name, "text": text} for name, text in texts.items()]])
    tokenizer = run_stage(TokenizerStage, {"vocabulary_size": 300}, {"documents": [documents]})
    inputs = {"documents": [documents], "tokenizer": [(tokenizer, "tokenizer")]}
    run_stage(Pack, {"sequence_length": 256, "held_out_share": 0.0}, inputs)

    def rows(name):
        result = ingot("why", name, "--all", "--json")
        assert result.exit_code == 0, result.output
        (document,) = json.loads(result.stdout)["documents"]
        return {
            kind: [row["values"] for row in document["sightings"] if row["kind"] == kind]
            for kind in ("excluded", "token_shards")
        }

    assert rows("a" * 32)["excluded"] == []
    (gone,) = rows("b" * 32)["excluded"]
    assert (gone["reason"], gone["whole"], rows("b" * 32)["token_shards"]) == (
        "repetitive", True, [],
    )  # fmt: skip
    (part,) = rows("c" * 32)["excluded"]
    assert (part["reason"], part["whole"]) == ("repetitive", False)
    packed = sum(row["length"] for row in rows("c" * 32)["token_shards"])
    assert (packed > 200, part["tokens"] > 256) == (True, True)
    said = ingot("why", "c" * 32, "--all").output
    assert f"{part['tokens']:,} tokens: repetitive; the rest is packed" in said
    assert "repetitive; nothing of it is packed" in ingot("why", "b" * 32, "--all").output
