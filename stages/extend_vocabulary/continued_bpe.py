"""More tokens for a byte-level BPE that a model was trained with.

Merges are learnt from where the old ones end (continued BPE training: Purason et al. 2025, arXiv
2512.03989), and put behind them. A BPE applies merges in the order of the list, so a text is first
cut as before, and a new merge joins tokens of that cut. No old merge can follow, for none knows a
new token. Hence ids change only where a new token applies.

`tokenizers` trains from bytes alone: its trainer forgets the merges of the tokenizer that it
trains. Continued on the text that a tokenizer was trained on, this one gives the library's own
merges (test).
"""

from __future__ import annotations

import heapq
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tokenizers import Tokenizer

from artifacts_schema.errors import InputError, UsageError
from stages.tokens.vocabulary import load_plain_tokenizer, make_byte_alphabet

Pair = tuple[int, int]

_SETTINGS = ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix")
WHERE = "tokenizer.json"


@dataclass
class Extension:
    """New tokens of a vocabulary: the n-th has the id `first` + n."""

    spelled: dict[int, str]
    """Every token by id, old and new, in the byte-level alphabet."""
    first: int
    merges: dict[Pair, int] = field(default_factory=dict)
    """The new token of each new merge; a merge applies before those after it."""
    pieces: list[tuple[int, ...]] = field(default_factory=list)
    """Old ids that each new token is joined from."""

    def __post_init__(self) -> None:
        self._ids = {text: index for index, text in self.spelled.items()}
        self._ranks: dict[Pair, int] = {}

    def merge(self, pair: Pair) -> int | None:
        """The new token of two, made if there is none; None where an old token is spelled so.

        A merge to an old token would change ids where no new token applies.
        """
        if pair in self.merges:
            return self.merges[pair]
        text = self.spelled[pair[0]] + self.spelled[pair[1]]
        index = self._ids.get(text)
        if index is not None and index < self.first:
            return None
        if index is None:
            index = self.first + len(self.pieces)
            self._ids[text], self.spelled[index] = index, text
            self.pieces.append(self._old(pair[0]) + self._old(pair[1]))
        self._ranks[pair] = len(self.merges)
        self.merges[pair] = index
        return index

    def apply(self, ids: Sequence[int]) -> list[int]:
        """A word that the old tokenizer has cut, after all new merges."""
        parts = list(ids)
        while len(parts) > 1:
            ranked = [(self._ranks[p], p) for p in pairwise(parts) if p in self._ranks]
            if not ranked:
                break
            _, pair = min(ranked)
            parts = _join(parts, pair, self.merges[pair])
        return parts

    def _old(self, index: int) -> tuple[int, ...]:
        return (index,) if index < self.first else self.pieces[index - self.first]


def read_extensible(description: str, where: str = WHERE) -> Tokenizer:
    """The tokenizer of a tokenizer.json, special tokens in a text read as plain characters.

    InputError for one that is no byte-level BPE, with what it is.
    """
    tokenizer = load_plain_tokenizer(description)
    content = json.loads(tokenizer.to_str())
    model, decoder = content["model"], json.dumps(content["decoder"])
    problem = None
    if model["type"] != "BPE":
        problem = f"its algorithm is {model['type']}"
    elif model["byte_fallback"] or '"ByteLevel"' not in decoder:
        problem = "it is a BPE of characters, not of bytes"
    elif changed := [name for name in _SETTINGS if model.get(name)]:
        problem = f"it sets {', '.join(changed)}"
    elif lacking := make_byte_alphabet().keys() - model["vocab"].keys():
        problem = f"it has no token for {len(lacking)} of the 256 bytes"
    if problem is not None:
        raise InputError(
            f"cannot be extended: {problem}",
            where=where,
            hint="extend a byte-level BPE, as the tokenizer stage trains by default",
        )
    ids = sorted(tokenizer.get_vocab(with_added_tokens=True).values())
    if ids != list(range(len(ids))):
        raise InputError("the ids of the vocabulary have gaps", where=where)
    return tokenizer


def start_extension(tokenizer: Tokenizer) -> Extension:
    """No new token yet."""
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    return Extension({index: text for text, index in vocabulary.items()}, len(vocabulary))


def add_text(extension: Extension, tokenizer: Tokenizer, text: str, where: str) -> None:
    """Add merges that make `text` one token; of three pieces or more, also the tokens between.

    UsageError where it spells a special token, has one already, is no single word of the
    pre-tokenizer, or can only be joined through an old token.
    """
    for token in tokenizer.get_added_tokens_decoder().values():
        if token.content in text:
            raise UsageError(f"{text!r} spells the added token {token.content!r}", where=where)
    word = _only_word(tokenizer, text, where)
    ids = extension.apply([token.id for token in tokenizer.model.tokenize(word)])
    if len(ids) == 1 and ids[0] < extension.first:
        raise UsageError(f"{text!r} is a token already", where=where, hint="leave it out")
    while len(ids) > 1:
        for pair in pairwise(ids):
            joined = extension.merge(pair)
            if joined is not None:
                ids = extension.apply(ids)
                break
        else:
            raise UsageError(
                f"{text!r} cannot be joined from {_spell(extension, ids)}: each two of these are "
                "an old token, which would then replace them in other words too",
                where=where,
            )


def learn(
    extension: Extension,
    tokenizer: Tokenizer,
    words: Mapping[str, int],
    new_tokens: int,
    min_frequency: int,
    check_stop: Callable[[], None] = lambda: None,
) -> int:
    """Add the merges of the pairs met most often, ties falling to the lower ids; how many tokens.

    `words` are counts of pre-tokenized words in the byte-level alphabet. Equal words in any order
    give equal merges.
    """
    cuts: list[list[int]] = []
    frequencies: list[int] = []
    counts: Counter[Pair] = Counter()
    places: defaultdict[Pair, set[int]] = defaultdict(set)
    for word, frequency in words.items():
        ids = extension.apply([token.id for token in tokenizer.model.tokenize(word)])
        if len(ids) < 2:
            continue
        for pair in pairwise(ids):
            counts[pair] += frequency
            places[pair].add(len(cuts))
        cuts.append(ids)
        frequencies.append(frequency)
    heap = [(-count, pair) for pair, count in counts.items()]
    heapq.heapify(heap)
    before = len(extension.pieces)
    while heap and len(extension.pieces) < before + new_tokens:
        check_stop()
        negative, pair = heapq.heappop(heap)
        count = counts[pair]
        if count != -negative:  # It was counted before other merges; those that grew are in again.
            if count:
                heapq.heappush(heap, (-count, pair))
            continue
        if count < min_frequency:
            break
        joined = extension.merge(pair)
        if joined is None:
            continue
        grown: set[Pair] = set()
        for place in places.pop(pair):
            old, frequency = cuts[place], frequencies[place]
            new = _join(old, pair, joined)
            for one in pairwise(old):
                counts[one] -= frequency
            for one in pairwise(new):
                counts[one] += frequency
                if joined in one:
                    places[one].add(place)
                    grown.add(one)
            cuts[place] = new
        for one in sorted(grown):
            heapq.heappush(heap, (-counts[one], one))
    return len(extension.pieces) - before


def build(description: str, extension: Extension, texts: Sequence[str] = ()) -> str:
    """The tokenizer.json with the new tokens; InputError if one of `texts` is not one token of it.

    Added tokens enter the model's own vocabulary with the ids that they have: `tokenizers` numbers
    those outside it by the vocabulary's size, which grows.
    """
    content: dict[str, Any] = json.loads(Tokenizer.from_str(description).to_str())
    model = content["model"]
    added = {one["content"]: one["id"] for one in content["added_tokens"]}
    outside = sorted(added.keys() - model["vocab"].keys())
    new = range(extension.first, extension.first + len(extension.pieces))
    tokens = model["vocab"] | added | {extension.spelled[index]: index for index in new}
    model["vocab"] = dict(sorted(tokens.items(), key=lambda item: item[1]))
    model["merges"] += [[extension.spelled[one] for one in pair] for pair in extension.merges]
    written = Tokenizer.from_str(json.dumps(content)).to_str(pretty=True)
    before, after = (load_plain_tokenizer(one) for one in (description, written))
    assert after.get_vocab(with_added_tokens=True) == tokens
    for token in outside:
        cuts = [one.encode(token, add_special_tokens=False).ids for one in (before, after)]
        if cuts[0] != cuts[1]:
            raise InputError(f"a text that spells {token!r} would become that token", where=WHERE)
    for text in texts:
        ids = after.encode(text, add_special_tokens=False).ids
        if len(ids) != 1 or ids[0] < extension.first:
            raise InputError(f"{text!r} does not become one token", where="tokens")
    return written


def _join(ids: Sequence[int], pair: Pair, joined: int) -> list[int]:
    """The same with each `pair`, from the left, as one token."""
    result: list[int] = []
    for index in ids:
        if result and index == pair[1] and result[-1] == pair[0]:
            result[-1] = joined
        else:
            result.append(index)
    return result


def _only_word(tokenizer: Tokenizer, text: str, where: str) -> str:
    """`text` as one word in the byte-level alphabet."""
    normalizer, cut = tokenizer.normalizer, tokenizer.pre_tokenizer
    plain = text if normalizer is None else normalizer.normalize_str(text)
    if plain != text:
        raise UsageError(f"{text!r} is normalised to {plain!r}", where=where)
    words = [word for word, _ in cut.pre_tokenize_str(text)]
    if len(words) != 1:
        parts = " ".join(repr(text[start:end]) for _, (start, end) in cut.pre_tokenize_str(text))
        raise UsageError(
            f"{text!r} is cut into {parts} before merging, so it cannot become one token",
            where=where,
        )
    return words[0]


def _spell(extension: Extension, ids: Sequence[int]) -> str:
    return " ".join(repr(extension.spelled[index]) for index in ids)
