"""Config of `filter`: rules by source and language, and policies for copies, overlap and edits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from artifacts_schema.config import Config, MapExecution, MemorySize, did_you_mean
from artifacts_schema.errors import UsageError
from stages.filter.presets import PRESETS, preset_rules
from stages.filter.rules import PERSONAL_DATA_RULES, Rule

PERSONAL_DATA = "personal_data"
SECRETS = "secrets"
SECRET = "secret"

PASSAGES = ("duplicate_lines@ccnet", "duplicate_sentences@c4", "duplicate_substrings")
"""The views of `dedup`."""

Treatment = Literal["redact", "drop", "keep"]

REASONS = (
    *("language", "empty_after_edits", "contamination", "exclusion"),
    *("exact_duplicate", "near_duplicate"),
)
"""Reasons in the ledger that are no rule's."""
RESERVED_NAMES = frozenset(
    {
        *REASONS,
        *(rule.name for rules in PRESETS.values() for rule in rules),
        *(rule.name for rule in PERSONAL_DATA_RULES.values()),
    }
)
"""Names that a recipe's rule cannot have."""

_TAKES = {"source": "order", "snapshot": "order", "quality": "signal", "date": "first"}
"""The field that a criterion needs; `length` needs none."""


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
            needed, present = _TAKES.get(self.by) == name, bool(getattr(self, name))
            if needed and not present:
                raise ValueError(f"`by: {self.by}` needs `{name}`")
            if present and not needed:
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
        return tuple(
            rule for label, rule in PERSONAL_DATA_RULES.items() if getattr(self, label) == "drop"
        )

    def redacted(self) -> dict[str, tuple[str, ...]]:
        """By view, the sorts that are replaced in the text."""
        labels = [label for label in PERSONAL_DATA_RULES if getattr(self, label) == "redact"]
        return {
            PERSONAL_DATA: tuple(label for label in labels if label != SECRET),
            SECRETS: tuple(label for label in labels if label == SECRET),
        }

    def kept(self) -> frozenset[str]:
        """The sorts that stay in the text."""
        return frozenset(label for label in PERSONAL_DATA_RULES if getattr(self, label) == "keep")


def other_views(views: Sequence[str]) -> tuple[str, ...]:
    """Views whose spans are cut or replaced whatever is decided about other documents."""
    return tuple(view for view in views if view not in PASSAGES)


def passage_views(views: Sequence[str]) -> tuple[str, ...]:
    """Views of passages."""
    return tuple(view for view in views if view in PASSAGES)


class RecipeRule(Config):
    """A rule written in a recipe: a bound on one signal, `minimum`, `maximum` or `allowed`."""

    name: str = Field(
        pattern=r"^[a-z][a-z0-9_]*$",
        description="The reason in the ledger and the report; no preset's rule has it.",
    )
    signal: str = Field(min_length=1, description="The column of `signals` that it is about.")
    minimum: float | None = Field(
        default=None, description="Drop documents whose signal lies below; the bound passes."
    )
    maximum: float | None = Field(
        default=None, description="Drop documents whose signal lies above; the bound passes."
    )
    allowed: tuple[str, ...] = Field(
        default=(), description="Drop documents whose label is not among these."
    )
    sources: tuple[str, ...] = Field(
        default=(), description="Sources that it applies to; empty: all."
    )
    languages: tuple[str, ...] = Field(
        default=(), description="Languages that it applies to, as `signals` names them; empty: all."
    )

    @model_validator(mode="after")
    def _has_one_bound(self) -> Self:
        bounds = (self.minimum is not None, self.maximum is not None, bool(self.allowed))
        if sum(bounds) != 1:
            raise ValueError(f"rule '{self.name}' needs one of `minimum`, `maximum`, `allowed`")
        if self.name in RESERVED_NAMES:
            raise ValueError(f"a rule cannot have the name '{self.name}': Ingot has that reason")
        return self

    def rule(self) -> Rule:
        """The rule as the stage applies it."""
        return Rule(source="the recipe", **self.model_dump())


RuleChoice = str | RecipeRule
"""A preset by name, or a rule."""


class FilterConfig(Config):
    """What stays and what goes."""

    rules: tuple[RuleChoice, ...] = Field(
        default=("gopher@datatrove",),
        description="Rule presets, and rules written here, in the order of decision.",
        json_schema_extra={"presets": list(PRESETS)},
    )
    rules_by_source: dict[str, tuple[RuleChoice, ...]] = Field(
        default={},
        description="Presets and rules for one source in place of `rules`: prose rules would drop "
        "code.",
    )
    rules_by_language: dict[str, tuple[RuleChoice, ...]] = Field(
        default={},
        description="Presets and rules for one language, as `signals` names it, in place of "
        "`rules`; sources with rules of their own are not asked.",
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

    @field_validator("rules", "rules_by_source", "rules_by_language", mode="before")
    @classmethod
    def _rules_are_read(cls, value: object) -> object:
        if isinstance(value, dict):
            return {name: _read_rules(choices, f"{name}, ") for name, choices in value.items()}
        return _read_rules(value)

    @field_validator("personal_data", mode="before")
    @classmethod
    def _one_word_for_all(cls, value: object) -> object:
        return dict.fromkeys(PERSONAL_DATA_RULES, value) if isinstance(value, str) else value

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
        """Whether the rules for a document depend on its language."""
        varies = any(rule.by_language or rule.languages for rule in self._chosen())
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
        choices = self.rules
        if source in self.rules_by_source:
            choices = self.rules_by_source[source]
        elif language is not None and language in self.rules_by_language:
            choices = self.rules_by_language[language]
        rules = (*_chosen_rules(choices), *self.personal_data.rules())
        bounds = {**self.thresholds, **self.thresholds_by_language.get(language or "", {})}
        return tuple(
            rule.at(bounds[rule.name]) if rule.name in bounds else rule.for_language(language)
            for rule in rules
            if rule.applies(source, language)
        )

    def recipe_rules(self) -> tuple[RecipeRule, ...]:
        """The rules that the recipe defines."""
        return tuple(
            choice
            for choices in self._choices()
            for choice in choices
            if isinstance(choice, RecipeRule)
        )

    def for_chat(self) -> FilterConfig:
        """The config for conversations and preferences: the rules of named sources only."""
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

    def _choices(self) -> list[tuple[RuleChoice, ...]]:
        return [
            self.rules,
            *(choices for _, choices in sorted(self.rules_by_source.items())),
            *(choices for _, choices in sorted(self.rules_by_language.items())),
        ]

    def _chosen(self) -> tuple[Rule, ...]:
        """Every rule at its first place, with the bounds of the presets and the recipe.

        UsageError if two different rules have one name: only their bound may differ.
        """
        first: dict[str, Rule] = {}
        for choices in self._choices():
            for rule in _chosen_rules(choices):
                known = first.setdefault(rule.name, rule)
                if _measured(known) != _measured(rule):
                    raise UsageError(
                        f"two rules have the name '{rule.name}': {known.passes} and {rule.passes}"
                    )
        return (*first.values(), *self.personal_data.rules())


class FilterExecution(MapExecution):
    """Who does the work, and how much of the links a process holds."""

    memory: MemorySize = Field(
        default="1GiB",
        description="What a process may hold of ids and links while copies are decided: links are "
        "divided by connected component, and a component that is larger is decided from disk.",
    )


def _read_rules(value: object, where: str = "") -> object:
    """Rules of a list read one by one, so that an error names the entry and its nearest field."""
    if not isinstance(value, list | tuple):
        return value
    choices: list[object] = []
    for number, choice in enumerate(value, 1):
        if isinstance(choice, Mapping):
            try:
                choice = RecipeRule.parse(choice, where="")
            except UsageError as error:
                raise ValueError(f"{where}entry {number}: {error.what}") from None
        elif not isinstance(choice, str | RecipeRule):
            raise ValueError(f"{where}entry {number} is neither a preset's name nor a rule")
        choices.append(choice)
    return choices


def _chosen_rules(choices: Sequence[RuleChoice]) -> tuple[Rule, ...]:
    """The rules of presets and of the recipe in order, each once.

    UsageError for an unknown preset, and for a preset or a recipe's rule that is named twice.
    """
    rules: dict[str, Rule] = {}
    for place, choice in enumerate(choices):
        if isinstance(choice, str) and choice in choices[:place]:
            raise UsageError(f"rule preset '{choice}' is named twice")
        if isinstance(choice, str):
            own = ((rule.name, rule) for rule in preset_rules(choice) if rule.name not in rules)
            rules.update(own)
        elif choice.name in rules:
            raise UsageError(f"two rules of one list have the name '{choice.name}'")
        else:
            rules[choice.name] = choice.rule()
    return tuple(rules.values())


def _measured(rule: Rule) -> tuple[object, ...]:
    """What a rule is about, apart from its bound."""
    return rule.signal, rule.allowed, rule.minimum is None


def _check_names(where: str, names: Collection[str], rules: dict[str, Rule]) -> None:
    """ValueError for a name that is no rule's, or that of a rule without a number."""
    for name in names:
        if name not in rules:
            raise ValueError(
                f"{where}: no chosen preset has a rule '{name}'{did_you_mean(name, rules)}"
            )
        if rules[name].allowed:
            raise ValueError(f"{where}: rule '{name}' has no threshold ({rules[name].passes})")
