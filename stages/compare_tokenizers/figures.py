"""A comparison as figures need it: sums by language and source, the tax, and its plots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stages.engine.page import Artifact, Cell, Figure, TableFigure, make_bars, make_table
from stages.engine.tally import sentences

if TYPE_CHECKING:
    from stages.engine.page import Artifact
    from stages.tokens.fertility import Fertility

DRAWN = 20
"""Languages or sources that are drawn, those with the highest values."""

UNKNOWN = 0.01
"""Share of unknown tokens above which a tokenizer's numbers on a language are not shown: one such
token may stand for a whole sentence, which looks like a low price."""

WORST = 3
NONE = "(none)"

Ratio = Callable[["Fertility"], float | None]


@dataclass(frozen=True)
class Row:
    """One row of measures.parquet."""

    tokenizer: str
    text: str
    language: str
    source: str
    sums: Fertility


@dataclass(frozen=True)
class Comparison:
    """What a comparison measured; `names` are the tokenizers in the order of the inputs."""

    names: tuple[str, ...]
    rows: tuple[Row, ...]
    described: dict[str, dict[str, Any]]
    reference: str

    @classmethod
    def read(cls, artifact: Artifact) -> Comparison:
        """Read the measures of a committed comparison."""
        from stages.tokens.fertility import Fertility

        output = artifact.output("comparison")
        rows = []
        for row in output.read_table("measures.parquet").to_pylist():
            key = {name: row.pop(name) for name in ("tokenizer", "text", "language", "source")}
            key["language"] = key["language"] or NONE
            rows.append(Row(**key, sums=Fertility(**row)))
        names = tuple(dict.fromkeys(row.tokenizer for row in rows))
        described = output.read_json("tokenizers.json")
        return cls(names, tuple(rows), described, artifact.manifest.config["reference"])

    def texts(self) -> str:
        """The texts on which languages are compared: parallel passages if there are any."""
        return "parallel" if any(row.text == "parallel" for row in self.rows) else "documents"

    def by(self, field: str, text: str) -> dict[str, dict[str, Fertility]]:
        """Sums of a text (`parallel`, `documents`) by language, source or text, then tokenizer."""
        from stages.tokens.fertility import Fertility

        sums: dict[str, dict[str, Fertility]] = {}
        for row in self.rows:
            if row.text == text:
                by_tokenizer = sums.setdefault(getattr(row, field), {})
                by_tokenizer.setdefault(row.tokenizer, Fertility()).add(row.sums)
        return dict(sorted(sums.items()))

    def order(self) -> list[str]:
        """Languages as they are shown: those that pay most first, by tax, else by fertility."""
        worst: dict[str, float] = {}
        tax = self.tax()
        for language, by_tokenizer in self.by("language", self.texts()).items():
            for name, sums in by_tokenizer.items():
                price = tax[name].get(language) or 0.0
                if self.texts() == "documents" and is_known(sums):
                    price = sums.tokens_per_word or 0.0
                worst[language] = max(price, worst.get(language, 0.0))
        return sorted(worst, key=lambda language: (-worst[language], language))

    def tax(self) -> dict[str, dict[str, float]]:
        """Tokens for the same passages over those of the reference, by tokenizer and language.

        As "tokenization premium" in Petrov et al. 2023 (arXiv 2305.15425). Sources that lack the
        language or the reference do not count, nor do languages with unknown tokens.
        """
        return {
            name: _tax([row for row in self.rows if row.tokenizer == name], self.reference)
            for name in self.names
        }


def _tax(rows: Sequence[Row], reference: str) -> dict[str, float]:
    tokens: dict[str, dict[str, int]] = {}
    for row in rows:
        if row.text == "parallel" and is_known(row.sums):
            tokens.setdefault(row.source, {})[row.language] = row.sums.tokens
    own, reference_tokens = Counter[str](), Counter[str]()
    for by_language in tokens.values():
        if by_language.get(reference):
            own.update(by_language)
            reference_tokens.update(dict.fromkeys(by_language, by_language[reference]))
    return {language: own[language] / reference_tokens[language] for language in sorted(own)}


def is_known(sums: Fertility) -> bool:
    """Whether the tokens stand for what the text says, but for a few."""
    return (sums.unknown_share or 0.0) <= UNKNOWN


# Tokenizers --------------------------------------------------------------------------------------


def tokenizers(comparison: Comparison) -> TableFigure:
    """One row for each tokenizer."""
    tax, totals = comparison.tax(), _totals(comparison)
    rows: list[tuple[Cell, ...]] = []
    for name, sums in comparison.by("text", comparison.texts())[comparison.texts()].items():
        described, total = comparison.described[name], totals[name]
        dearest = max(tax[name].items(), key=lambda item: item[1], default=None)
        cut_by = (described.get("algorithm"), described.get("pre_tokenizer"))
        rows.append(
            (
                name,
                ", ".join(part for part in cut_by if part),
                described["vocabulary_size"],
                _known_ratio(sums, lambda sums: sums.bytes_per_token),
                f"{dearest[1]:.2f} ({dearest[0]})" if dearest else None,
                total.unknown_share or None,
                1 - total.not_restored / total.documents,
            )
        )
    return make_table(
        "Tokenizers",
        "tokenizer | algorithm | vocabulary:, | bytes/token:.2f | highest tax:, | unknown:.1%"
        " | restored:.1%",
        rows,
        _measured_on(comparison),
    ).without_empty()


def _totals(comparison: Comparison) -> dict[str, Fertility]:
    from stages.tokens.fertility import Fertility

    totals = {name: Fertility() for name in comparison.names}
    for row in comparison.rows:
        totals[row.tokenizer].add(row.sums)
    return totals


def _measured_on(comparison: Comparison) -> str:
    parts = []
    for text, what in (("documents", "documents"), ("parallel", "parallel documents")):
        for by_tokenizer in comparison.by("text", text).values():
            sums = by_tokenizer[comparison.names[0]]
            languages = len(comparison.by("language", text))
            size = f"{sums.bytes / 1e6:,.1f} MB in {languages:,} languages"
            parts.append(f"{sums.documents:,} {what} ({size})")
    text = "of the parallel ones" if len(parts) > 1 else "of them"
    note = (
        f"Measured on {' and '.join(parts)}; bytes per token {text}. More bytes per token make "
        "shorter sequences, in training and in every answer. Restored texts are those whose tokens "
        "decode to the same text."
    )
    if any(total.unknown_tokens for total in _totals(comparison).values()):
        note += " Unknown tokens stand for whatever the vocabulary lacks."
    return note


# Languages ---------------------------------------------------------------------------------------


def tax_by_language(comparison: Comparison) -> list[Figure]:
    """What the same passages cost in each language, the reference being 1."""
    tax = comparison.tax()
    order = comparison.order()
    if not any(language != comparison.reference for by in tax.values() for language in by):
        return []
    drawn, rest = _most_expensive(order)
    return [
        make_bars(
            f"Tax on each language: tokens for the same text, {comparison.reference} = 1",
            drawn,
            f"tokens / tokens in {comparison.reference}:.2f",
            {name: map(tax[name].get, drawn) for name in comparison.names},
            label="language",
            note=sentences(
                worst_languages(comparison, tax),
                "A tax of 3 leaves a third of the context and triples the cost of an answer.",
                _unknown(comparison, "parallel"),
                rest,
            ),
        )
    ]


def _unknown(comparison: Comparison, text: str) -> str:
    """A sentence on the languages that are not shown for a tokenizer."""
    lost: dict[str, list[str]] = {}
    for language, by_tokenizer in comparison.by("language", text).items():
        for name, sums in by_tokenizer.items():
            if not is_known(sums):
                lost.setdefault(name, []).append(language)
    if not lost:
        return ""
    parts = [f"{', '.join(languages)} with {name}" for name, languages in lost.items()]
    return f"Left out, since unknown tokens stand for parts of the text: {'; '.join(parts)}."


def worst_languages(comparison: Comparison, tax: dict[str, dict[str, float]]) -> str:
    """One sentence: the languages that pay most under each tokenizer."""
    parts = []
    for name in comparison.names:
        others = [item for item in tax[name].items() if item[0] != comparison.reference]
        dearest = sorted(others, key=lambda item: (-item[1], item[0]))[:WORST]
        if dearest:
            values = ", ".join(f"{language} {value:.2f}" for language, value in dearest)
            parts.append(f"{values} with {name}")
    return f"The dearest languages are {'; '.join(parts)}." if parts else ""


def by_language(comparison: Comparison) -> list[Figure]:
    """Fertility, continued words and bytes per token by language."""
    text = comparison.texts()
    sums = {
        name: by_tokenizer
        for name, by_tokenizer in comparison.by("language", text).items()
        if name != NONE
    }
    order = [language for language in comparison.order() if language in sums]
    on = "Of parallel passages." if text == "parallel" else "Of documents."
    lost = _unknown(comparison, text)
    notes = (on, f"Low is good. {_WORDS}", lost), (on, "Low is good.", lost), (on, _BYTES, lost)
    return _ratios(comparison, "language", sums, order, notes) if order else []


def _ratios(
    comparison: Comparison,
    label: str,
    sums: dict[str, dict[str, Fertility]],
    order: Sequence[str],
    notes: Sequence[tuple[str, ...]],
) -> list[Figure]:
    """Bars of each ratio by language or source."""
    drawn, rest = _most_expensive(order)
    return [
        make_bars(
            f"{title} by {label}",
            drawn,
            axis,
            {
                name: [_known_ratio(sums[one].get(name), ratio) for one in drawn]
                for name in comparison.names
            },
            label=label,
            note=sentences(*note, rest),
        )
        for (title, axis, ratio), note in zip(_RATIOS, notes, strict=True)
    ]


def _known_ratio(sums: Fertility | None, ratio: Ratio) -> float | None:
    return ratio(sums) if sums is not None and is_known(sums) else None


def _most_expensive(order: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """What is drawn of many labels, and a sentence on the others."""
    left = len(order) - DRAWN
    return tuple(order[:DRAWN]), f"The first {DRAWN} of {len(order):,}." if left > 0 else ""


_WORDS = (
    "Words are those of UAX #29, which parts Han, Hiragana and Thai letter by letter: compare "
    "tokenizers within a language, languages by the tax."
)
_BYTES = (
    "High is good; most letters are one byte in English, two in Russian, three in Chinese and Thai."
)
_RATIOS: tuple[tuple[str, str, Ratio], ...] = (
    ("Fertility", "tokens per word:.2f", lambda sums: sums.tokens_per_word),
    (
        "Continued words",
        "share of words that are more than one token:.1%",
        lambda sums: sums.continued_share,
    ),
    ("Bytes per token", "bytes per token:.2f", lambda sums: sums.bytes_per_token),
)


# Sources -----------------------------------------------------------------------------------------


def by_source(comparison: Comparison) -> list[Figure]:
    """The same of the documents by source, the largest first."""
    sums = comparison.by("source", "documents")
    sizes = {
        source: max(one.bytes for one in by_tokenizer.values())
        for source, by_tokenizer in sums.items()
    }
    order = sorted(sizes, key=lambda source: (-sizes[source], source))
    notes = [("Of documents.",)] * len(_RATIOS)
    return _ratios(comparison, "source", sums, order, notes) if order else []


_MEASURES = {
    "documents": "documents:,",
    "words": "words:,",
    "tokens": "tokens:,",
    "tokens_per_word": "tokens per word:.2f",
    "continued_share": "continued:.1%",
    "bytes_per_token": "bytes per token:.2f",
    "characters_per_token": "characters per token:.2f",
    "unknown_tokens": "unknown:,",
    "not_restored": "not restored:,",
}


def measures(comparison: Comparison) -> TableFigure:
    """Every row of the measures, what was measured on the same texts together."""
    place = {name: at for at, name in enumerate(comparison.names)}
    ordered = sorted(
        comparison.rows, key=lambda row: (row.text, row.source, row.language, place[row.tokenizer])
    )
    keys = ("text", "source", "language", "tokenizer")
    rows = (
        [getattr(row, key) for key in keys] + [getattr(row.sums, name) for name in _MEASURES]
        for row in ordered
    )
    return make_table("All measures", " | ".join([*keys, *_MEASURES.values()]), rows)
