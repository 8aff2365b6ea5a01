"""Policies of `filter` beside its rules: which copies go, how much overlap, what personal data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from artifacts_schema.config import Config
from stages.filter.presets import Rule
from stages.filter.presets.personal_data import BY_LABEL

PERSONAL_DATA = "personal_data"
SECRETS = "secrets"
SECRET = "secret"

PASSAGES = ("duplicate_lines@ccnet", "duplicate_sentences@c4", "duplicate_substrings")
"""The views of `dedup`."""

Treatment = Literal["redact", "drop", "keep"]

_TAKES = {"source": "order", "snapshot": "order", "quality": "signal", "date": "first"}
"""The field that says more about a criterion; `length` needs none."""


class Criterion(Config):
    """Which of two copies is wanted more."""

    by: Literal["source", "snapshot", "quality", "length", "date"] = Field(
        description="`source` or `snapshot`: as `order` has them; `quality`: the greater value of "
        "`signal`; `length`: the longer text; `date`: the `first` of them. What is not named, not "
        "measured or not known comes last."
    )
    order: tuple[str, ...] = Field(
        default=(), description="Sources or snapshots by name, the most wanted first."
    )
    signal: str | None = Field(
        default=None, description="A signal, as a classifier's `fasttext_quality_score`."
    )
    first: Literal["latest", "earliest"] | None = Field(
        default=None, description="Which `date` is wanted more."
    )

    @model_validator(mode="after")
    def _says_what_it_needs(self) -> Self:
        for name in ("order", "signal", "first"):
            needed, given = _TAKES.get(self.by) == name, bool(getattr(self, name))
            if needed and not given:
                raise ValueError(f"`by: {self.by}` needs `{name}`")
            if given and not needed:
                raise ValueError(f"`{name}` says nothing about `by: {self.by}`")
        if len(set(self.order)) < len(self.order):
            raise ValueError("`order` names one twice")
        return self


class DuplicatesPolicy(Config):
    """Which copies go: never one without a kept partner that it is a copy of."""

    threshold: float | None = Field(
        default=0.8,
        gt=0,
        le=1,
        description="Drop documents at least this similar to a kept one; equal normalised texts "
        "are similar by 1; null: none is dropped for being similar.",
    )
    measure: Literal["similarity", "containment"] = Field(
        default="similarity",
        description="What `threshold` is held against: Jaccard similarity, or the share of the "
        "smaller document's shingles that the other one holds.",
    )
    exact: Literal["normalised", "raw"] | None = Field(
        default="normalised",
        description="Drop documents whose text equals a kept one's: as `dedup` normalises it, or "
        "to the byte; null: none is dropped for being equal.",
    )
    unverified: Literal["refuse", "accept"] = Field(
        default="refuse",
        description="Pairs that `dedup` did not verify: refuse to decide by them, or let each "
        "count as at the threshold.",
    )
    priority: tuple[Criterion, ...] = Field(
        default=(),
        description="Which of several copies stays, by the first criterion that tells them apart; "
        "then, and where empty, the first in the order of the documents inputs and their rows.",
    )


class ContaminationPolicy(Config):
    """Which overlap with benchmarks is too much; both conditions must hold."""

    min_ngrams_hit: int = Field(
        default=1, ge=1, description="Drop documents with at least this many benchmark n-grams …"
    )
    min_share: float = Field(
        default=0.0, ge=0, le=1, description="… that are at least this share of its n-grams."
    )


class PersonalDataPolicy(Config):
    """What becomes of each sort of personal data.

    `redact` replaces it, and needs the view that found it in `views`; `drop` drops the document;
    `keep` leaves it in the text.
    """

    email: Treatment = Field(default="redact", description="E-mail addresses.")
    phone: Treatment = Field(default="redact", description="Telephone numbers.")
    iban: Treatment = Field(default="redact", description="Account numbers with check digits.")
    card: Treatment = Field(default="redact", description="Card numbers with a check digit.")
    ip_address: Treatment = Field(default="redact", description="Public IP addresses.")
    secret: Treatment = Field(
        default="redact", description="Keys, tokens, passwords: the view `secrets`."
    )

    def rules(self) -> tuple[Rule, ...]:
        """The rules of what is dropped."""
        return tuple(rule for label, rule in BY_LABEL.items() if getattr(self, label) == "drop")

    def redacted(self) -> dict[str, tuple[str, ...]]:
        """By view, the sorts that are replaced in the text."""
        labels = [label for label in BY_LABEL if getattr(self, label) == "redact"]
        return {
            PERSONAL_DATA: tuple(label for label in labels if label != SECRET),
            SECRETS: tuple(label for label in labels if label == SECRET),
        }

    def kept(self) -> frozenset[str]:
        """The sorts that stay in the text."""
        return frozenset(label for label in BY_LABEL if getattr(self, label) == "keep")


def other_views(views: Sequence[str]) -> tuple[str, ...]:
    """Views whose spans are cut or replaced whatever is decided about other documents."""
    return tuple(view for view in views if view not in PASSAGES)


def passage_views(views: Sequence[str]) -> tuple[str, ...]:
    """Views of passages."""
    return tuple(view for view in views if view in PASSAGES)
