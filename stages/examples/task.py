"""What a task is: how the rows of a data set become items, and items become requests to a model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal

from pydantic import Field, StrictStr, field_validator, model_validator

from artifacts_schema.config import Config, did_you_mean
from artifacts_schema.errors import UsageError
from artifacts_schema.identity import canonical_json
from stages.examples.config import Formulation
from stages.examples.templates import BadTemplate, Expression, Template

ITEM = "item"
"""Under this name the templates of formulations read `item.question` and `item.choices`."""
RIGHT = "right"
"""Under this name metadata holds the places of right choices, if the task has `right`."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
CLOZE_PROMPT = "Question: {{item.question}}\nAnswer:"
LISTED_PROMPT = (
    "{{item.question}}\n"
    "{% for choice in item.choices %}{{'" + LETTERS + "'[loop.index0]}}. {{choice}}\n{% endfor %}"
    "Answer:"
)
Templates = StrictStr | tuple[StrictStr, ...]
"""A list of templates, or one `{{expression}}` whose value is a list of texts."""


class Ranked(Config):
    """A formulation whose choices are ranked by their likelihood after the prompt."""

    harness: str | None = Field(
        default=None, description="Task of lm-evaluation-harness whose prompts are the same."
    )
    preamble: StrictStr = Field(default="", description="Template of what stands before all.")
    prompt: StrictStr | None = Field(
        default=None, description="Template of the prompt; by default that of the formulation."
    )
    choices: Templates | None = Field(
        default=None,
        description="Texts to rank; by default those of the item, or letters (multiple_choice).",
    )
    contexts: Templates | None = Field(
        default=None,
        description="What stands between the prompt and each choice, where that differs.",
    )
    delimiter: StrictStr = Field(default=" ", description="What joins the prompt and a choice.")


class Extraction(Config):
    """How an answer is taken out of what a model wrote."""

    name: StrictStr = Field(description="Name of the metric's variant, such as `strict`.")
    pattern: StrictStr = Field(default="", description="Regular expression; empty: all of it.")
    take: Literal["first", "last"] = Field(default="first", description="Which match.")
    boxed: bool = Field(default=False, description="What the last \\boxed{} holds.")


class Normalise(Config):
    """What is ignored where an answer and a reference are compared."""

    case: bool = Field(default=False, description="Upper and lower case.")
    punctuation: bool = Field(default=False, description="ASCII punctuation.")
    patterns: tuple[StrictStr, ...] = Field(
        default=(), description="Regular expressions whose matches are removed from both."
    )
    math: bool = Field(default=False, description="Ways to write the same LaTeX.")


class Free(Config):
    """A formulation in which the model writes, and an answer is taken from what it wrote."""

    harness: str | None = Field(
        default=None, description="Task of lm-evaluation-harness whose prompts are the same."
    )
    preamble: StrictStr = Field(default="", description="Template of what stands before all.")
    prompt: StrictStr = Field(description="Template of the prompt.")
    references: Templates = Field(
        description="Right answers; of code the test program, then, where the answer continues a "
        "text, that text; of `instructions` one for each, as JSON text."
    )
    answer: StrictStr = Field(
        default="", description="Template of the answer in few-shot examples; else a reference."
    )
    delimiter: StrictStr = Field(default=" ", description="What joins prompt and answer there.")
    stop: tuple[StrictStr, ...] = Field(default=(), description="Texts that end an answer.")
    max_new_tokens: int = Field(default=256, ge=1, description="Longest answer in tokens.")
    samples: int = Field(default=1, ge=1, description="Answers to each prompt.")
    temperature: float = Field(default=0.0, ge=0, description="0: the likeliest token always.")
    extraction: tuple[Extraction, ...] = Field(default=(), description="By default all of it.")
    metric: Literal["exact_match", "code", "instructions", "chrf", "refusal"] = Field(
        default="exact_match", description="How an answer is judged."
    )
    normalise: Normalise = Field(default_factory=Normalise, description="Before it is compared.")


class Formulations(Config):
    """The ways to put an item to a model that the task knows."""

    cloze: Ranked | None = Field(default=None, description="The choices are not listed.")
    multiple_choice: Ranked | None = Field(default=None, description="Listed, letters ranked.")
    hybrid: Ranked | None = Field(default=None, description="Listed, the choices ranked.")
    free: Free | None = Field(default=None, description="The model writes.")


class Fewshot(Config):
    """Solved examples before the question."""

    shots: int = Field(default=0, ge=0, le=100, description="How many, unless the step says.")
    match: StrictStr = Field(
        default="", description="Template: examples of an item are those of the same value."
    )
    separator: StrictStr = Field(default="\n\n", description="What stands behind each example.")
    examples: tuple[dict[str, Any], ...] = Field(
        default=(), description="Rows to use; by default they are read from data."
    )


class Task(Config):
    """How a data set's rows become items of a benchmark."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,79}$", description="Its name.")
    version: int = Field(ge=1, description="Raised where a prompt, an answer or a metric changes.")
    description: StrictStr = Field(min_length=1, description="What it measures, in a sentence.")
    licence: StrictStr = Field(min_length=1, description="Of the data, as an SPDX identifier.")
    source: StrictStr = Field(min_length=1, description="Where the data is published.")
    fields: tuple[StrictStr, ...] = Field(
        min_length=1, description="Fields of a row that the templates may read."
    )
    item_id: StrictStr = Field(default="", description="Template; by default a hash of the place.")
    keep: tuple[StrictStr, ...] = Field(default=(), description="Fields that metadata keeps.")
    question: StrictStr = Field(description="Template of the item's own text, without choices.")
    choices: Templates | None = Field(default=None, description="Its choices.")
    answer: StrictStr | int | None = Field(
        default=None, description="Index of the right choice, or an expression for it."
    )
    right: StrictStr | None = Field(
        default=None,
        description="Expression for a list of a 1 or 0 for each choice, where several are right: "
        "then the share of probability that they have is scored too.",
    )
    example: dict[str, Any] | None = Field(
        default=None, description="A row to show the task by; items do not depend on it."
    )
    chat: bool = Field(default=False, description="Whether it is asked in the chat format.")
    fewshot: Fewshot = Field(default_factory=Fewshot, description="Solved examples.")
    default: Formulation = Field(description="Formulation, unless the step names others.")
    formulations: Formulations = Field(description="The ways to put an item to a model, by name.")

    @field_validator("formulations", mode="before")
    @classmethod
    def _no_null(cls, value: Any) -> Any:
        """A formulation without settings, `cloze:`, is one with its defaults."""
        if not isinstance(value, dict):
            return value
        return {name: {} if settings is None else settings for name, settings in value.items()}

    @model_validator(mode="after")
    def _is_whole(self) -> Task:
        ranked = [name for name, one in self.ways.items() if isinstance(one, Ranked)]
        if self.default not in self.ways:
            raise ValueError(f"default: it has no formulation '{self.default}'")
        if ranked and (self.choices is None or self.answer is None):
            raise ValueError(f"formulations.{ranked[0]} needs `choices` and `answer`")
        if (self.choices is None) != (self.answer is None):
            raise ValueError("`choices` and `answer` belong together")
        if self.right is not None and self.choices is None:
            raise ValueError("`right` says which of the `choices` are right, and there are none")
        for place, source, own in self._templates():
            try:
                _check_fields(source, {*self.fields, *own})
            except BadTemplate as error:
                raise ValueError(f"{place}: {error}") from None
        for field in self.keep:
            if field not in self.fields:
                raise ValueError(f"keep: no field '{field}'{did_you_mean(field, self.fields)}")
        return self

    @cached_property
    def ways(self) -> dict[str, Ranked | Free]:
        """Its formulations by name."""
        names = Formulations.model_fields
        return {name: way for name in names if (way := getattr(self.formulations, name))}

    @cached_property
    def digest(self) -> str:
        """16 hex digits of all that the task says, its example aside."""
        content = {**self.plain(), "example": None}
        if self.right is None:  # So that tasks without it keep their digest.
            del content["right"]
        return hashlib.blake2b(canonical_json(content), digest_size=8).hexdigest()

    def way(self, name: str) -> Ranked | Free:
        """A formulation. UsageError with the nearest name where the task has none of it."""
        if name not in self.ways:
            known = did_you_mean(name, self.ways)
            raise UsageError(f"task '{self.name}' has no formulation '{name}'{known}")
        return self.ways[name]

    def described(self) -> dict[str, Any]:
        """The task as `tasks.json` has it."""
        ways = {name: way.plain() for name, way in self.ways.items()}
        plain = {name: value for name, value in self.plain().items() if name != "example"}
        if self.right is None:
            del plain["right"]
        return {**plain, "formulations": ways, "digest": self.digest}

    def _templates(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Each template: its place, its source, and the names beside the fields that it may use."""
        yield from _sources("item_id", self.item_id, ())
        yield from _sources("question", self.question, ())
        yield from _sources("choices", self.choices, ())
        yield from _sources("answer", str(self.answer or ""), ())
        yield from _sources("right", self.right, ())
        yield from _sources("fewshot.match", self.fewshot.match, ())
        for name, way in self.ways.items():
            for part in ("preamble", "prompt", "choices", "contexts", "references", "answer"):
                value = getattr(way, part, None)
                yield from _sources(f"formulations.{name}.{part}", value, (ITEM,))


def _sources(
    place: str, value: Templates | None, own: tuple[str, ...]
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for source in (value,) if isinstance(value, str) else value or ():
        yield place, source, own


def _check_fields(source: str, known: set[str]) -> None:
    for field in sorted(Template(source).fields - known):
        raise BadTemplate(f"no field '{field}'{did_you_mean(field, known)}")


def text_list(value: Templates) -> Expression | tuple[Template, ...]:
    """Compiled templates of a list: an expression for all of it, or one for each element."""
    if isinstance(value, str):
        return Expression(value)
    return tuple(map(Template, value))
