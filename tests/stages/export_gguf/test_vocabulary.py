"""Token ids from a GGUF file alone, by a tokenizer that is built of what llama.cpp reads there."""

from __future__ import annotations

import json

import gguf
import pytest
from tokenizers import AddedToken, Tokenizer, models
from tokenizers.normalizers import NFKC

from artifacts_schema.errors import InputError
from stages.export_gguf.vocabulary import CONTROL, UNUSED, USER_DEFINED
from stages.tokenizer.training import train
from stages.tokens.chat import CHAT_TEMPLATE
from stages.tokens.pre_tokenizers import NAMES, build_pre_tokenizer

TEXTS = (
    "The quick brown fox jumps over the lazy dog. I'll, we've, DON'T",
    "def f(x):\n\treturn  x ** 2   # spaces,\ttabs\r\n\n\n",
    "0 12 345 6789 3.14159 1,000,000 0x1F ¼ ٣٤٥ 一二三",
    "naïve café, Übergröße, Привет, 你好，世界, नमस्ते, مرحبا, שלום, สวัสดี, 👩‍👩‍👧 é \u00a0\u2003x",
    "<|im_start|>user\n<|im_end|> is text here, <|end_of_text|> too",
    " leading, trailing ",
    "",
)


@pytest.fixture(scope="module")
def trained():
    """A tokenizer for each pre-tokenizer."""
    lines = [text for text in TEXTS if text] * 8
    return {
        name: train(iter(lines), vocabulary_size=420, pre_tokenizer=name, min_frequency=2)
        for name in NAMES
    }


def field(reader, name):
    return reader.fields[name].contents()


def rebuilt(reader):
    """The tokenizer that a file describes."""
    tokens = field(reader, "tokenizer.ggml.tokens")
    types = field(reader, "tokenizer.ggml.token_type")
    merges = [tuple(one.split(" ")) for one in field(reader, "tokenizer.ggml.merges")]
    name = field(reader, "tokenizer.ggml.pre")
    vocabulary = {token: index for index, token in enumerate(tokens)}
    own = Tokenizer(models.BPE(vocabulary, merges, ignore_merges=name == "llama-bpe"))
    own.pre_tokenizer = build_pre_tokenizer(name)
    special = [
        AddedToken(t, special=True) for t, k in zip(tokens, types, strict=True) if k == CONTROL
    ]
    own.add_special_tokens(special)
    own.encode_special_tokens = True
    return own


@pytest.mark.parametrize("name", NAMES)
def test_the_file_gives_the_ids_of_the_tokenizer(
    name, trained, make_model, make_checkpoint, make_gguf
):
    tokenizer = Tokenizer.from_str(trained[name].to_str())
    rows = tokenizer.get_vocab_size() + 13
    model = make_model(vocabulary_size=rows)
    made = make_gguf(make_checkpoint(model, tokenizer, name), type="F16")
    reader = made.reader
    assert field(reader, "tokenizer.ggml.pre") == name
    tokens = field(reader, "tokenizer.ggml.tokens")
    types = field(reader, "tokenizer.ggml.token_type")
    # llama.cpp wants a token for each row, each another one.
    assert len(tokens) == len(set(tokens)) == rows == model.config.vocabulary_size
    assert types[-13:] == [UNUSED] * 13
    assert made.manifest.counts["unused_tokens"] == 13
    tokenizer.encode_special_tokens = True
    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert rebuilt(reader).encode(text, add_special_tokens=False).ids == ids, text
    assert tokens[:2] == ["<|begin_of_text|>", "<|end_of_text|>"]
    assert types[:8] == [CONTROL] * 8
    for role, token in (("bos", 0), ("eos", 1), ("padding", 2), ("eot", 4)):
        assert field(reader, f"tokenizer.ggml.{role}_token_id") == token
    assert field(reader, "tokenizer.chat_template") == CHAT_TEMPLATE
    adds = tokenizer.encode("a").ids != tokenizer.encode("a", add_special_tokens=False).ids
    assert field(reader, "tokenizer.ggml.add_bos_token") is adds


def changed(tokenizer, change):
    """A copy of a tokenizer with its JSON changed."""
    content = json.loads(tokenizer.to_str())
    change(content)
    return Tokenizer.from_str(json.dumps(content))


def normalised(tokenizer):
    copy = Tokenizer.from_str(tokenizer.to_str())
    copy.normalizer = NFKC()
    return copy


def with_added(tokenizer, **options):
    copy = Tokenizer.from_str(tokenizer.to_str())
    copy.add_tokens([AddedToken("<mark>", **options)])
    return copy


BAD = {
    "its model is Unigram": lambda t: train(
        iter(["a few words of a text"] * 9),
        vocabulary_size=280,
        pre_tokenizer="gpt-2",
        min_frequency=1,
        algorithm="unigram",
    ),
    "its BPE has byte_fallback": lambda t: changed(
        t, lambda c: c["model"].update(byte_fallback=True)
    ),
    "it has a normalizer, NFKC": normalised,
    "its pre-tokenizer .Whitespace. is none": lambda t: changed(
        t, lambda c: c.update(pre_tokenizer={"type": "Whitespace"})
    ),
    "the added token '<mark>' has lstrip": lambda t: with_added(t, lstrip=True),
}


@pytest.mark.parametrize("message", BAD)
def test_a_vocabulary_that_llama_cpp_does_not_express_is_refused_by_name(
    message, tokenizer, make_model, make_checkpoint, make_gguf, store
):
    own = BAD[message](tokenizer)
    model = make_model(vocabulary_size=own.get_vocab_size())
    with pytest.raises(InputError, match=f"cannot express this vocabulary: .*{message}"):
        make_gguf(make_checkpoint(model, own))


def test_an_added_token_that_is_plain_text_stays_one_token(
    tokenizer, make_model, make_checkpoint, make_gguf
):
    own = with_added(tokenizer)
    made = make_gguf(make_checkpoint(make_model(vocabulary_size=own.get_vocab_size()), own))
    types = field(made.reader, "tokenizer.ggml.token_type")
    assert types[own.token_to_id("<mark>")] == USER_DEFINED
    assert gguf.TokenType.USER_DEFINED == USER_DEFINED
