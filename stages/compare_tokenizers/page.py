"""What a comparison of tokenizers contributes to a report."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stages.compare_tokenizers import figures as own
from stages.engine.figures import (
    Axis,
    BarFigure,
    Bars,
    Cell,
    Column,
    Figure,
    Sample,
    SamplesFigure,
    TableFigure,
    number,
)
from stages.engine.page import Artifact
from stages.engine.tally import by_place, ranked, sentences

if TYPE_CHECKING:
    import pyarrow as pa

    from stages.compare_tokenizers.figures import Comparison

RARE = 10
"""Uses from which on a token is not rare."""

SCRIPTS, LISTED, LISTED_CHARACTERS = 15, 30, 60
CUT = 6
"""Languages in which a sentence is shown."""

BORDER = "│"
OTHERS = "other scripts"
NO_LETTER, SPLIT = "digits, signs, spaces", "part of a character"


def page(artifact: Artifact) -> list[Figure]:
    """Tokenizers, tax, measures by language and source, vocabularies, one sentence cut by each."""
    found = own.Comparison.of(artifact)
    tokens = artifact.output("comparison").read_table("tokens.parquet")
    return [
        own.tokenizers(found),
        *own.tax_by_language(found),
        *one_sentence(artifact, found),
        *own.by_language(found),
        *own.by_source(found),
        *scripts(found, tokens),
        uses(found, tokens),
        *unreachable(found, tokens),
        own.measures(found),
    ]


def summary(artifact: Artifact) -> list[Figure]:
    """The tokenizers and the tax on each language."""
    found = own.Comparison.of(artifact)
    return [own.tokenizers(found), *own.tax_by_language(found)]


# Vocabularies ------------------------------------------------------------------------------------


def scripts(found: Comparison, tokens: pa.Table) -> list[Figure]:
    """Shares of each vocabulary by the script of its tokens."""
    from stages.text.scripts import main_script

    counts = {name: Counter[str]() for name in found.names}
    columns = (tokens[name].to_pylist() for name in ("tokenizer", "token", "bytes"))
    for name, token, size in zip(*columns, strict=True):
        if size:
            split = "\\x" in token and len(token.encode()) > size
            script = SPLIT if split else main_script(token)[0] or NO_LETTER
            counts[name][OTHERS if script == "Other" else script] += 1
    sums = Counter[str]()
    for of in counts.values():
        sums.update(of)
    drawn = tuple(script for script, _ in ranked(sums)[:SCRIPTS])
    rest = sum(count for _, count in ranked(sums)[SCRIPTS:])
    return [
        BarFigure(
            "Vocabulary by script",
            drawn,
            Axis("share of tokens", format=".1%"),
            tuple(
                Bars(name, tuple(of[script] / max(1, of.total()) or None for script in drawn))
                for name, of in counts.items()
            ),
            label="script",
            note=sentences(
                "Of each token the script of most of its letters; special tokens are left out. "
                "A script with few tokens is cut finely.",
                f"Not drawn: {rest:,} tokens of rarer scripts." if rest else "",
            ),
        )
    ]


def uses(found: Comparison, tokens: pa.Table) -> TableFigure:
    """How much of each vocabulary the measured texts use."""
    import numpy as np

    rows: list[tuple[Cell, ...]] = []
    for name in found.names:
        mine = _of(tokens, name)
        counts, sizes = (np.array(mine[column].to_pylist()) for column in ("uses", "bytes"))
        counted = counts[sizes > 0]
        unused, rare = int((counted == 0).sum()), int(((counted > 0) & (counted < RARE)).sum())
        often = len(counted) - unused - rare
        unreachable = len(found.described[name]["unreachable"])
        special = len(counts) - len(counted)
        rows.append((name, often, rare, unused, unused / len(counted), unreachable, special))
    columns = (
        Column("tokenizer"),
        number(f"{RARE} uses or more"),
        number("fewer"),
        number("unused"),
        number("share", ".1%"),
        number("unreachable"),
        number("special"),
    )
    note = (
        "Tokens that training text does not use stay as they were drawn and can derail a model "
        "(Land & Bartolo 2024); how many are unused depends on how much text is measured. "
        "No text is encoded to an unreachable one."
    )
    return TableFigure("Use of the vocabulary", columns, tuple(rows), note)


def unreachable(found: Comparison, tokens: pa.Table) -> list[Figure]:
    """Tokens that can never be used: the longest of each vocabulary."""
    rows: list[tuple[Cell, ...]] = []
    left = 0
    for name in found.names:
        ids = found.described[name]["unreachable"]
        wanted = set(ids)
        table = _of(tokens, name).select(["token_id", "token", "bytes"]).to_pylist()
        mine = [row for row in table if row["token_id"] in wanted]
        mine.sort(key=lambda row: (-row["bytes"], row["token_id"]))
        left += max(0, len(mine) - LISTED)
        rows += [
            (name, row["token_id"], _visible(row["token"]), row["bytes"]) for row in mine[:LISTED]
        ]
    if not rows:
        return []
    columns = (Column("tokenizer"), number("id", ""), Column("token"), number("bytes"))
    note = "Encoding the token's own text, alone or after other characters, never gives it."
    if left:
        note += f" The longest of each vocabulary; {left:,} more are not listed."
    return [TableFigure("Unreachable tokens", columns, tuple(rows), note)]


def _of(tokens: pa.Table, name: str) -> pa.Table:
    import pyarrow.compute as pc

    return tokens.filter(pc.equal(tokens["tokenizer"], name))


def _visible(token: str) -> str:
    """A token for a cell: ␣ for a space, controls as escapes, long ones cut."""
    shown = token.replace(" ", "␣")
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in shown)
    return shown if len(shown) <= LISTED_CHARACTERS else f"{shown[: LISTED_CHARACTERS - 1]}…"


# One sentence ------------------------------------------------------------------------------------


def one_sentence(artifact: Artifact, found: Comparison) -> list[Figure]:
    """The same sentence in a few of the measured languages, cut by each tokenizer still there."""
    from stages.compare_tokenizers.sentences import SENTENCES, SHOWN
    from stages.text.fertility import Cutter
    from stages.text.token_spelling import pieces, spelt_bytes

    dearest = [language.split("-")[0].lower() for language in (found.reference, *found.order())]
    shown = [language for language in dict.fromkeys(dearest) if language in SENTENCES] or SHOWN
    samples: dict[str, list[Sample]] = {language: [] for language in shown[:CUT]}
    for name, given in zip(found.names, by_place(artifact, "tokenizers"), strict=True):
        if given is None:
            continue
        tokenizer = Cutter.of(given.read_bytes("tokenizer.json").decode()).tokenizer
        spelt = spelt_bytes(tokenizer)
        for language, cut_here in samples.items():
            cut = pieces(tokenizer, SENTENCES[language], spelt)
            cut_here.append(Sample(language, f"{len(cut)} tokens, {name}", BORDER.join(cut)))
    every = tuple(sample for cut_here in samples.values() for sample in cut_here)
    if not every:
        return []
    note = (
        "The first sentence of the Universal Declaration of Human Rights. "
        rf"{BORDER} stands between two tokens; a byte that is no whole character reads \xe4."
    )
    return [SamplesFigure("The same sentence, cut by each tokenizer", every, note)]
