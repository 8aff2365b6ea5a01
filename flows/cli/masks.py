"""`ingot show-masks`: which tokens of conversations a model learns."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from flows.analysis.artifacts import open_store
from flows.analysis.masks import read_masks
from flows.cli.options import json_option, store_option
from flows.cli.output import Column, echo_styled, print_json, print_table

if TYPE_CHECKING:
    from stages.training.masks import MaskedConversation, Masks


@click.command("show-masks")
@click.argument("ref")
@click.option(
    "--training-step",
    type=click.IntRange(min=1),
    metavar="N",
    help="What this training step of a pretraining run read.",
)
@click.option(
    "--conversations",
    "most",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    metavar="N",
    help="Conversations to print; shares are of all.",
)
@store_option
@json_option
def show_masks(ref: str, training_step: int | None, most: int, store: str, as_json: bool) -> None:
    """Show which tokens of conversations are learnt, and shares by speaker.

    REF is packed conversations (a step of pack_chat), or a pretraining run that reads some. What is
    learnt is green on a terminal, and stands between ⟦ and ⟧ elsewhere.

    \b
    ingot show-masks mine/pack_chat
    ingot show-masks mine/pretrain --training-step 100
    """
    opened = open_store(store)
    manifest, _ = opened.resolve(ref)
    masks = read_masks(opened, manifest, training_step, most)
    if as_json:
        print_json(masks.to_json())
        return
    for conversation in masks.conversations:
        echo_styled([(f"{conversation.source} {conversation.conversation_id}", {"bold": True})])
        echo_styled(_marked(conversation, on_terminal=sys.stdout.isatty()))
    _print_shares(masks)


def _marked(
    conversation: MaskedConversation, *, on_terminal: bool
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The text of a conversation in runs with a style, what is learnt made visible."""
    for piece in conversation.pieces:
        if on_terminal:
            yield piece.text, {"fg": "green"} if piece.learnt else {"dim": True}
        else:
            yield f"⟦{piece.text}⟧" if piece.learnt else piece.text, {}


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
