"""Gopher's repetition signals against the definitions, word by word, and against datatrove."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.signals.repetition import REPETITION_SIGNALS, measure_repetition
from stages.text.batch import split_texts

TOP, DUPLICATE = (2, 3, 4), (5, 6, 7, 8, 9, 10)
WORDS = st.lists(st.sampled_from(["a", "b", "ab", "ba", "aab", ".", "abcdefgh"]), max_size=60)


def top(words: list[str], n: int) -> int:
    """The definition: joined with spaces, the first of the most frequent, length times count."""
    ngrams = [" ".join(words[i : i + n]) for i in range(len(words) - n + 1)]
    if not ngrams:
        return 0
    ngram, count = Counter(ngrams).most_common(1)[0]
    return len(ngram) * count


def duplicates(words: list[str], n: int) -> int:
    """The definition: from left to right, joined without spaces, repeated ones skipped whole."""
    seen: set[str] = set()
    characters = place = 0
    while place + n <= len(words):
        ngram = "".join(words[place : place + n])
        if ngram in seen:
            characters += len(ngram)
            place += n
        else:
            seen.add(ngram)
            place += 1
    return characters


def shares(words: list[str]) -> dict[str, float]:
    size = len(" ".join(words))
    found = {f"top_{n}_gram_character_share": top(words, n) for n in TOP}
    found |= {f"duplicate_{n}_gram_character_share": duplicates(words, n) for n in DUPLICATE}
    return {name: value / size if size else 0.0 for name, value in found.items()}


def measured(texts: list[str]) -> list[dict[str, float]]:
    columns = measure_repetition(split_texts(texts))
    assert list(columns) == [signal.name for signal in REPETITION_SIGNALS]
    return [{name: column[i] for name, column in columns.items()} for i in range(len(texts))]


@given(st.lists(WORDS, max_size=5))
@settings(deadline=None, max_examples=200)
def test_a_batch_equals_the_definitions_text_by_text(texts: list[list[str]]) -> None:
    found = measured([" ".join(words) for words in texts])
    assert found == [shares(words) for words in texts]


@pytest.mark.parametrize("letters", ["ab", "abc", "人山水"])
@pytest.mark.parametrize("longest", [1, 4, 12, 40])
def test_long_texts_equal_the_definitions(letters: str, longest: int) -> None:
    # Words of up to 40 letters, cut and put together again, so that equal strings are divided
    # into words at other places too, in 5-grams of 5 characters as of 200.
    choose = random.Random(longest)
    for _ in range(5):
        pool = ["".join(choose.choices(letters, k=choose.randint(1, longest))) for _ in range(9)]
        words = choose.choices(pool, k=300)
        again = [half for word in words[100:200] for half in (word[: len(word) // 2], word[-1])]
        words += [word for word in again if word] + words[150:180]
        if letters == "人山水":
            words = list("".join(words))  # Each is a word of its own.
        assert measured([" ".join(words)]) == [shares(words)]


def test_worked_example() -> None:
    # "a b" occurs three times: 3 characters with the space, times 3, of 15.
    (found,) = measured(["a b x a b y a b"])
    assert found["top_2_gram_character_share"] == 9 / 15
    # 4-gram of 7 characters: none is repeated, and the first counts once.
    assert found["top_4_gram_character_share"] == len("a b x a") / 15
    # From the left, the second and the third "abcde" repeat the first: 5 characters each.
    (found,) = measured(["a b c d e x a b c d e y a b c d e"])
    assert found["duplicate_5_gram_character_share"] == 10 / 33
    assert found["duplicate_6_gram_character_share"] == 0


def test_ngrams_that_differ_in_spaces_only_are_duplicates() -> None:
    (found,) = measured(["ab c d e f x a bc d e f"])
    assert found["duplicate_5_gram_character_share"] == len("abcdef") / 23
    (found,) = measured(["ab c x a bc"])
    assert found["top_2_gram_character_share"] == len("ab c") / 11  # the first of equals


def test_of_equally_common_ngrams_the_first_to_appear_counts() -> None:
    # "bb cc" and "a a" occur twice; "bb cc" reaches two first, "a a" appears first.
    (found,) = measured(["a a x bb cc y bb cc z a a"])
    assert found["top_2_gram_character_share"] == 2 * len("a a") / 25


def test_datatroves_published_cases_fire_the_rules_they_are_for() -> None:
    clause = "I love it, I love it, I love it, that is all there is to say about that today"
    assert measured([clause])[0]["top_2_gram_character_share"] > 0.2
    quote = "the quick brown fox jumps " * 4 + " ".join(f"word{i}" for i in range(30))
    # The first of four 5-word clauses is new, each of the other three repeats it: 21 characters.
    assert measured([quote])[0]["duplicate_5_gram_character_share"] == 63 / len(quote) > 0.15
    assert measured(["one two three four"])[0]["top_4_gram_character_share"] == 1.0


def test_a_million_equal_words() -> None:
    words = 1_000_000
    (found,) = measured(["a " * words])
    assert found["top_2_gram_character_share"] == 3 * (words - 1) / (2 * words)
    # One 10-gram is new, then every tenth is skipped whole: 10 characters each, but the last 9.
    assert found["duplicate_10_gram_character_share"] == (words - 1) // 10 * 10 / (2 * words)


def test_no_texts_and_no_words_are_no_error() -> None:
    assert measured([]) == []
    assert measured(["", "\n"]) == [dict.fromkeys(shares([]), 0.0)] * 2


@given(WORDS.filter(bool))
@settings(deadline=None, max_examples=100)
def test_equals_datatrove(words: list[str]) -> None:
    oracle = pytest.importorskip("datatrove.pipeline.filters.gopher_repetition_filter")
    (found,) = measured([" ".join(words)])
    size = len(" ".join(words))
    for n in TOP:
        ngrams = oracle.get_n_grams(words, n)
        expected = oracle.find_top_duplicate(ngrams) if ngrams else 0
        assert found[f"top_{n}_gram_character_share"] == expected / size
    for n in DUPLICATE:
        expected = oracle.find_all_duplicate(words, n)
        assert found[f"duplicate_{n}_gram_character_share"] == expected / size
