"""Training a byte-level tokenizer, and the files that hold it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, processors, trainers
from tokenizers import pre_tokenizers as library
from tokenizers.pre_tokenizers import ByteLevel

from stages.tokens.pre_tokenizers import build_pre_tokenizer, count_words
from stages.tokens.vocabulary import BEGIN_OF_TEXT, END_OF_TEXT, PADDING, SPECIAL_TOKENS

LONGEST_WORD = 64
"""Bytes of a word that WordPiece looks at: its search for the longest token is cubic in them."""


def train(
    texts: Iterator[str],
    *,
    vocabulary_size: int,
    pre_tokenizer: str,
    min_frequency: int,
    algorithm: str = "bpe",
    reserved_tokens: int = 8,
) -> Tokenizer:
    """A byte-level tokenizer of `texts`; ids of special tokens first, then of the 256 bytes.

    Every text can be encoded and is decoded to itself: all bytes are tokens, so nothing is unknown.
    Equal texts in any order give an equal tokenizer, with any number of threads and hash seed.
    Fewer than `vocabulary_size` tokens come out where strings that occur `min_frequency` times run
    out. `encode` puts `<|begin_of_text|>` first unless called with `add_special_tokens=False`.
    """
    special = special_tokens(reserved_tokens)
    cut = build_pre_tokenizer(pre_tokenizer)
    if algorithm == "bpe":
        # llama.cpp looks whole words up before it merges when the name is llama-bpe; so do we.
        whole = pre_tokenizer == "llama-bpe"
        tokenizer = Tokenizer(models.BPE(ignore_merges=whole))
        tokenizer.pre_tokenizer = cut
        _merge(tokenizer, texts, special, vocabulary_size, min_frequency)
    elif algorithm == "wordpiece":
        shorter = Tokenizer(models.BPE())
        shorter.pre_tokenizer = _in_short_words(cut)
        _merge(shorter, texts, special, vocabulary_size, min_frequency)
        tokenizer = Tokenizer(_wordpiece(shorter.get_vocab(with_added_tokens=True)))
        tokenizer.pre_tokenizer = shorter.pre_tokenizer
    else:
        from stages.tokenizer.unigram import train_unigram

        pieces = train_unigram(
            count_words(texts, cut), vocabulary_size - len(special), min_frequency
        )
        # A text is cut inside the spelling of a special token, so its score is never used.
        lowest = min(score for _, score in pieces)
        scored = [(token, lowest) for token in special]
        tokenizer = Tokenizer(models.Unigram([*scored, *pieces]))
        tokenizer.pre_tokenizer = cut
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(_added(special))
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single=f"{BEGIN_OF_TEXT} $A",
                pair=f"{BEGIN_OF_TEXT} $A {BEGIN_OF_TEXT} $B:1",
                special_tokens=[(BEGIN_OF_TEXT, special.index(BEGIN_OF_TEXT))],
            ),
        ]
    )
    return tokenizer


def special_tokens(reserved: int) -> tuple[str, ...]:
    """Special tokens in the order of their ids."""
    return (*SPECIAL_TOKENS, *(f"<|reserved_{number}|>" for number in range(reserved)))


def transformers_config(pre_tokenizer: str, reserved_tokens: int = 8) -> dict[str, Any]:
    """The content of tokenizer_config.json, by which `transformers` loads tokenizer.json."""
    named = {BEGIN_OF_TEXT, END_OF_TEXT, PADDING}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BEGIN_OF_TEXT,
        "eos_token": END_OF_TEXT,
        "pad_token": PADDING,
        "additional_special_tokens": [
            token for token in special_tokens(reserved_tokens) if token not in named
        ],
        "clean_up_tokenization_spaces": False,
        "pre_tokenizer": pre_tokenizer,
    }


def _merge(
    tokenizer: Tokenizer,
    texts: Iterator[str],
    special: Sequence[str],
    vocabulary_size: int,
    min_frequency: int,
) -> None:
    """Train a BPE in place (Sennrich et al. 2016).

    Merges depend on counts of pairs alone, ties falling to the lower ids.
    """
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        min_frequency=min_frequency,
        show_progress=False,
        special_tokens=_added(special),
        initial_alphabet=sorted(ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator(texts, trainer=trainer)


def _wordpiece(vocabulary: dict[str, int]) -> models.WordPiece:
    """Longest token first, in words of at most LONGEST_WORD bytes.

    Continued tokens have no prefix (BERT's ##): the byte of the space before a word marks where it
    begins, and ids of prefixed bytes would follow the order of a hash table
    (huggingface/tokenizers#1794). No token stands for the unknown, which cannot come.
    """
    return models.WordPiece(
        vocabulary,
        unk_token="[UNK]",
        max_input_chars_per_word=LONGEST_WORD,
        continuing_subword_prefix="",
    )


def _in_short_words(cut: library.PreTokenizer) -> library.PreTokenizer:
    short = library.Split(Regex(f".{{1,{LONGEST_WORD}}}"), behavior="isolated", invert=False)
    return library.Sequence([cut, short])


def _added(special: Sequence[str]) -> list[AddedToken]:
    return [AddedToken(token, special=True, normalized=False) for token in special]
