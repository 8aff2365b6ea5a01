"""Tokens that no text can become: planted in each sort of tokenizer, and none where none is."""

from __future__ import annotations

import json

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from stages.compare_tokenizers.measure import unreachable_tokens
from stages.compare_tokenizers.stage import CompareTokenizers
from stages.tokens.fertility import FertilityCounter
from stages.tokens.vocabulary import decode_vocabulary

ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())


def unreachable(tokenizer: Tokenizer) -> list[str]:
    ids = unreachable_tokens(
        FertilityCounter.from_json(tokenizer.to_str()).tokenizer, decode_vocabulary(tokenizer)
    )
    return [tokenizer.id_to_token(index) for index in ids]


def byte_level(tokens: list[str], merges: list[tuple[str, str]]) -> Tokenizer:
    vocabulary = {token: index for index, token in enumerate([*ALPHABET, *tokens])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def test_a_trained_tokenizer_has_none(bpe) -> None:
    tokenizer = bpe(["The cat sat, naïve 你好 \n\n\t x = 12; it's 12"] * 4, 330)
    assert tokenizer.get_vocab_size() > 280
    assert unreachable(tokenizer) == []


def test_tokens_without_merges_or_that_are_always_cut_are_found() -> None:
    merges = [("a", "b"), ("ab", "c"), ("b", "d"), ("a", "bd"), ("Ġ", "a"), ("!", "a")]
    tokens = ["ab", "abc", "bd", "abd", "Ġa", "xyz", "!a"]
    # Without a merge: xyz. Merged too late: abd, since ab comes first. Cut before it: !a.
    assert unreachable(byte_level(tokens, merges)) == ["abd", "xyz", "!a"]


def test_tokens_that_a_normalizer_changes_are_found() -> None:
    tokenizer = byte_level(["AB", "ab"], [("A", "B"), ("a", "b")])
    tokenizer.normalizer = normalizers.Lowercase()
    assert unreachable(tokenizer) == [*map(chr, range(ord("A"), ord("Z") + 1)), "AB"]


def test_parts_of_a_character_and_special_tokens_are_not_judged() -> None:
    tokenizer = byte_level(["ä½"], [])  # the first two bytes of 你
    tokenizer.add_special_tokens(["<|end|>"])
    assert unreachable(tokenizer) == []


@pytest.mark.parametrize("context", ["q", "7"])
def test_tokens_that_only_continue_a_word_are_looked_for_in_one(context) -> None:
    tokens = ["[UNK]", context, "un", "do", "##do", "##ne", "undo", "##"]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordPiece(vocab=vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    found = unreachable(tokenizer)
    assert "##do" not in found
    assert "##ne" not in found


def test_a_piece_that_costs_more_than_its_parts_is_found() -> None:
    pieces = [("<unk>", 0.0), ("▁", -2.0), ("a", -1.0), ("b", -1.0), ("ab", -5.0), ("ba", -1.5)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    assert unreachable(tokenizer) == ["ab"]


def test_the_comparison_lists_planted_tokens(run_stage, as_artifact, make_documents, read_input):
    tokenizer = byte_level(["ab", "xyz"], [("a", "b")])
    manifest = run_stage(
        CompareTokenizers,
        {"names": ["planted"]},
        {"tokenizers": [as_artifact(tokenizer)], "documents": [make_documents([["ab"]])]},
    )
    raw = read_input(manifest, "comparison").read_bytes("tokenizers.json")
    told = json.loads(raw)["planted"]
    assert told["unreachable"] == [257]
    assert told["unused"] == 257
    assert manifest.counts["unreachable"] == 1
