"""Merges against a plain BPE, and every real text through every algorithm and back."""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel

from stages.tokenizer.training import special_tokens, train
from stages.tokens.pre_tokenizers import NAMES, build_pre_tokenizer, count_words, llama_cpp_name

LINES_A_FILE, CHARACTERS_A_LINE = 12, 4_000


def plain_merges(words: dict[str, int], merges: int, least: int) -> list[tuple[str, str]]:
    """Sennrich et al. 2016, algorithm 1: count all pairs, join the most frequent, again.

    Of equal pairs that with the lower ids, as `tokenizers` does; ids are the bytes in the order of
    their characters, then the joined symbols as they come.
    """
    ids = {symbol: number for number, symbol in enumerate(sorted(ByteLevel.alphabet()))}
    cut = {word: list(word) for word in words}
    found = []
    while len(found) < merges:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, symbols in cut.items():
            for pair in pairwise(symbols):
                pairs[pair] += words[word]
        best = min(pairs, key=lambda p: (-pairs[p], ids[p[0]], ids[p[1]]), default=None)
        if best is None or pairs[best] < least:
            break
        found.append(best)
        ids.setdefault("".join(best), len(ids))
        for symbols in cut.values():
            place = 0
            while place < len(symbols) - 1:
                if (symbols[place], symbols[place + 1]) == best:
                    symbols[place : place + 2] = ["".join(best)]
                place += 1
    return found


@pytest.mark.full
@pytest.mark.parametrize("pre_tokenizer", NAMES)
def test_merges_are_those_of_a_plain_bpe(pre_tokenizer):
    root = Path(__file__).resolve().parents[3]
    texts = [(root / name).read_text(encoding="utf-8") for name in ("README.md", "LICENSE")]
    texts.append("Grüße an die Bären, 12345 你好你好 \n\n\n" * 5)
    words = count_words(iter(texts), build_pre_tokenizer(pre_tokenizer))
    made = train(iter(texts), vocabulary_size=600, pre_tokenizer=pre_tokenizer, min_frequency=3)
    merges = [tuple(pair) for pair in json.loads(made.to_str())["model"]["merges"]]
    assert len(merges) > 200
    assert merges == plain_merges(words, len(merges), 3)


def test_wordpiece_takes_the_longest_token_of_bpe_s_vocabulary():
    """Greedy from the left: expected by hand, from whatever BPE has learnt."""
    texts = ["unhappiness happily unhappy happy unreal real really"] * 20
    settings = {"vocabulary_size": 320, "pre_tokenizer": "gpt-2", "min_frequency": 2}
    merged = train(iter(texts), **settings).get_vocab()
    pieces = train(iter(texts), algorithm="wordpiece", **settings)
    assert pieces.get_vocab() == merged
    left, expected = "unhapreally", []
    while left:
        longest = max((t for t in merged if left.startswith(t)), key=len)
        expected.append(longest)
        left = left[len(longest) :]
    assert pieces.encode("unhapreally", add_special_tokens=False).tokens == expected


def lines_of(path: Path) -> Iterator[str]:
    """Lines spread over a file, each from a place of its own."""
    import zstandard

    draw = random.Random(path.name)
    with path.open("rb") as raw:
        stream = zstandard.ZstdDecompressor().stream_reader(raw)
        texts = [json.loads(line)["text"] for line in io.TextIOWrapper(stream, encoding="utf-8")]
    for text in draw.sample(texts, min(LINES_A_FILE, len(texts))):
        start = draw.randrange(max(1, len(text) - CHARACTERS_A_LINE))
        yield text[start : start + CHARACTERS_A_LINE]


@pytest.fixture(scope="module")
def real_texts() -> list[str]:
    folder = Path(__file__).resolve().parents[4] / "shared" / "data" / "text"
    if not folder.is_dir():
        pytest.skip("needs the shared data folder beside the project")
    files = sorted(folder.glob("*.jsonl.zst"))
    assert len(files) == 18
    return [text for path in files for text in lines_of(path)]


@pytest.mark.full
@pytest.mark.parametrize("algorithm", ["bpe", "unigram", "wordpiece"])
def test_real_texts_in_all_scripts_survive(real_texts, algorithm):
    """Trained on English only, so that most scripts fall to bytes."""
    made = train(
        iter(real_texts[24:48]),
        algorithm=algorithm,
        vocabulary_size=2000,
        pre_tokenizer="llama-bpe",
        min_frequency=2,
    )
    made.encode_special_tokens = True
    for text in real_texts:
        ids = made.encode(text, add_special_tokens=False).ids
        assert min(ids, default=16) >= len(special_tokens(8))
        assert made.decode(ids, skip_special_tokens=False) == text


@pytest.mark.parametrize("name", NAMES)
def test_llama_cpp_s_name_is_told_by_structure(name):
    made = train(iter(["a b " * 9]), vocabulary_size=280, pre_tokenizer=name, min_frequency=2)
    assert llama_cpp_name(made) == name


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        (lambda c: c["model"].update(ignore_merges=False), None),
        (lambda c: c["model"].update(byte_fallback=True), None),
        (lambda c: c.update(normalizer={"type": "NFC"}), None),
        (lambda c: c["pre_tokenizer"]["pretokenizers"][1].update(add_prefix_space=True), None),
        (lambda c: c["pre_tokenizer"]["pretokenizers"][1].update(trim_offsets=False), "llama-bpe"),
        (
            lambda c: c["pre_tokenizer"]["pretokenizers"][0]["pattern"].update(Regex=r"\p{N}{1,2}"),
            None,
        ),
    ],
)
def test_what_llama_cpp_would_cut_otherwise_has_no_name(changed, name):
    made = train(
        iter(["a b " * 9]), vocabulary_size=280, pre_tokenizer="llama-bpe", min_frequency=2
    )
    content = json.loads(made.to_str())
    changed(content)
    assert llama_cpp_name(Tokenizer.from_str(json.dumps(content))) == name


def test_other_algorithms_have_no_name_in_llama_cpp():
    made = train(
        iter(["a b " * 9]),
        algorithm="unigram",
        vocabulary_size=280,
        pre_tokenizer="gpt-2",
        min_frequency=2,
    )
    assert llama_cpp_name(made) is None
