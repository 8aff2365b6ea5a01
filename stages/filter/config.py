"""What `filter` is told: rules by source, and policies for duplicates, contamination and edits."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from artifacts_schema.config import Config, did_you_mean
from artifacts_schema.errors import UsageError
from stages.filter.presets import Rule, rules_of


class DuplicatesPolicy(Config):
    """Which copies go. Of equals, the first in the order of the documents inputs stays."""

    threshold: float | None = Field(
        default=0.8,
        gt=0,
        le=1,
        description="Drop documents at least this (Jaccard) similar to a kept one; null: none.",
    )
    exact: bool = Field(
        default=True, description="Drop documents whose normalised text equals a kept one's."
    )


class ContaminationPolicy(Config):
    """Which overlap with benchmarks is too much; both conditions must hold."""

    min_ngrams_hit: int = Field(
        default=1, ge=1, description="Drop documents with at least this many benchmark n-grams …"
    )
    min_share: float = Field(
        default=0.0, ge=0, le=1, description="… that are at least this share of its n-grams."
    )


class FilterConfig(Config):
    """What stays and what goes."""

    rules: tuple[str, ...] = Field(
        default=("gopher_quality@datatrove", "gopher_repetition@datatrove"),
        description="Rule presets, in the order of decision.",
    )
    rules_by_source: dict[str, tuple[str, ...]] = Field(
        default={},
        description="Presets for one source in place of `rules`: prose rules would drop code.",
    )
    languages: tuple[str, ...] = Field(
        default=(),
        description="Languages that stay, as `signals` names them; sources with rules of their own "
        "are not asked. Empty: all stay.",
    )
    thresholds: dict[str, float] = Field(
        default={}, description="Other thresholds, by rule name, e.g. gopher_few_words: 30."
    )
    duplicates: DuplicatesPolicy = Field(default=DuplicatesPolicy(), description="Which copies go.")
    contamination: ContaminationPolicy = Field(
        default=ContaminationPolicy(), description="Which overlap with benchmarks is too much."
    )
    redact: tuple[str, ...] = Field(
        default=("personal_data",), description="Views whose spans are replaced in the kept text."
    )

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        try:
            known = {rule.name for rule in self.rule_order()}
        except UsageError as error:
            raise ValueError(error.what) from None
        for name in self.thresholds:
            if name not in known:
                raise ValueError(
                    f"thresholds: no chosen preset has a rule '{name}'{did_you_mean(name, known)}"
                )
        return self

    def rules_for(self, source: str) -> tuple[Rule, ...]:
        """The rules for documents of `source`."""
        return rules_of(self.rules_by_source.get(source, self.rules), self.thresholds)

    def rule_order(self) -> tuple[Rule, ...]:
        """Every rule once, in the order of decision: those of `rules`, then of the sources."""
        chosen = [self.rules, *(presets for _, presets in sorted(self.rules_by_source.items()))]
        rules = [rule for presets in chosen for rule in rules_of(presets, self.thresholds)]
        return tuple({rule.name: rule for rule in rules}.values())
