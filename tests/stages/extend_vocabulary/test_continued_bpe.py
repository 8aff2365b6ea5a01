"""Continued merges: the library's own where it can be asked, old cuts kept, refusals by name."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, trainers
from tokenizers.pre_tokenizers import ByteLevel

from artifacts_schema.errors import InputError, UsageError
from stages.extend_vocabulary.continued_bpe import (
    add_text,
    build,
    learn,
    read_extensible,
    start_extension,
)
from stages.tokenizer.training import train
from stages.tokens.pre_tokenizers import build_pre_tokenizer, count_words

SYLLABLES = ["ka", "to", "mi", "ren", "schu", "öl", "北", "京", "ab", "12", "х", "ло"]
UNICODE = [
    "naïve café — 你好，世界。 Привет, мир! नमस्ते مرحبا 👩‍👩‍👧 \u200b\ufeff",
    "def f(x):\n\treturn x ** 2  # ½ ≠ ²\r\n\r\n",
    "a\u0301 \ud7ff \ue000 \U0010ffff \x00\x7f",
    "<|im_start|>user<|im_end|> <|pad|>",
    "",
]


def corpus(seed: int = 0, count: int = 300, syllables: list[str] | None = None) -> list[str]:
    draw = random.Random(seed)
    pick = syllables or SYLLABLES
    words = ["".join(draw.choices(pick, k=draw.randint(1, 5))) for _ in range(120)]
    return [" ".join(draw.choices(words, k=12)) + "." for _ in range(count)]


OLD, NEW = corpus(1), corpus(2, syllables=["ka", "zu", "feld", "北", "ло", "qx", "mi"])


def trained(size: int = 330, pre_tokenizer: str = "gpt-2", texts: list[str] = OLD) -> str:
    tokenizer = train(
        iter(texts), vocabulary_size=size, pre_tokenizer=pre_tokenizer, min_frequency=2
    )
    return tokenizer.to_str()


def extended(
    description: str, texts: list[str] = NEW, count: int = 60, tokens: tuple[str, ...] = ()
) -> str:
    tokenizer = read_extensible(description)
    extension = start_extension(tokenizer)
    for place, text in enumerate(tokens):
        add_text(extension, tokenizer, text, f"tokens.{place}")
    words = count_words(iter(texts), tokenizer.pre_tokenizer, tokenizer.normalizer)
    learn(extension, tokenizer, words, count, min_frequency=2)
    return build(description, extension, tokens)


def ids(description: str, text: str) -> list[int]:
    return read_extensible(description).encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("seed", range(6))
def test_continued_on_the_same_text_the_merges_are_those_of_the_library(seed):
    """The oracle: one training run of `tokenizers` to 420 tokens, against 330 and 90 more."""
    texts = corpus(seed, 200)
    whole = trained(420, texts=texts)
    continued = extended(trained(330, texts=texts), texts, 90)
    ours, theirs = (json.loads(one)["model"] for one in (continued, whole))
    assert len(theirs["vocab"]) == 420
    assert ours["merges"] == theirs["merges"]
    assert ours["vocab"] == theirs["vocab"]


@pytest.mark.parametrize("pre_tokenizer", ["gpt-2", "smollm", "llama-bpe", "qwen2"])
def test_old_ids_stay_and_a_text_changes_only_where_a_new_token_applies(pre_tokenizer):
    before = trained(pre_tokenizer=pre_tokenizer)
    after = extended(before)
    old, new = (read_extensible(one).get_vocab(with_added_tokens=True) for one in (before, after))
    assert {token: new[token] for token in old} == old
    assert sorted(new.values()) == list(range(len(old) + 60))
    extension = start_extension(read_extensible(before))
    tokenizer = read_extensible(before)
    learn(extension, tokenizer, count_words(iter(NEW), tokenizer.pre_tokenizer), 60, 2)
    changed = 0
    for text in [*NEW, *OLD, *UNICODE]:
        cut = ids(after, text)
        pieces = [
            piece
            for index in cut
            for piece in ((index,) if index < len(old) else _pieces(after, before, index))
        ]
        assert "".join(_spell(before, pieces)) == "".join(_spell(before, ids(before, text)))
        if all(index < len(old) for index in cut):
            assert cut == ids(before, text)
        if pre_tokenizer != "llama-bpe":  # It looks whole words up first.
            own = [extension.pieces[i - len(old)] if i >= len(old) else (i,) for i in cut]
            assert [one for parts in own for one in parts] == ids(before, text)
        changed += cut != ids(before, text)
    assert changed > 100
    assert sum(len(ids(after, text)) for text in NEW) < sum(len(ids(before, text)) for text in NEW)


def _spell(description: str, tokens: list[int]) -> list[str]:
    tokenizer = Tokenizer.from_str(description)
    return [tokenizer.id_to_token(index) for index in tokens]


def _pieces(after: str, before: str, index: int) -> list[int]:
    word = Tokenizer.from_str(after).id_to_token(index)
    return [token.id for token in Tokenizer.from_str(before).model.tokenize(word)]


@drawn(st.text(max_size=40))
def test_any_text_is_restored(text):
    tokenizer = read_extensible(EXTENDED)
    cut = tokenizer.encode(text, add_special_tokens=False).ids
    assert tokenizer.decode(cut, skip_special_tokens=False) == text


EXTENDED = extended(trained(pre_tokenizer="llama-bpe"), tokens=(" Straßenbahn", "北京"))


@pytest.mark.parametrize("text", [*UNICODE, *NEW[:40]])
def test_transformers_reads_the_same_ids(text, tmp_path):
    from transformers import AutoTokenizer

    from stages.tokenizer.training import transformers_config

    (tmp_path / "tokenizer.json").write_text(EXTENDED, encoding="utf-8")
    described = json.dumps(transformers_config("llama-bpe"))
    (tmp_path / "tokenizer_config.json").write_text(described)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    assert len(theirs) == read_extensible(EXTENDED).get_vocab_size()
    assert theirs(text)["input_ids"] == Tokenizer.from_str(EXTENDED).encode(text).ids
    theirs_plain = theirs(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    assert theirs_plain == ids(EXTENDED, text)


def test_equal_words_in_any_order_give_equal_bytes():
    before = trained()
    shuffled = random.Random(3).sample(NEW, len(NEW))
    assert extended(before, NEW) == extended(before, shuffled)


def test_listed_texts_are_one_token_each_and_come_first():
    texts = (" Straßenbahn", "北京", " Straßen", " zzzz", " zzz")
    after = extended(trained(pre_tokenizer="qwen2"), tokens=texts)
    new = [ids(after, text) for text in texts]
    assert all(len(one) == 1 for one in new)
    assert len({one[0] for one in new}) == len(texts)
    assert ids(after, "eine Straßenbahn.")[-2] == new[0][0]


def test_added_tokens_outside_the_vocabulary_keep_their_ids():
    """As Llama 3 and Qwen have them: `tokenizers` would number them by the size that grows."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = build_pre_tokenizer("qwen2")
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, show_progress=False, initial_alphabet=sorted(ByteLevel.alphabet())
    )
    tokenizer.train_from_iterator(OLD, trainer=trainer)
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True, normalized=False)])
    tokenizer.add_tokens([AddedToken("<tool>", special=False, normalized=False)])
    assert tokenizer.token_to_id("<|end|>") == 300
    after = Tokenizer.from_str(extended(tokenizer.to_str()))
    assert [after.token_to_id(one) for one in ("<|end|>", "<tool>")] == [300, 301]
    assert after.get_vocab_size() == 362
    text = "ka<|end|><tool>to"
    assert after.encode(text).ids[1:3] == tokenizer.encode(text).ids[1:3] == [300, 301]
    assert after.decode(after.encode(text).ids, skip_special_tokens=False) == text


def of_kind(kind: str) -> str:
    if kind in ("unigram", "wordpiece"):
        tokenizer = train(
            iter(OLD), vocabulary_size=330, pre_tokenizer="gpt-2", min_frequency=2, algorithm=kind
        )
        return tokenizer.to_str()
    content = json.loads(trained())
    if kind == "characters":
        content["model"]["byte_fallback"] = True
    elif kind == "suffix":
        content["model"]["end_of_word_suffix"] = "</w>"
    else:
        content["decoder"] = None
    return json.dumps(content)


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("unigram", "Unigram"),
        ("wordpiece", "WordPiece"),
        ("characters", "characters"),
        ("decoder", "characters"),
        ("suffix", "end_of_word_suffix"),
    ],
)
def test_what_is_no_byte_level_bpe_is_refused_by_name(kind, problem):
    with pytest.raises(InputError, match=problem) as refused:
        read_extensible(of_kind(kind))
    assert refused.value.where == "tokenizer.json"


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (("ka",), "is a token already"),
        (("x<|im_end|>",), "spells the added token '<|im_end|>'"),
        (("zwei Worte",), "is cut into"),
    ],
)
def test_a_text_that_cannot_become_a_token_is_refused_with_its_place(texts, problem):
    with pytest.raises(UsageError) as refused:
        extended(trained(), tokens=texts)
    assert problem in refused.value.what
    assert refused.value.where == f"tokens.{len(texts) - 1}"


def test_a_text_that_only_old_tokens_could_join_is_refused():
    """By hand: abc is cut into ab│c by the first merge; bc is a token, and so is abc, of a and bc.

    To join ab and c to the old abc would change the cut of every text with abc.
    """
    content = json.loads(trained(272))  # 16 special tokens and the bytes, no merges.
    assert content["model"]["merges"] == []
    vocabulary = content["model"]["vocab"]
    vocabulary |= {"ab": 272, "bc": 273, "abc": 274}
    content["model"]["merges"] = [["a", "b"], ["b", "c"], ["a", "bc"]]
    description = json.dumps(content)
    assert ids(description, "abc") == [272, vocabulary["c"]]
    with pytest.raises(UsageError, match="each two of these are an old token"):
        extended(description, tokens=("abc",))
    # Nor is it learnt, however often it comes; what it begins is.
    after = extended(description, ["abcd abcd abcd abcd"], 5)
    assert ids(after, "abc") == [272, vocabulary["c"]]
    assert len(ids(after, "abcd")) == 1
