"""The pack stage: documents in, every token once out, split by duplicate class, stable bytes."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
import zstandard
from tokenizers import Tokenizer

from artifacts_schema.errors import InputError
from stages.pack.stage import Pack
from stages.tokenizer.training import train

WORDS = ["the", "a", "cat", "sat", "dog", "ran", "naïve", "你好", "Привет", "12", "345", "def"]
LENGTH = 64


def corpus(documents: int = 300, seed: int = 0) -> list[list[dict]]:
    draw = random.Random(seed)
    rows = [
        {
            "doc_id": f"{i:032x}",
            "source": draw.choice(["web", "code/python"]),
            "language": draw.choice(["en", None]),
            "text": " ".join(draw.choices(WORDS, k=int(draw.lognormvariate(3, 1)) + 1)),
        }
        for i in range(documents)
    ]
    return [rows[: documents // 2], rows[documents // 2 :]]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    texts = (row["text"] for shard in corpus() for row in shard)
    return train(texts, vocabulary_size=380, pre_tokenizer="llama-bpe", min_frequency=2)


@pytest.fixture
def pack(run_stage, given, make_documents, tokenizer):
    """`pack(shards of rows, execution, force, **config)` → the stage's manifest."""

    def run(shards, execution=None, force=False, **config):
        inputs = {
            "documents": [make_documents(shards)],
            "tokenizer": [given("tokenizer", {"tokenizer.json": tokenizer.to_str().encode()})],
        }
        config = {"sequence_length": LENGTH, "held_out_share": 0.1, **config}
        return run_stage(Pack, config, inputs, execution, force=force)

    return run


def pieces(found):
    """doc_id → {first token of piece: ids}, read back through the index."""
    documents: dict[str, dict[int, list[int]]] = {}
    table = found.read_json("shards.json")
    for source in table["sources"].values():
        for shard in source["shards"]:
            ids = np.frombuffer(found.read_bytes(shard["file"]), dtype=table["dtype"])
            rows = ids.reshape(shard["sequences"], table["sequence_length"])
            index = found.read_table(shard["file"].replace(".tokens", ".index.parquet"))
            for piece in index.to_pylist():
                place = slice(piece["start"], piece["start"] + piece["length"])
                tokens = rows[piece["sequence"], place].tolist()
                start = piece["document_start"]
                assert start not in documents.setdefault(piece["doc_id"], {})
                documents[piece["doc_id"]][start] = tokens
    return documents


def joined(documents):
    """doc_id → all its ids; the pieces must follow each other without gap."""
    whole = {}
    for name, parts in documents.items():
        tokens: list[int] = []
        for start in sorted(parts):
            assert start == len(tokens)
            tokens += parts[start]
        whole[name] = tokens
    return whole


@pytest.mark.parametrize("strategy", ["best_fit", "concatenate"])
def test_every_token_of_every_document_comes_exactly_once(pack, read_input, tokenizer, strategy):
    shards = corpus()
    manifest = pack(shards, strategy=strategy)
    train, held = (joined(pieces(read_input(manifest, s))) for s in ("train", "held_out"))
    assert not set(train) & set(held)
    for row in (row for shard in shards for row in shard):
        ids = tokenizer.encode(row["text"], add_special_tokens=False).ids
        assert (train | held)[row["doc_id"]] == [0, *ids, 1]
    assert len(train | held) == 300
    assert 10 < len(held) < 55  # 300 draws at 0.1: mean 30, deviation 5.2


def test_tables_count_what_the_shards_hold(pack, read_input, tokenizer):
    shards = corpus()
    manifest = pack(shards)
    found = read_input(manifest, "train")
    table = found.read_json("shards.json")
    kept = joined(pieces(found))
    rows = [row for shard in shards for row in shard if row["doc_id"] in kept]
    for name, source in table["sources"].items():
        mine = [row for row in rows if row["source"] == name]
        assert source["documents"] == len(mine)
        assert source["bytes"] == sum(len(row["text"].encode()) for row in mine)
        assert source["tokens"] == sum(len(kept[row["doc_id"]]) for row in mine)
        assert source["sequences"] == sum(shard["sequences"] for shard in source["shards"])
    assert table["dtype"] == "uint16"
    assert (table["padding_id"], table["end_id"]) == (2, 1)
    assert table["vocabulary_size"] == tokenizer.get_vocab_size()
    counts = np.bincount(np.concatenate(list(kept.values())), minlength=table["vocabulary_size"])
    for split in ("train", "held_out"):
        raw = read_input(manifest, split).read_bytes("train_counts.bin")
        assert np.frombuffer(raw, "<i8").tolist() == counts.tolist()
    token_bytes = np.frombuffer(found.read_bytes("token_bytes.bin"), "<u2")
    assert int((counts * token_bytes).sum()) == sum(s["bytes"] for s in table["sources"].values())


def test_a_source_named_like_a_path_is_one_folder(pack, read_input):
    found = read_input(pack(corpus()), "train")
    files = [s["file"] for s in found.read_json("shards.json")["sources"]["code/python"]["shards"]]
    assert files == ["code%2Fpython/00000.tokens", "code%2Fpython/00001.tokens"]


def test_copies_of_a_text_are_never_on_both_sides(pack, read_input):
    shards = corpus()
    rows = [row for shard in shards for row in shard]
    for i, row in enumerate(rows):
        row["duplicate_class"] = rows[i % 60]["doc_id"]
    manifest = pack(shards, held_out_share=0.3)
    train, held = (set(pieces(read_input(manifest, split))) for split in ("train", "held_out"))
    classes = {row["doc_id"]: row["duplicate_class"] for row in rows}
    assert train
    assert held
    assert not {classes[name] for name in train} & {classes[name] for name in held}


def test_another_seed_holds_out_other_documents(pack, read_input):
    first = set(pieces(read_input(pack(corpus(), seed=1), "held_out")))
    assert first != set(pieces(read_input(pack(corpus(), seed=2), "held_out")))


def test_nothing_is_held_out_on_request(pack, read_input):
    found = read_input(pack(corpus(), held_out_share=0.0), "held_out")
    assert found.read_json("shards.json")["sources"] == {}


def test_empty_documents_are_dropped_and_counted(pack, read_input):
    shards = corpus()
    shards[0][3]["text"] = shards[1][5]["text"] = ""
    manifest = pack(shards)
    assert manifest.conservation.dropped == {"empty": 2}
    assert manifest.conservation.out == 298


def test_special_tokens_spelt_in_a_text_stay_text(pack, read_input):
    shards = corpus(20)
    shards[0][0]["text"] = "before <|im_end|><|end_of_text|><|pad|> after"
    whole = joined(pieces(read_input(pack(shards, held_out_share=0.0), "train")))
    ids = whole[shards[0][0]["doc_id"]]
    assert (ids[0], ids[-1]) == (0, 1)
    assert min(ids[1:-1]) >= 5


def test_worker_counts_do_not_change_a_byte(pack):
    first = pack(corpus())
    again = pack(corpus(), execution={"workers": 2}, force=True)
    assert again.outputs == first.outputs
    assert again.attempt == first.attempt, "equal bytes: the second copy is dropped"


def test_a_tokenizer_without_the_special_tokens_is_refused(pack, tokenizer, monkeypatch):
    other = tokenizer.to_str().replace("<|pad|>", "<|filler|>")
    monkeypatch.setattr(Tokenizer, "to_str", lambda self: other)
    with pytest.raises(InputError, match=r"no token '<\|pad\|>'"):
        pack(corpus(20))


def test_real_text_fills_sequences(pack, read_input, shared_data):
    with (shared_data / "text" / "en-docs.jsonl.zst").open("rb") as file:
        lines = zstandard.ZstdDecompressor().stream_reader(file).read(3_000_000).split(b"\n")[:-1]
    texts = [json.loads(line)["text"] for line in lines]
    manifest = pack([texts], sequence_length=256, held_out_share=0.02)
    table = read_input(manifest, "train").read_json("shards.json")["sources"]["web"]
    assert table["tokens"] / (table["sequences"] * 256) > 0.99
