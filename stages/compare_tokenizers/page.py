"""What a comparison of tokenizers contributes to a report.

To see how a tokenizer cuts, one sentence is shown in many languages: the first of article 1 of
the Universal Declaration of Human Rights (United Nations 1948), in the translations of the UDHR
in Unicode project (https://www.unicode.org/udhr/).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stages.compare_tokenizers import figures as own
from stages.engine.page import (
    Artifact,
    Cell,
    Figure,
    Sample,
    SamplesFigure,
    TableFigure,
    make_bars,
    make_table,
)
from stages.engine.tally import inputs_in_order, ranked, sentences

if TYPE_CHECKING:
    import pyarrow as pa

    from stages.compare_tokenizers.figures import Comparison


SENTENCES = {
    "en": "All human beings are born free and equal in dignity and rights.",
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits.",
    "es": "Todos los seres humanos nacen libres e iguales en dignidad y derechos.",
    "ro": "Toate ființele umane se nasc libere și egale în demnitate și în drepturi.",
    "sw": "Watu wote wamezaliwa huru, hadhi na haki zao ni sawa.",
    "tr": "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar.",
    "vi": "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền.",
    "ru": "Все люди рождаются свободными и равными в своем достоинстве и правах.",
    "el": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.",
    "ar": "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق.",
    "hi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है ।",
    "bn": "সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে।",
    "th": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ",
    "zh": "人人生而自由,在尊严和权利上一律平等。",
    "ja": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "ko": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
}
"""By ISO 639-1 code."""

DEFAULT_LANGUAGES = ("en", "de", "ru", "hi", "th", "zh")
"""Languages that are shown where the measured texts declare none of `SENTENCES`."""


RARE = 10
"""Uses from which on a token is not rare."""

SCRIPTS, MOST_TOKENS, MOST_CHARACTERS = 15, 30, 60
CUT = 6
"""Languages in which a sentence is shown."""

BORDER = "│"
OTHERS = "other scripts"
NO_LETTER, SPLIT = "digits, signs, spaces", "part of a character"


def page(artifact: Artifact) -> list[Figure]:
    """Tokenizers, tax, measures by language and source, vocabularies, one sentence cut by each."""
    comparison = own.Comparison.read(artifact)
    tokens = artifact.output("comparison").read_table("tokens.parquet")
    return [
        own.tokenizers(comparison),
        *own.tax_by_language(comparison),
        *one_sentence(artifact, comparison),
        *own.by_language(comparison),
        *own.by_source(comparison),
        *scripts(comparison, tokens),
        uses(comparison, tokens),
        *unreachable(comparison, tokens),
        own.measures(comparison),
    ]


def summary(artifact: Artifact) -> list[Figure]:
    """The tokenizers and the tax on each language."""
    comparison = own.Comparison.read(artifact)
    return [own.tokenizers(comparison), *own.tax_by_language(comparison)]


# Vocabularies ------------------------------------------------------------------------------------


def scripts(comparison: Comparison, tokens: pa.Table) -> list[Figure]:
    """Shares of each vocabulary by the script of its tokens."""
    from stages.text.characters import find_main_script

    counts = {name: Counter[str]() for name in comparison.names}
    columns = (tokens[name].to_pylist() for name in ("tokenizer", "token", "bytes"))
    for name, token, size in zip(*columns, strict=True):
        if size:
            split = "\\x" in token and len(token.encode()) > size
            script = SPLIT if split else find_main_script(token)[0] or NO_LETTER
            counts[name][OTHERS if script == "Other" else script] += 1
    sums = Counter[str]()
    for by_script in counts.values():
        sums.update(by_script)
    drawn = tuple(script for script, _ in ranked(sums)[:SCRIPTS])
    rest = sum(count for _, count in ranked(sums)[SCRIPTS:])
    return [
        make_bars(
            "Vocabulary by script",
            drawn,
            "share of tokens:.1%",
            {
                name: [by_script[script] / max(1, by_script.total()) or None for script in drawn]
                for name, by_script in counts.items()
            },
            label="script",
            note=sentences(
                "Of each token the script of most of its letters; special tokens are left out. "
                "A script with few tokens is cut finely.",
                f"Not drawn: {rest:,} tokens of rarer scripts." if rest else "",
            ),
        )
    ]


def uses(comparison: Comparison, tokens: pa.Table) -> TableFigure:
    """How much of each vocabulary the measured texts use."""
    import numpy as np

    rows: list[tuple[Cell, ...]] = []
    for name in comparison.names:
        mine = _rows_for(tokens, name)
        counts, sizes = (np.array(mine[column].to_pylist()) for column in ("uses", "bytes"))
        counted = counts[sizes > 0]
        unused, rare = int((counted == 0).sum()), int(((counted > 0) & (counted < RARE)).sum())
        often = len(counted) - unused - rare
        unreachable = len(comparison.described[name]["unreachable"])
        special = len(counts) - len(counted)
        rows.append((name, often, rare, unused, unused / len(counted), unreachable, special))
    note = (
        "Tokens that training text does not use stay as they were drawn and can derail a model "
        "(Land & Bartolo 2024); how many are unused depends on how much text is measured. "
        "No text is encoded to an unreachable one."
    )
    return make_table(
        "Use of the vocabulary",
        f"tokenizer | {RARE} uses or more:, | fewer:, | unused:, | share:.1%"
        " | unreachable:, | special:,",
        rows,
        note,
    )


def unreachable(comparison: Comparison, tokens: pa.Table) -> list[Figure]:
    """Tokens that can never be used: the longest of each vocabulary."""
    rows: list[tuple[Cell, ...]] = []
    left = 0
    for name in comparison.names:
        wanted = set(comparison.described[name]["unreachable"])
        table = _rows_for(tokens, name).select(["token_id", "token", "bytes"]).to_pylist()
        mine = [row for row in table if row["token_id"] in wanted]
        mine.sort(key=lambda row: (-row["bytes"], row["token_id"]))
        left += max(0, len(mine) - MOST_TOKENS)
        rows += [
            (name, row["token_id"], _visible(row["token"]), row["bytes"])
            for row in mine[:MOST_TOKENS]
        ]
    if not rows:
        return []
    note = "Encoding the token's own text, alone or after other characters, never gives it."
    if left:
        note += f" The longest of each vocabulary; {left:,} more are not listed."
    return [make_table("Unreachable tokens", "tokenizer | id: | token | bytes:,", rows, note)]


def _rows_for(tokens: pa.Table, name: str) -> pa.Table:
    import pyarrow.compute as pc

    return tokens.filter(pc.equal(tokens["tokenizer"], name))


def _visible(token: str) -> str:
    """A token for a cell: ␣ for a space, controls as escapes, long ones cut."""
    text = token.replace(" ", "␣")
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"


# One sentence ------------------------------------------------------------------------------------


def one_sentence(artifact: Artifact, comparison: Comparison) -> list[Figure]:
    """The same sentence in a few of the measured languages, cut by each tokenizer still there."""
    from stages.tokens.fertility import FertilityCounter
    from stages.tokens.vocabulary import decode_vocabulary, format_tokens

    measured = (comparison.reference, *comparison.order())
    codes = dict.fromkeys(language.split("-")[0].lower() for language in measured)
    languages = [code for code in codes if code in SENTENCES] or DEFAULT_LANGUAGES
    samples: dict[str, list[Sample]] = {language: [] for language in languages[:CUT]}
    inputs = inputs_in_order(artifact, "tokenizers")
    for name, tokenizer_input in zip(comparison.names, inputs, strict=True):
        if tokenizer_input is None:
            continue
        tokenizer = FertilityCounter.from_json(
            tokenizer_input.read_bytes("tokenizer.json").decode()
        ).tokenizer
        token_bytes = decode_vocabulary(tokenizer)
        for language, cut_here in samples.items():
            cut = format_tokens(tokenizer, SENTENCES[language], token_bytes)
            cut_here.append(Sample(language, f"{len(cut)} tokens, {name}", BORDER.join(cut)))
    every = tuple(sample for cut_here in samples.values() for sample in cut_here)
    if not every:
        return []
    note = (
        "The first sentence of the Universal Declaration of Human Rights. "
        rf"{BORDER} stands between two tokens; a byte that is no whole character reads \xe4."
    )
    return [SamplesFigure("The same sentence, cut by each tokenizer", every, note)]
