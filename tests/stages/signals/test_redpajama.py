"""RedPajama-V2's signals: numbers by hand, and the published definitions in plain Python."""

from __future__ import annotations

import math
import re
import string
import unicodedata
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stages.signals.redpajama import REDPAJAMA_SIGNALS, load_stop_words, measure_redpajama
from stages.text.batch import split_texts

BULLETS = tuple("\u2022\u2023\u25b6\u25c0\u25e6\u25a0\u25a1\u25aa\u25ab\u2013")


def measured(texts: list[str], language: str = "en") -> list[dict[str, float]]:
    columns = measure_redpajama(split_texts(texts), language)
    assert set(columns) == {signal.name for signal in REDPAJAMA_SIGNALS}
    return [{name: column[i] for name, column in columns.items()} for i in range(len(texts))]


def normalise(text: str) -> str:
    """`utilities/text/normalization.py`: each step in its order."""
    text = text.translate(str.maketrans("", "", string.punctuation)).lower().strip()
    return unicodedata.normalize("NFD", re.sub(r"\s+", " ", text))


def over(part: float, whole: int) -> float:
    return part / whole if whole else 0.0


def reference(text: str) -> dict[str, float]:
    content = normalise(text)
    words, raw = content.split(), re.findall(r"\w+|[^\w\s]+", text)
    counts = Counter(words)
    lettered = sum(re.search("[a-zA-Z]", word) is not None for word in raw)
    stops = set(load_stop_words("en"))
    found = {
        "rps_doc_word_count": len(words),
        "rps_doc_mean_word_length": over(sum(map(len, words)), len(words)),
        "rps_doc_symbol_to_word_ratio": over(sum(map(text.count, ("#", "...", "…"))), len(raw)),
        "rps_doc_frac_no_alph_words": 1 - lettered / len(raw) if raw else 0.0,
        "rps_doc_frac_unique_words": over(len(counts), len(words)),
        "rps_doc_unigram_entropy": sum(
            -count / len(words) * math.log(count / len(words)) for count in counts.values()
        ),
        "rps_doc_stop_word_fraction": over(sum(w in stops for w in raw), len(raw)) if words else 0,
        "rps_doc_num_sentences": len(re.findall(r"\b[^.!?]+[.!?]*", text)),
        "rps_doc_curly_bracket": over(text.count("{") + text.count("}"), len(text)),
        "rps_doc_lorem_ipsum": over(content.count("lorem ipsum"), len(content)),
        "rps_doc_frac_all_caps_words": over(sum(map(str.isupper, raw)), len(raw)),
        **line_means(re.findall(r"[^\n]*\n|[^\n]+$", text)),
    }
    size = sum(map(len, words))
    for n in range(2, 11):
        ngrams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
        occurrences = Counter(ngrams)
        if n < 5:
            top, count = (occurrences.most_common(1) or [((), 0)])[0]
            characters = len("".join(top)) * count if count > 1 else 0
            found[f"rps_doc_frac_chars_top_{n}gram"] = over(characters, size)
        else:
            inside = {i + k for i, g in enumerate(ngrams) if occurrences[g] > 1 for k in range(n)}
            found[f"rps_doc_frac_chars_dupe_{n}grams"] = over(
                sum(len(words[i]) for i in inside), size
            )
    return found


def line_means(lines: list[str]) -> dict[str, float]:
    normal = [normalise(line) for line in lines]
    values: dict[str, list[float]] = {
        "rps_doc_frac_lines_end_with_ellipsis": [
            line.rstrip().endswith(("...", "…")) for line in lines
        ],
        "rps_lines_ending_with_terminal_punctution_mark": [
            line.rstrip().endswith((".", "!", "?", "”")) for line in lines
        ],
        "rps_lines_javascript_counts": [line.split().count("javascript") for line in normal],
        "rps_lines_num_words": [len(line.split()) for line in normal],
        "rps_lines_numerical_chars_fraction": [
            over(sum(map(str.isnumeric, line)), len(line)) for line in normal
        ],
        "rps_lines_start_with_bulletpoint": [line.lstrip().startswith(BULLETS) for line in lines],
        "rps_lines_uppercase_letter_fraction": [
            over(sum(map(str.isupper, line)), len(line)) for line in lines
        ],
    }
    return {name: over(sum(marks), len(lines)) for name, marks in values.items()}


PIECES = st.sampled_from(
    [
        *(
            "the ",
            "The ",
            "lorem ",
            "Ipsum ",
            "lo-rem ",
            "ipsums",
            "flor",
            "em ",
            "javascript ",
            "é",
        ),
        *(
            "JavaScript, ",
            "ΣΑΣ ",
            "ΑΣ'",
            "ΑΣ,",
            "Σ",
            "\u0301",
            "\u0323",
            "\u0307\u0323",
            "각",
            "\uf96b",
        ),
        *(
            "\n",
            "\n\n",
            ". ",
            "!?",
            "...",
            "…\n",
            "\u2022 ",
            "{",
            "}",
            "#",
            "Ⓐ",
            "ǅ",
            "½",
            "٣",
            "İ",
            "_",
        ),
        *(" ", "\xa0", "\x85", "\x1c", "\x00", "\u200d", "≠", "A B c d e f ", "A B c d e f "),
    ]
)
TEXTS = st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=20)


@given(st.lists(TEXTS, max_size=3))
@example(
    [
        "",
        "\n",
        " ",
        "?!",
        "a\n\nb",
        "a\u0323\u0307 a\u0307\u0323 ạ\u0307",
        "Σ",
        "ΑΣ\u0301Α ΑΣ\u0301",
    ]
)
@example(
    ["lorem ipsum lorem, ipsum", "Lorem\nipsum", "lorém ipsum", "lorem\u0301 ipsum", "\ud800Ａ"]
)
@example(["ας ΑΣ", "a"])  # The sigma ends its text, whatever the next one begins with.
@settings(deadline=None, max_examples=300)
def test_any_batch_equals_the_definitions_text_by_text(texts: list[str]) -> None:
    for found, text in zip(measured(texts), texts, strict=True):
        # The published values are rounded to eight digits.
        assert found == pytest.approx(reference(text), abs=0.51e-8, rel=0)


def test_by_hand() -> None:
    (found,) = measured(["The CAT, the dog... {x}\n• See 12 of THE cats\n"])
    # Normalised: the cat the dog x | • see 12 of the cats. Eleven words of 28 characters.
    # Raw: The CAT , the dog ... { x } | • See 12 of THE cats. Fifteen words.
    assert found["rps_doc_word_count"] == 11
    assert found["rps_doc_mean_word_length"] == round(28 / 11, 8)
    assert found["rps_doc_frac_unique_words"] == round(9 / 11, 8)
    entropy = -(3 / 11) * math.log(3 / 11) - 8 / 11 * math.log(1 / 11)
    assert found["rps_doc_unigram_entropy"] == round(entropy, 8)
    assert found["rps_doc_symbol_to_word_ratio"] == round(1 / 15, 8)
    assert found["rps_doc_frac_all_caps_words"] == round(2 / 15, 8)
    assert found["rps_doc_frac_no_alph_words"] == round(6 / 15, 8)  # , ... { } • 12
    assert found["rps_doc_stop_word_fraction"] == round(3 / 15, 8)  # the, x, of
    assert found["rps_doc_num_sentences"] == 2
    assert found["rps_doc_curly_bracket"] == round(2 / 45, 8)
    assert found["rps_lines_num_words"] == 11 / 2
    assert found["rps_lines_start_with_bulletpoint"] == 1 / 2
    assert found["rps_lines_ending_with_terminal_punctution_mark"] == 0
    assert found["rps_lines_numerical_chars_fraction"] == round(
        2 / len("• see 12 of the cats") / 2, 8
    )
    assert found["rps_lines_uppercase_letter_fraction"] == round((4 / 24 + 4 / 21) / 2, 8)


def test_stop_words_are_those_of_the_language() -> None:
    text = ["der die das und the of"]
    assert measured(text, "de")[0]["rps_doc_stop_word_fraction"] == round(4 / 6, 8)
    assert measured(text)[0]["rps_doc_stop_word_fraction"] == round(2 / 6, 8)
    assert measured(text, "xx")[0]["rps_doc_stop_word_fraction"] == 0
    assert [len(load_stop_words(code)) for code in ("de", "en", "es", "fr", "it")] == [
        *(596, 570, 577, 606, 619)
    ]


def test_floods_of_marks_and_sigmas_take_linear_time() -> None:
    times = 200_000
    text = "a" + "\u0323\u0307" * times + " a" + "\u0323" * times + "\u0307" * times
    (found,) = measured([text])
    assert (found["rps_doc_word_count"], found["rps_doc_frac_unique_words"]) == (2, 0.5)
    assert measured(["Σ" * 200_000 + "'" * 200_000 + "Σ"])[0]["rps_doc_word_count"] == 1
