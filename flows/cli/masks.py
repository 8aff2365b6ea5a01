"""`ingot show-masks`: which tokens of conversations and preference pairs a model learns."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import click

from artifacts_schema.errors import printable_text
from flows.analysis.artifacts import open_store
from flows.analysis.masks import read_masks
from flows.cli.options import json_option, store_option
from flows.cli.output import Column, echo_styled, print_json, print_table

if TYPE_CHECKING:
    from stages.training.masks import MaskedPair, Masks, Piece


@click.command("show-masks")
@click.argument("ref")
@click.option(
    "--training-step",
    type=click.IntRange(min=1),
    metavar="N",
    help="What this training step of a run read.",
)
@click.option(
    "--conversations",
    "most",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    metavar="N",
    help="Conversations or pairs to print; shares are of all.",
)
@store_option
@json_option
def show_masks(ref: str, training_step: int | None, most: int, store: str, as_json: bool) -> None:
    """Show which tokens of conversations are learnt, and shares by speaker.

    REF is packed conversations or pairs (a step of pack_chat or pack_preferences), a run that reads
    some by training step, or a run on preference pairs (preference, dpo, reward). Of pairs both
    answers are printed beside each other. What is learnt is green on a terminal, and stands between
    ⟦ and ⟧ elsewhere; of a reward model that is the token that is scored.

    \b
    ingot show-masks mine/pack_chat
    ingot show-masks mine/pretrain --training-step 100
    ingot show-masks mine/preference
    """
    opened = open_store(store)
    manifest, _ = opened.resolve(ref)
    masks = read_masks(opened, manifest, training_step, most)
    if as_json:
        print_json(masks.to_json())
        return
    on_terminal = sys.stdout.isatty()
    for conversation in masks.conversations:
        echo_styled([(f"{conversation.source} {conversation.conversation_id}", _BOLD)])
        echo_styled(_marked(conversation.pieces, on_terminal=on_terminal))
    for pair in masks.pairs:
        _print_pair(pair, on_terminal=on_terminal)
    _print_shares(masks)
    for reason, count in sorted(masks.dropped.items()):
        echo_styled([(f"left out, {reason.replace('_', ' ')}: {count:,}", {})])


Run = tuple[str, dict[str, Any]]
"""A text and its style."""
_BOLD = {"bold": True}
_DIVIDER = " │ "


def _marked(pieces: Sequence[Piece], *, on_terminal: bool) -> Iterator[Run]:
    """Texts in runs with a style, what is learnt made visible."""
    for piece in pieces:
        if on_terminal and piece.learnt:
            yield piece.text.replace("\n", "⏎\n"), {"fg": "green"}  # A line end has no colour.
        elif on_terminal:
            yield piece.text, {"dim": True}
        else:
            yield f"⟦{piece.text}⟧" if piece.learnt else piece.text, {}


def _print_pair(pair: MaskedPair, *, on_terminal: bool) -> None:
    """The prompt, and both answers beside each other; a single answer below it."""
    echo_styled([(f"{pair.source} {pair.preference_id}", _BOLD)])
    prompt = pair.prompt
    if prompt:
        echo_styled(_marked(prompt, on_terminal=on_terminal))
    if pair.chosen is None or pair.rejected is None:
        name, answer = ("desirable", pair.chosen) if pair.chosen else ("undesirable", pair.rejected)
        echo_styled([(name, _BOLD)])
        echo_styled(_marked((answer or ())[len(prompt) :], on_terminal=on_terminal))
        return
    width = max(20, (shutil.get_terminal_size((100, 24)).columns - len(_DIVIDER)) // 2)
    columns = [
        [[(name, _BOLD)], *_lines(_marked(side[len(prompt) :], on_terminal=on_terminal), width)]
        for name, side in zip(("chosen", "rejected"), pair.sides, strict=True)
        if side is not None
    ]
    for left, right in zip_longest(*columns, fillvalue=[]):
        gap = " " * (width - sum(len(text) for text, _ in left))
        echo_styled([*left, (gap + _DIVIDER, {"dim": True} if on_terminal else {}), *right])


def _lines(runs: Iterator[Run], width: int) -> list[list[Run]]:
    """The runs in lines of at most `width` characters."""
    lines: list[list[Run]] = [[]]
    free = width
    for text, style in runs:
        for number, part in enumerate(printable_text(text).split("\n")):
            if number:
                lines.append([])
                free = width
            while part:
                if not free:
                    lines.append([])
                    free = width
                lines[-1].append((part[:free], style))
                part, free = part[free:], free - len(part[:free])
    return lines


def _print_shares(masks: Masks) -> None:
    total = sum(share.tokens for share in masks.shares)
    learnt = sum(share.learnt for share in masks.shares)
    rows = [
        (
            share.speaker,
            f"{share.tokens:,}",
            f"{share.learnt:,}",
            f"{share.learnt / share.tokens:.1%}",
        )
        for share in masks.shares
    ]
    rows.append(("all", f"{total:,}", f"{learnt:,}", f"{learnt / max(total, 1):.1%}"))
    heads = ("tokens", "learnt", "share learnt")
    print_table(["speaker", *(Column(head, right=True) for head in heads)], rows)
