"""What `filter` is told: rules by source and language, policies for copies, overlap and edits."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Self

from pydantic import Field, field_validator, model_validator

from artifacts_schema.config import Config, did_you_mean
from artifacts_schema.errors import UsageError
from stages.filter.policies import (
    PERSONAL_DATA,
    SECRETS,
    ContaminationPolicy,
    DuplicatesPolicy,
    PersonalDataPolicy,
)
from stages.filter.presets import Rule, rules_of
from stages.filter.presets.personal_data import BY_LABEL


class FilterConfig(Config):
    """What stays and what goes."""

    rules: tuple[str, ...] = Field(
        default=("gopher@datatrove",), description="Rule presets, in the order of decision."
    )
    rules_by_source: dict[str, tuple[str, ...]] = Field(
        default={},
        description="Presets for one source in place of `rules`: prose rules would drop code.",
    )
    rules_by_language: dict[str, tuple[str, ...]] = Field(
        default={},
        description="Presets for one language, as `signals` names it, in place of `rules`; sources "
        "with rules of their own are not asked.",
    )
    languages: tuple[str, ...] = Field(
        default=(),
        description="Languages that stay, as `signals` names them; sources with rules of their own "
        "are not asked. Empty: all stay.",
    )
    thresholds: dict[str, float] = Field(
        default={}, description="Other thresholds, by rule name, e.g. gopher_few_words: 30."
    )
    thresholds_by_language: dict[str, dict[str, float]] = Field(
        default={},
        description="Thresholds for one language, by rule name; they come before `thresholds`.",
    )
    duplicates: DuplicatesPolicy = Field(default=DuplicatesPolicy(), description="Which copies go.")
    contamination: ContaminationPolicy = Field(
        default=ContaminationPolicy(), description="Which overlap with benchmarks is too much."
    )
    views: tuple[str, ...] = Field(
        default=(PERSONAL_DATA, SECRETS),
        description="Views whose spans are replaced in the kept text; where two overlap, the span "
        "that begins first decides, then the longer, then that of the view named first. Passages "
        "that `dedup` found in an earlier document too are cut where that document stays.",
    )
    personal_data: PersonalDataPolicy = Field(
        default=PersonalDataPolicy(),
        description="Redact, drop or keep each sort of personal data; one word stands for all.",
    )

    @field_validator("personal_data", mode="before")
    @classmethod
    def _one_word_for_all(cls, given: object) -> object:
        return dict.fromkeys(BY_LABEL, given) if isinstance(given, str) else given

    @model_validator(mode="after")
    def _redaction_has_its_views(self) -> Self:
        for view, labels in self.personal_data.redacted().items():
            if labels and view not in self.views:
                raise ValueError(
                    f"personal_data: {', '.join(labels)} would be redacted, but `views` does not "
                    f"name '{view}', so nothing would be: add '{view}' to `views`, or set "
                    f"{', '.join(f'personal_data.{label}' for label in labels)} to keep"
                )
        return self

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        try:
            rules = {rule.name: rule for rule in self._chosen()}
        except UsageError as error:
            raise ValueError(error.what) from None
        _check_names("thresholds", self.thresholds, rules)
        for language, bounds in self.thresholds_by_language.items():
            _check_names(f"thresholds_by_language.{language}", bounds, rules)
        return self

    @property
    def asks_language(self) -> bool:
        """Whether what a document is asked depends on its language."""
        varies = any(rule.by_language for rule in self._chosen())
        return varies or bool(self.rules_by_language or self.thresholds_by_language)

    def views_applied(self) -> tuple[str, ...]:
        """The views that may edit a text: all but those of which every sort of data is kept."""
        redacted = self.personal_data.redacted()
        return tuple(view for view in self.views if redacted.get(view, (view,)))

    def views_presumed(self) -> tuple[str, ...]:
        """Views that rules take for made though `views` does not name them."""
        named = [rule.view for rule in self._chosen() if rule.view is not None]
        return tuple(dict.fromkeys(view for view in named if view not in self.views))

    def rules_for(self, source: str, language: str | None = None) -> tuple[Rule, ...]:
        """The rules for documents of `source` in `language`, each with its one bound."""
        presets = self.rules
        if source in self.rules_by_source:
            presets = self.rules_by_source[source]
        elif language is not None and language in self.rules_by_language:
            presets = self.rules_by_language[language]
        rules = (*rules_of(presets), *self.personal_data.rules())
        bounds = {**self.thresholds, **self.thresholds_by_language.get(language or "", {})}
        return tuple(
            rule.at(bounds[rule.name]) if rule.name in bounds else rule.for_language(language)
            for rule in rules
        )

    def for_chat(self) -> FilterConfig:
        """What is asked of conversations and preferences: the rules of named sources alone."""
        none = self.model_copy(update={"rules": (), "rules_by_language": {}})
        names = {rule.name for rule in none._chosen()}
        bounds = {
            language: {name: bound for name, bound in named.items() if name in names}
            for language, named in self.thresholds_by_language.items()
        }
        kept = {language: named for language, named in bounds.items() if named}
        return none.model_copy(update={"thresholds_by_language": kept})

    def rule_order(self) -> tuple[Rule, ...]:
        """Every rule once, in the order of decision: of `rules`, then of sources, of languages.

        Those of `personal_data` come last. Bounds are those of `thresholds`.
        """
        return tuple(
            rule.at(self.thresholds[rule.name]) if rule.name in self.thresholds else rule
            for rule in self._chosen()
        )

    def _chosen(self) -> tuple[Rule, ...]:
        """As the presets have them."""
        chosen = [
            self.rules,
            *(presets for _, presets in sorted(self.rules_by_source.items())),
            *(presets for _, presets in sorted(self.rules_by_language.items())),
        ]
        rules = (rule for presets in chosen for rule in rules_of(presets))
        return _once((*rules, *self.personal_data.rules()))


def _once(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Each rule at its first place."""
    found: dict[str, Rule] = {}
    for rule in rules:
        found.setdefault(rule.name, rule)
    return tuple(found.values())


def _check_names(where: str, names: Collection[str], rules: dict[str, Rule]) -> None:
    """ValueError for a name that is no rule's, or that of a rule without a number."""
    for name in names:
        if name not in rules:
            raise ValueError(
                f"{where}: no chosen preset has a rule '{name}'{did_you_mean(name, rules)}"
            )
        if rules[name].allowed:
            raise ValueError(f"{where}: rule '{name}' has no threshold ({rules[name].passes})")
