"""Every signal this stage writes, in the order of its columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

from stages.signals import dclm, guide, line_signals, periodic, quality, redpajama, repetition
from stages.signals.bad_words import BAD_WORD_SIGNALS
from stages.signals.carried import PAGE_SIGNALS
from stages.signals.config import GROUPS, LINE_VIEWS, SignalsConfig
from stages.signals.line_language import LINE_LANGUAGE
from stages.signals.line_rules.signals import LINE_SIGNALS
from stages.signals.perplexity import PERPLEXITY_SIGNALS
from stages.signals.personal_data import PERSONAL_SIGNALS
from stages.signals.phrase_marks import PHRASE_SIGNALS
from stages.signals.sentence_signals import SENTENCE_SIGNALS
from stages.signals.signal import Signal, count, share

FASTTEXT = "Joulin et al. 2017 (arXiv 1607.01759)"
C4 = "Raffel et al. 2020 (C4)"
FTFY = "Speer 2019 (ftfy, doi 10.5281/zenodo.2591652)"
PUBLIC_SUFFIX = "publicsuffix.org, as tld carries it"
REFINEDWEB = "Penedo et al. 2023 (RefinedWeb, arXiv 2306.01116), appendix G.1"
BIGCODE = "Kocetkov et al. 2022 (arXiv 2211.15533), as bigcode-dataset computes it"
OWN = "Ingot"


@dataclass(frozen=True)
class Asked:
    """What a run measures beside the signals of every run."""

    groups: Collection[str] = GROUPS
    line_rules: Collection[str] = LINE_VIEWS
    language: bool = False
    url_lists: bool = False
    word_lists: bool = False
    ngram_models: bool = False
    classifiers: Sequence[str] = ()
    pages: bool = False


TEXT_SIGNALS: tuple[Signal, ...] = (
    count("characters", "characters", OWN, "Unicode code points of the text."),
    count("bytes", "bytes", OWN, "Bytes of the text in UTF-8."),
    *quality.SIGNALS,
    *line_signals.DUPLICATE_SIGNALS,
    *repetition.SIGNALS,
    *line_signals.FILLED_LINE_SIGNALS,
    *line_signals.LINE_COUNTS,
    *SENTENCE_SIGNALS,
    count("lorem_ipsum_count", "occurrences", C4, "Occurrences of 'lorem ipsum' in any case."),
    count("curly_brace_count", "characters", C4, "Opening curly braces."),
    count("javascript_count", "occurrences", C4, "Occurrences of 'javascript' in any case."),
    Signal("script", "string?", "name", OWN, "Script of most letters and marks; null without any."),
    share("script_share", OWN, "Share of the letters and marks that are in that script."),
    share(
        "replacement_character_share", OWN, "Characters that are U+FFFD, left by failed decoding."
    ),
    *PERSONAL_SIGNALS,
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
    LINE_LANGUAGE,
)
"""What a language model measures; there only if one is given."""

GROUP_SIGNALS: dict[str, tuple[Signal, ...]] = {
    "dclm": dclm.SIGNALS,
    "guide": guide.SIGNALS,
    "periodic": periodic.SIGNALS,
    "phrases": PHRASE_SIGNALS,
    "redpajama-v2": redpajama.SIGNALS,
}


def classifier_signal(name: str) -> Signal:
    """The column of a classifier."""
    return Signal(
        f"{name}_score", "float64", "probability", FASTTEXT, f"Of the classifier '{name}'."
    )


def text_signals_of(groups: Collection[str], line_rules: Collection[str]) -> tuple[Signal, ...]:
    """The columns that texts alone bring, in order."""
    return (
        *TEXT_SIGNALS,
        *(signal for group in GROUPS if group in groups for signal in GROUP_SIGNALS[group]),
        *(signal for signal in LINE_SIGNALS if signal.view in line_rules),
    )


def signals_of(asked: Asked = Asked()) -> tuple[Signal, ...]:
    """The columns of a run, in order."""
    return (
        *text_signals_of(asked.groups, asked.line_rules),
        *URL_SIGNALS,
        *CODE_SIGNALS,
        *(LANGUAGE_SIGNALS if asked.language else ()),
        *(URL_LIST_SIGNALS if asked.url_lists else ()),
        *(BAD_WORD_SIGNALS if asked.word_lists else ()),
        *(PERPLEXITY_SIGNALS if asked.ngram_models else ()),
        *map(classifier_signal, asked.classifiers),
        *(PAGE_SIGNALS if asked.pages else ()),
    )


def description_of_columns(config: SignalsConfig, signals: Sequence[Signal]) -> dict[str, object]:
    """Content of `signals.json`: the columns in order, and the settings that bear on them."""
    columns = [asdict(signal) for signal in signals]
    stop_words = list(config.stop_words)
    return {"columns": columns, "stop_words": stop_words, "splitter": config.splitter}
