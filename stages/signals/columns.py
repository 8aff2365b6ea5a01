"""Every signal this stage writes: its type, what it is, who defined it, its unit and its view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from artifacts_schema.kinds import Column

GOPHER = "Rae et al. 2021 (arXiv 2112.11446), as datatrove computes it"
FINEWEB = "Penedo et al. 2024 (FineWeb), as datatrove computes it"
FASTTEXT = "Joulin et al. 2017 (arXiv 1607.01759)"
C4 = "Raffel et al. 2020 (C4)"
OWN = "Ingot"

TOP_NGRAMS = (2, 3, 4)
DUPLICATE_NGRAMS = (5, 6, 7, 8, 9, 10)


@dataclass(frozen=True)
class Signal:
    """A column of the signals table. `view` names the edit of the text it was computed on."""

    name: str
    type: str
    unit: str
    source: str
    description: str
    view: str = "text"

    @property
    def column(self) -> Column:
        """The column of the Arrow schema."""
        return Column(self.name, self.type, self.description)


def _share(name: str, source: str, description: str) -> Signal:
    return Signal(name, "float64", "share", source, description)


def _count(name: str, unit: str, source: str, description: str) -> Signal:
    return Signal(name, "int64", unit, source, description)


SIGNALS: tuple[Signal, ...] = (
    _count("characters", "characters", OWN, "Unicode code points of the text."),
    _count("bytes", "bytes", OWN, "Bytes of the text in UTF-8."),
    _count("lines", "lines", OWN, "Pieces between line boundaries of any sort."),
    _count("word_tokens", "tokens", OWN, "Tokens of the word splitter: words, and symbols."),
    _count("words", "words", GOPHER, "Tokens that are not punctuation only."),
    Signal("mean_word_length", "float64", "characters", GOPHER, "Mean length of those words."),
    _share("hash_to_word_ratio", GOPHER, "Hash signs over tokens."),
    _share("ellipsis_to_word_ratio", GOPHER, "Occurrences of '...' and '…' over tokens."),
    _share("bullet_line_share", GOPHER, "Lines that begin with a bullet or a hyphen."),
    _share("ellipsis_line_share", GOPHER, "Lines that end with an ellipsis."),
    _share("alphabetic_word_share", GOPHER, "Tokens that hold at least one letter."),
    _count("stop_words", "words", GOPHER, "Different words of the stop list that occur."),
    _share("duplicate_line_share", GOPHER, "Lines that repeat an earlier one."),
    _share("duplicate_line_character_share", GOPHER, "Characters of the text in such lines."),
    _share("duplicate_paragraph_share", GOPHER, "Paragraphs that repeat an earlier one."),
    _share("duplicate_paragraph_character_share", GOPHER, "Characters in such paragraphs."),
    *(
        _share(
            f"top_{n}_gram_character_share",
            GOPHER,
            f"Characters of the most common {n}-gram times its occurrences; may exceed 1.",
        )
        for n in TOP_NGRAMS
    ),
    *(
        _share(
            f"duplicate_{n}_gram_character_share",
            GOPHER,
            f"Characters in {n}-grams that repeat an earlier one, without overlap.",
        )
        for n in DUPLICATE_NGRAMS
    ),
    _share(
        "terminal_punctuation_line_share",
        FINEWEB,
        "Filled lines whose last character ends a sentence.",
    ),
    _share("short_line_share", FINEWEB, "Filled lines of at most 30 characters."),
    _share(
        "duplicate_filled_line_character_share",
        FINEWEB,
        "Characters in filled lines that repeat an earlier one, over characters but line feeds.",
    ),
    _share("newline_to_word_ratio", FINEWEB, "Line feeds over tokens."),
    _count("lorem_ipsum_count", "occurrences", C4, "Occurrences of 'lorem ipsum' in any case."),
    _count("curly_brace_count", "characters", C4, "Opening curly braces."),
    _count("javascript_count", "occurrences", C4, "Occurrences of 'javascript' in any case."),
    Signal("script", "string?", "name", OWN, "Script of most letters and marks; null without any."),
    _share("script_share", OWN, "Share of the letters and marks that are in that script."),
    _share(
        "replacement_character_share", OWN, "Characters that are U+FFFD, left by failed decoding."
    ),
    _count("email_count", "addresses", OWN, "E-mail addresses."),
    _count("ip_count", "addresses", OWN, "Public IPv4 and IPv6 addresses."),
)


LANGUAGE_SIGNALS: tuple[Signal, ...] = (
    Signal("language", "string?", "label", FASTTEXT, "Most probable language; null without text."),
    Signal("language_score", "float64?", "probability", FASTTEXT, "Its probability."),
)
"""What a language model measures; there only if one is given."""


def signals_of(*, with_language: bool) -> tuple[Signal, ...]:
    """The columns of a run, in order."""
    return SIGNALS + LANGUAGE_SIGNALS if with_language else SIGNALS


def description_of_columns(
    stop_words: Sequence[str], *, with_language: bool = False
) -> dict[str, object]:
    """Content of `signals.json`: the columns in order, and the settings that bear on them."""
    columns = [asdict(signal) for signal in signals_of(with_language=with_language)]
    return {"columns": columns, "stop_words": list(stop_words)}
