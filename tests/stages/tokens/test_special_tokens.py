"""Roles are read from the files that a tokenizer comes with."""

from __future__ import annotations

import pytest
from tokenizers import AddedToken, Tokenizer, models

from artifacts_schema.errors import InputError
from stages.tokens.vocabulary import SPECIAL_TOKENS, SpecialTokens, pad_vocabulary

CONFIG = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}


def tokenizer_of(ordinary: list[str], special: list[str]) -> Tokenizer:
    vocabulary = {token: index for index, token in enumerate([*ordinary, *special])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=ordinary[0]))
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in special])
    return tokenizer


def test_roles_are_those_of_the_config_whatever_the_tokens_are_called():
    tokenizer = tokenizer_of(["a", "b"], ["</s>", "<s>", "<pad>", "<|im_end|>"])
    special = SpecialTokens.from_config(tokenizer, CONFIG)
    assert (special.begin, special.end, special.padding) == (3, 2, 4)
    assert (special.turn_start, special.turn_end, special.fim_middle) == (None, 5, None)
    assert special.context == 3
    assert special.document_start == [3]


def test_a_role_may_be_a_table_with_its_content():
    tokenizer = tokenizer_of(["a"], ["</s>", "<pad>"])
    tables = {"eos_token": {"content": "</s>", "lstrip": False}, "pad_token": {"content": "<pad>"}}
    assert SpecialTokens.from_config(tokenizer, tables).end == 1


def test_without_begin_documents_begin_bare_and_texts_are_scored_after_end():
    tokenizer = tokenizer_of(["a"], ["</s>", "<pad>"])
    special = SpecialTokens.from_config(tokenizer, {**CONFIG, "bos_token": None})
    assert special.begin is None
    assert special.document_start == []
    assert special.context == special.end == 1


def test_an_ordinary_token_that_is_spelt_like_a_turn_is_none():
    tokenizer = tokenizer_of(["a", "<|im_start|>"], ["</s>", "<pad>"])
    tokenizer.add_tokens([AddedToken("<|im_end|>", special=False)])
    special = SpecialTokens.from_config(tokenizer, {**CONFIG, "bos_token": None})
    assert special.turn_start is None
    assert special.turn_end is None


@pytest.mark.parametrize(
    ("config", "value"),
    [
        ({"pad_token": "<pad>"}, "eos_token"),
        ({"eos_token": "</s>"}, "pad_token"),
        ({"eos_token": "</s>", "pad_token": "</s>"}, "'</s>'"),
        ({**CONFIG, "bos_token": "<b>"}, "bos_token.*'<b>'"),
        ({**CONFIG, "eos_token": 7}, "eos_token.* 7"),
    ],
)
def test_what_lacks_or_does_not_fit_is_named(config, value):
    tokenizer = tokenizer_of(["a"], ["</s>", "<pad>", "<s>"])
    with pytest.raises(InputError, match=value) as caught:
        SpecialTokens.from_config(tokenizer, config)
    assert caught.value.where == "tokenizer_config.json"


def test_trained_tokenizers_have_the_eight_first(tokenizer):
    from stages.tokenizer.training import transformers_config

    special = SpecialTokens.from_config(tokenizer, transformers_config("llama-bpe"))
    assert list(special.plain().values()) == list(range(8))
    assert [tokenizer.id_to_token(index) for index in range(8)] == list(SPECIAL_TOKENS)


@pytest.mark.parametrize(("size", "rows"), [(1, 64), (64, 64), (65, 128), (32_768, 32_768)])
def test_a_padded_vocabulary_is_the_next_multiple(size, rows):
    assert pad_vocabulary(size, 64) == rows
    assert pad_vocabulary(size, 1) == size
