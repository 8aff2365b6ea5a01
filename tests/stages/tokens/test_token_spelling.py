"""What tokens stand for, by each way a vocabulary can spell them."""

from __future__ import annotations

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from stages.tokens.vocabulary import (
    count_token_bytes,
    decode_vocabulary,
    format_token,
    format_tokens,
    is_text,
    make_byte_alphabet,
)


def test_every_byte_has_the_character_that_the_library_gives_it() -> None:
    pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    for text in (bytes(range(128)).decode(), "\x80ÿĀ߿ࠀ￿\U0010ffff"):
        ((spelling, _),) = pre_tokenizer.pre_tokenize_str(text)
        assert bytes(make_byte_alphabet()[character] for character in spelling) == text.encode()


def test_byte_level_tokens_stand_for_as_many_bytes_as_a_loss_divides_by(tokenizer) -> None:
    spelt = decode_vocabulary(tokenizer)
    assert list(spelt) == list(range(tokenizer.get_vocab_size()))
    assert [len(raw) for raw in spelt.values()] == count_token_bytes(tokenizer).tolist()


def test_tokens_of_a_text_join_to_the_text(tokenizer) -> None:
    text = "The answer is 12 naïve\n你 <|im_end|>"
    found = format_tokens(tokenizer, text, decode_vocabulary(tokenizer))
    assert found[-1] == "<|im_end|>"
    raw = "".join(found).encode("latin-1", "backslashreplace").decode("unicode_escape")
    assert raw.encode("latin-1").decode() == text


def test_sentencepiece_writes_spaces_and_bytes_in_its_own_way() -> None:
    scores = [("<unk>", 0.0), ("▁the", -1.0), ("ing", -2.0), ("<0xE4>", -9.0), ("<0x20>", -9.0)]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=0, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    assert list(decode_vocabulary(tokenizer).values())[1:] == [b" the", b"ing", b"\xe4", b" "]


def test_llama_2_writes_spaces_by_its_normalizer() -> None:
    tokenizer = Tokenizer(models.BPE(vocab={"▁a": 0, "<0x0A>": 1}, merges=[], byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    assert decode_vocabulary(tokenizer) == {0: b" a", 1: b"\n"}


@pytest.mark.parametrize("byte_level", [False, True])
def test_wordpiece_marks_what_continues_a_word(byte_level) -> None:
    vocabulary = {"[UNK]": 0, "é": 1, "##é": 2, "##": 3, "##ing": 4}
    tokenizer = Tokenizer(models.WordPiece(vocab=vocabulary, unk_token="[UNK]"))
    expected = ["é", "é", "##", "ing"]
    if byte_level:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
        expected = ["\\xe9", "\\xe9", "##", "ing"]
    assert [format_token(raw) for raw in decode_vocabulary(tokenizer).values()][1:] == expected


def test_a_word_may_be_marked_at_its_end_and_tokens_added() -> None:
    model = models.BPE(vocab={"a": 0, "a</w>": 1}, merges=[], end_of_word_suffix="</w>")
    tokenizer = Tokenizer(model)
    tokenizer.add_tokens([AddedToken("  ", normalized=False)])
    tokenizer.add_special_tokens(["<s>"])
    assert decode_vocabulary(tokenizer) == {0: b"a", 1: b"a ", 2: b"  ", 3: b""}


def test_bytes_of_a_split_character_are_no_text() -> None:
    assert is_text("你".encode())
    assert not is_text(b"\xe4\xbd")
    assert format_token(b"a\xe4") == "a\\xe4"
