"""How finely text is cut: by hand, against plain Python, and against `transformers`."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from zstandard import ZstdDecompressor

from stages.tokens.fertility import Fertility, FertilityCounter, batch_items, find_unicode_words
from stages.tokens.vocabulary import decode_vocabulary

ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())
TEXTS = [
    "The cat sat on the mat, didn't it? The mat is 3.14 m.",
    "Привет, мир! Привет, кот.",
    "你好，世界。你好 naïve café",
    "สวัสดีชาวโลก नमस्ते दुनिया",
    "<|end|> the the the\n\n\tx = 1",
]


def byte_level(model: models.Model) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|end|>"])
    return tokenizer


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    tokenizer = byte_level(models.BPE())
    trainer = trainers.BpeTrainer(
        vocab_size=330, initial_alphabet=ALPHABET, show_progress=False, special_tokens=["<|end|>"]
    )
    tokenizer.train_from_iterator(TEXTS * 5, trainer=trainer)
    return tokenizer


def measured(tokenizer: Tokenizer, *texts: str) -> Fertility:
    total = Fertility()
    for sums in (
        FertilityCounter.from_json(tokenizer.to_str()).cut(texts, find_unicode_words(texts)).sums
    ):
        total.add(sums)
    return total


def test_counts_of_a_tokenizer_with_one_merge_are_those_by_hand() -> None:
    vocabulary = {character: index for index, character in enumerate(ALPHABET)} | {"ab": 256}
    tokenizer = byte_level(models.BPE(vocab=vocabulary, merges=[("a", "b")]))
    # "ab" 1 token; " abc" is " ", "ab", "c"; " é" is " " and two bytes; " 你" " " and three; "!" 1.
    found = measured(tokenizer, "ab abc é 你!")
    assert found == Fertility(
        documents=1,
        bytes=2 + 4 + 3 + 4 + 1,
        characters=11,
        words=4,
        continued_words=3,  # "abc", "é", "你"; not "ab"
        tokens=1 + 3 + 3 + 4 + 1,
        not_restored=0,
    )
    assert found.tokens_per_word == 12 / 4
    assert found.continued_share == 3 / 4
    assert found.bytes_per_token == 14 / 12
    assert found.characters_per_token == 11 / 12
    assert found.plain()["characters_per_token"] == round(11 / 12, 4)


def test_nothing_measured_has_no_ratios() -> None:
    assert Fertility().plain()["tokens_per_word"] is None
    assert Fertility().bytes_per_token is None


def test_a_token_over_two_words_continues_neither() -> None:
    tokenizer = byte_level(models.WordLevel({"aĠb": 0, "c": 1, "Ġd": 2, "?": 3}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            pre_tokenizers.Split("c", behavior="isolated"),
        ]
    )
    assert measured(tokenizer, "a bc d") == Fertility(1, 6, 6, 3, 1, 3, 0)  # "bc" alone is cut


def reference(tokenizer: Tokenizer, text: str) -> tuple[int, int, int]:
    """(tokens, words, continued words) by the bytes of each token, letter by letter."""
    tokenizer = FertilityCounter.from_json(tokenizer.to_str()).tokenizer
    spelt = decode_vocabulary(tokenizer)
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    owner = [token for token, index in enumerate(ids) for _ in spelt[index]]
    assert len(owner) == len(text.encode())
    words = find_unicode_words([text])
    continued = 0
    for start, end in zip(words.starts.tolist(), words.ends.tolist(), strict=True):
        first, last = len(text[:start].encode()), len(text[:end].encode())
        continued += len(set(owner[first:last])) > 1
    return len(ids), len(words.text), continued


def test_continued_words_are_those_that_two_tokens_hold_bytes_of(bpe) -> None:
    for text in TEXTS:
        found = measured(bpe, text)
        assert (found.tokens, found.words, found.continued_words) == reference(bpe, text)


@given(st.text(st.characters(exclude_categories=["Cs"])))
@settings(deadline=None, max_examples=150)
def test_any_text_is_counted_as_by_its_bytes_and_restored(bpe, text) -> None:
    found = measured(bpe, text)
    assert (found.tokens, found.words, found.continued_words) == reference(bpe, text)
    assert found.not_restored == 0


def test_a_batch_gives_the_sums_of_its_texts_one_by_one(bpe) -> None:
    cutter = FertilityCounter.from_json(bpe.to_str())
    cuts = cutter.cut(TEXTS, find_unicode_words(TEXTS))
    assert cuts.sums == [measured(bpe, text) for text in TEXTS]
    assert cuts.ids.tolist() == [
        index for text in TEXTS for index in cutter.tokenizer.encode(text).ids
    ]


def test_tokens_are_as_many_as_transformers_makes(bpe) -> None:
    from transformers import PreTrainedTokenizerFast

    other = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(bpe.to_str()), split_special_tokens=True
    )
    for text in TEXTS:
        ids = other(text, add_special_tokens=False)["input_ids"]
        assert measured(bpe, text).tokens == len(ids)


def test_a_tokenizer_that_lowers_letters_does_not_restore_them() -> None:
    tokenizer = byte_level(models.BPE(vocab={c: i for i, c in enumerate(ALPHABET)}, merges=[]))
    tokenizer.normalizer = normalizers.Lowercase()
    assert measured(tokenizer, "Ab", "ab").not_restored == 1


@pytest.mark.parametrize("model", ["unigram", "wordpiece"])
def test_what_a_vocabulary_lacks_is_counted_as_unknown(model) -> None:
    if model == "unigram":
        tokenizer = Tokenizer(models.Unigram([("<unk>", 0.0), ("a", -1.0)], unk_id=0))
    else:
        vocabulary = {"<unk>": 0, "a": 1, "##a": 2}
        tokenizer = Tokenizer(models.WordPiece(vocab=vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    found = measured(tokenizer, "a 你好 aa", "世界")  # one unknown token for two characters
    assert (found.unknown_tokens, found.unknown_share) == (2, 2 / found.tokens)
    assert found.tokens == {"unigram": 5, "wordpiece": 5}[model]


def test_batches_hold_every_item_once_in_order() -> None:
    items = [(n, "x" * 400_000) for n in range(7)]
    found = list(batch_items(items, text=lambda item: item[1]))
    assert [item for batch in found for item in batch] == items
    assert [len(batch) for batch in found] == [3, 3, 1]  # 1,048,576 characters


@pytest.mark.slow
@pytest.mark.full
def test_every_shared_text_survives_a_byte_level_tokenizer(bpe, shared_data) -> None:
    tokenizer = FertilityCounter.from_json(bpe.to_str()).tokenizer
    for path in sorted((shared_data / "text").glob("*.jsonl.zst")):
        with open(path, "rb") as file:
            lines = io.TextIOWrapper(ZstdDecompressor().stream_reader(file), encoding="utf-8")
            texts = [json.loads(line)["text"] for line in lines]
        for batch in batch_items(texts, text=str):
            encoded = tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            ids = [one.ids for one in encoded]
            assert tokenizer.decode_batch(ids, skip_special_tokens=False) == batch
