"""Every signal this stage writes, in the order of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from stages.signals.carried import PAGE_SIGNALS
from stages.signals.signal import Signal, count, share

GOPHER = "Rae et al. 2021 (arXiv 2112.11446), as datatrove computes it"
FINEWEB = "Penedo et al. 2024 (FineWeb), as datatrove computes it"
FASTTEXT = "Joulin et al. 2017 (arXiv 1607.01759)"
C4 = "Raffel et al. 2020 (C4)"
FTFY = "Speer 2019 (ftfy, doi 10.5281/zenodo.2591652)"
PUBLIC_SUFFIX = "publicsuffix.org, as tld carries it"
REFINEDWEB = "Penedo et al. 2023 (RefinedWeb, arXiv 2306.01116), appendix G.1"
BIGCODE = "Kocetkov et al. 2022 (arXiv 2211.15533), as bigcode-dataset computes it"
OWN = "Ingot"

TOP_NGRAMS = (2, 3, 4)
DUPLICATE_NGRAMS = (5, 6, 7, 8, 9, 10)


SIGNALS: tuple[Signal, ...] = (
    count("characters", "characters", OWN, "Unicode code points of the text."),
    count("bytes", "bytes", OWN, "Bytes of the text in UTF-8."),
    count("lines", "lines", OWN, "Pieces between line boundaries of any sort."),
    count("word_tokens", "tokens", OWN, "Tokens of the word splitter: words, and symbols."),
    count("words", "words", GOPHER, "Tokens that are not punctuation only."),
    Signal("mean_word_length", "float64", "characters", GOPHER, "Mean length of those words."),
    share("hash_to_word_ratio", GOPHER, "Hash signs over tokens."),
    share("ellipsis_to_word_ratio", GOPHER, "Occurrences of '...' and '…' over tokens."),
    share("bullet_line_share", GOPHER, "Lines that begin with a bullet or a hyphen."),
    share("ellipsis_line_share", GOPHER, "Lines that end with an ellipsis."),
    share("alphabetic_word_share", GOPHER, "Tokens that hold at least one letter."),
    count("stop_words", "words", GOPHER, "Different words of the stop list that occur."),
    share("duplicate_line_share", GOPHER, "Lines that repeat an earlier one."),
    share("duplicate_line_character_share", GOPHER, "Characters of the text in such lines."),
    share("duplicate_paragraph_share", GOPHER, "Paragraphs that repeat an earlier one."),
    share("duplicate_paragraph_character_share", GOPHER, "Characters in such paragraphs."),
    *(
        share(
            f"top_{n}_gram_character_share",
            GOPHER,
            f"Characters of the most common {n}-gram times its occurrences; may exceed 1.",
        )
        for n in TOP_NGRAMS
    ),
    *(
        share(
            f"duplicate_{n}_gram_character_share",
            GOPHER,
            f"Characters in {n}-grams that repeat an earlier one, without overlap.",
        )
        for n in DUPLICATE_NGRAMS
    ),
    share(
        "terminal_punctuation_line_share",
        FINEWEB,
        "Filled lines whose last character ends a sentence.",
    ),
    share("short_line_share", FINEWEB, "Filled lines of at most 30 characters."),
    share(
        "duplicate_filled_line_character_share",
        FINEWEB,
        "Characters in filled lines that repeat an earlier one, over characters but line feeds.",
    ),
    share("newline_to_word_ratio", FINEWEB, "Line feeds over tokens."),
    count("lorem_ipsum_count", "occurrences", C4, "Occurrences of 'lorem ipsum' in any case."),
    count("curly_brace_count", "characters", C4, "Opening curly braces."),
    count("javascript_count", "occurrences", C4, "Occurrences of 'javascript' in any case."),
    Signal("script", "string?", "name", OWN, "Script of most letters and marks; null without any."),
    share("script_share", OWN, "Share of the letters and marks that are in that script."),
    share(
        "replacement_character_share", OWN, "Characters that are U+FFFD, left by failed decoding."
    ),
    count("email_count", "addresses", OWN, "E-mail addresses."),
    count("ip_count", "addresses", OWN, "Public IPv4 and IPv6 addresses."),
    count("secret_count", "secrets", OWN, "Keys, tokens and passwords."),
    count(
        "mojibake_characters",
        "characters",
        FTFY,
        "Characters of UTF-8 read in a single-byte character set.",
    ),
)
"""What the text says."""

URL_SIGNALS: tuple[Signal, ...] = (
    Signal("host", "string?", "name", OWN, "Host of the address; null for a path."),
    Signal(
        "registered_domain",
        "string?",
        "name",
        PUBLIC_SUFFIX,
        "Domain below the public suffix of the host.",
    ),
)

CODE_SIGNALS: tuple[Signal, ...] = (
    Signal(
        "code_mean_line_length",
        "float64?",
        "characters",
        BIGCODE,
        "Mean length of the lines; like all that follows null but for source code.",
    ),
    count("code_max_line_length", "characters", BIGCODE, "Longest line.", null=True),
    share("code_alphanumeric_share", BIGCODE, "Characters: letters and digits.", null=True),
    share(
        "near_binary_share",
        OWN,
        "Characters that are control codes, or in long runs of base64, hexadecimal or escapes.",
        null=True,
    ),
    count("minified", "0 or 1", OWN, "Made small: long lines, little white space.", null=True),
    count("generated", "0 or 1", OWN, "Written by a program, as name or head say.", null=True),
    count("vendored", "0 or 1", OWN, "Code of others, as the path says.", null=True),
)

URL_LIST_SIGNALS: tuple[Signal, ...] = (
    Signal("url_blocked", "string?", "category", REFINEDWEB, "First list that names the address."),
    count("url_block_lists", "lists", REFINEDWEB, "Lists that name the address.", null=True),
    count(
        "url_strict_words",
        "words",
        REFINEDWEB,
        "Different words of the strict lists, anywhere in the address without `-` and `.`.",
        null=True,
    ),
    count(
        "url_hard_words",
        "words",
        REFINEDWEB,
        "Different words of the hard lists that stand alone in the address.",
        null=True,
    ),
    count("url_soft_words", "words", REFINEDWEB, "The same of the soft lists.", null=True),
    count(
        "url_score",
        "points",
        REFINEDWEB,
        "2 for each strict or hard word, 1 for each soft one.",
        null=True,
    ),
)
"""What lists of addresses and words say; there only if some are given."""

LANGUAGE_SIGNALS: tuple[Signal, ...] = (
    Signal("language", "string?", "label", FASTTEXT, "Most probable language; null without text."),
    Signal("language_score", "float64?", "probability", FASTTEXT, "Its probability."),
)
"""What a language model measures; there only if one is given."""


def signals_of(
    *, with_language: bool = False, with_pages: bool = False, with_url_lists: bool = False
) -> tuple[Signal, ...]:
    """The columns of a run, in order."""
    return (
        *SIGNALS,
        *URL_SIGNALS,
        *CODE_SIGNALS,
        *(LANGUAGE_SIGNALS if with_language else ()),
        *(URL_LIST_SIGNALS if with_url_lists else ()),
        *(PAGE_SIGNALS if with_pages else ()),
    )


def description_of_columns(
    stop_words: Sequence[str], signals: Sequence[Signal] | None = None
) -> dict[str, object]:
    """Content of `signals.json`: the columns in order, and the settings that bear on them."""
    columns = [asdict(signal) for signal in signals or signals_of()]
    return {"columns": columns, "stop_words": list(stop_words)}
