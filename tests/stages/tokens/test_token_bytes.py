"""Bytes of tokens: their sum over a text is the text's own size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from artifacts_schema.errors import InputError
from stages.tokens.vocabulary import count_token_bytes


def sentencepiece(*, prefix: bool = False, fallback: bool = True) -> Tokenizer:
    """As Llama 2's tokenizer.json, or Gemma's without the prefix: ▁, merges, bytes."""
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    names += ["▁", "t", "h", "e", "é", "你", "th", "the", "▁the", "▁▁"]
    vocabulary = {name: index for index, name in enumerate(names)}
    merges = [("t", "h"), ("th", "e"), ("▁", "the"), ("▁", "▁")]
    tokenizer = Tokenizer(
        models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=fallback)
    )
    replace = normalizers.Replace(" ", "▁")
    tokenizer.normalizer = (
        normalizers.Sequence([normalizers.Prepend("▁"), replace]) if prefix else replace
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in names[:3]]
    )
    tokenizer.add_tokens([AddedToken("Übung", normalized=False)])
    return tokenizer


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="▁"))


@settings(max_examples=100, deadline=None)
@given(text=st.one_of(TEXTS, st.text("the é你 Übung\n")))
def test_bytes_of_a_fallback_tokenizer_sum_to_those_of_the_text(text):
    tokenizer = sentencepiece()
    tokenizer.encode_special_tokens = True
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert count_token_bytes(tokenizer)[ids].astype(int).sum() == len(text.encode())
    assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_a_space_that_is_put_before_every_text_is_counted():
    tokenizer = sentencepiece(prefix=True)
    ids = tokenizer.encode("the", add_special_tokens=False).ids
    assert count_token_bytes(tokenizer)[ids].tolist() == [len(" the")]


def test_special_tokens_stand_for_nothing_and_added_ones_for_themselves():
    lengths = count_token_bytes(sentencepiece())
    assert lengths[:3].tolist() == [0, 0, 0]
    assert lengths[3:259].tolist() == [1] * 256
    assert lengths[-1] == len("Übung".encode())
    assert lengths.dtype == np.uint16


def test_without_byte_fallback_a_text_may_be_unknown_and_nothing_is_exact():
    with pytest.raises(InputError, match="token 3 "):
        count_token_bytes(sentencepiece(fallback=False))


def test_a_fallback_that_lacks_a_byte_is_refused():
    tokenizer = sentencepiece()
    broken = tokenizer.to_str().replace("<0x0A>", "<0xZZ>")
    with pytest.raises(InputError, match=rf"token {tokenizer.token_to_id('<0x0A>')} |token 3 "):
        count_token_bytes(Tokenizer.from_str(broken))


def test_a_tokenizer_of_words_is_refused():
    other = Tokenizer(models.WordLevel({"naïve words": 0}, unk_token="naïve words"))
    with pytest.raises(InputError, match="byte-level"):
        count_token_bytes(other)


def test_gaps_are_refused():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: 2 * index for index, token in enumerate(alphabet)}
    with pytest.raises(InputError, match="gaps"):
        count_token_bytes(Tokenizer(models.BPE(vocabulary, [])))
