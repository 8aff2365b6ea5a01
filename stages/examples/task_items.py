"""Rows of a data set under a task: items, and the requests that put them to a model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import InputError
from stages.engine.reading.rows import metadata_json
from stages.examples.conversion import BadExample, Origin
from stages.examples.task import (
    CLOZE_PROMPT,
    ITEM,
    LETTERS,
    LISTED_PROMPT,
    RIGHT,
    Free,
    Ranked,
    Task,
    text_list,
)
from stages.examples.templates import Expression, RenderError, Template

Row = Mapping[str, Any]
Texts = Expression | tuple[Template, ...]


@dataclass(frozen=True)
class Bare:
    """An item's own content: what it says in any formulation. No choices, and -1, if it is free."""

    question: str
    choices: tuple[str, ...]
    answer: int


@dataclass(frozen=True)
class Example:
    """A solved example: the row and its content."""

    row: dict[str, Any]
    bare: Bare


@dataclass(frozen=True)
class Rendered:
    """An item in one formulation, without examples before it. `answer` ends it as an example."""

    preamble: str
    prompt: str
    choices: list[str]
    contexts: list[str]
    references: list[str]
    answer: str


class _Way:
    """A formulation of a task, compiled."""

    def __init__(self, name: str, way: Ranked | Free) -> None:
        self.name, self.way = name, way
        default = CLOZE_PROMPT if name == "cloze" else LISTED_PROMPT
        contexts = getattr(way, "contexts", None)
        self.preamble = Template(way.preamble)
        self.prompt = Template(default if way.prompt is None else way.prompt)
        self.contexts = text_list(contexts) if contexts else None
        choices = getattr(way, "choices", None)
        self.choices = text_list(choices) if choices else None
        self.references = text_list(way.references) if isinstance(way, Free) else None
        self.answer = Template(way.answer) if isinstance(way, Free) and way.answer else None

    def render(self, row: Row, bare: Bare) -> Rendered:
        """The item in this formulation. Raises RenderError."""
        row = {**row, ITEM: {"question": bare.question, "choices": list(bare.choices)}}
        preamble, prompt = self.preamble.render(row), self.prompt.render(row)
        if isinstance(self.way, Free):
            assert self.references is not None
            references = render_texts(self.references, row)
            answer = self.answer.render(row) if self.answer else references[0]
            ending = self.way.delimiter + answer
            return Rendered(preamble, prompt, [], [], references, ending)
        choices = self._ranked(row, bare)
        contexts = render_texts(self.contexts, row) if self.contexts else []
        if contexts and len(contexts) != len(choices):
            raise RenderError(f"{len(contexts)} contexts and {len(choices)} choices")
        delimited = [self.way.delimiter + choice for choice in choices]
        before = contexts[bare.answer] if contexts else ""
        ending = before + delimited[bare.answer]
        return Rendered(preamble, prompt, delimited, contexts, [], ending)

    def _ranked(self, row: Row, bare: Bare) -> list[str]:
        if self.choices is not None:
            choices = render_texts(self.choices, row)
            if len(choices) != len(bare.choices):
                raise RenderError(f"{len(choices)} choices of an item with {len(bare.choices)}")
            return choices
        if self.name != "multiple_choice":
            return list(bare.choices)
        if len(bare.choices) > len(LETTERS):
            raise RenderError(f"{len(bare.choices)} choices, and {len(LETTERS)} letters")
        return list(LETTERS[: len(bare.choices)])


def render_texts(compiled: Texts, row: Row) -> list[str]:
    """A list of texts. Raises RenderError for any other value."""
    if isinstance(compiled, Expression):
        texts = compiled.value(row)
    else:
        texts = [template.render(row) for template in compiled]
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise RenderError(f"a list of texts is needed, not {str(texts)[:100]}")
    if not texts:
        raise RenderError("a list of texts is needed, and it is empty")
    return list(texts)


@dataclass
class Compiled:
    """The templates of a task, compiled: what makes content of a row."""

    task: Task
    ways: dict[str, _Way] = field(init=False)

    def __post_init__(self) -> None:
        task = self.task
        self.ways = {name: _Way(name, way) for name, way in task.ways.items()}
        self._question, self._item_id = Template(task.question), Template(task.item_id)
        self._choices = text_list(task.choices) if task.choices is not None else None
        constant = isinstance(task.answer, int) or task.answer is None
        self._answer = None if constant else Expression(str(task.answer))
        self._right = Expression(task.right) if task.right is not None else None
        self._match = Template(task.fewshot.match)

    def bare(self, row: Row) -> Bare:
        """The content of a row. Raises BadExample."""
        for name in self.task.fields:
            if name not in row:
                raise BadExample("missing_field", f"'{name}'{did_you_mean(name, row)}")
        question = self._render("question", lambda: self._question.render(row))
        if not question.strip():
            raise BadExample("empty_prompt")
        if self._choices is None:
            return Bare(question, (), -1)
        compiled = self._choices
        choices = tuple(self._render("choices", lambda: render_texts(compiled, row)))
        if not all(choice.strip() for choice in choices):
            raise BadExample("bad_choices", "one is empty")
        if len(choices) > 1 and len(set(choices)) == 1:
            raise BadExample("bad_choices", "all are the same")
        return Bare(question, choices, self._index(row, choices))

    def item_id(self, row: Row, default: str) -> str:
        """The item's name."""
        if not self.task.item_id:
            return default
        return str(self._render("item_id", lambda: self._item_id.render(row))) or default

    def right(self, row: Row, bare: Bare) -> list[int] | None:
        """Places of the right choices, where the task says that several may be. BadExample for a
        list that is not one of a 1 or 0 for each choice, and where the answer is not among them."""
        if self._right is None:
            return None
        marks = self._render("right", lambda: self._right.value(row))
        if not isinstance(marks, list | tuple) or len(marks) != len(bare.choices):
            raise BadExample("no_answer", f"right: a mark for each of {len(bare.choices)} choices")
        if not all(mark in (0, 1) for mark in marks):
            raise BadExample("no_answer", f"right: marks are 1 or 0, not {str(marks)[:60]}")
        places = [place for place, mark in enumerate(marks) if mark]
        if bare.answer not in places:
            raise BadExample("no_answer", f"right: choice {bare.answer} is not among {places}")
        return places

    def group(self, row: Row) -> str:
        """Items and examples of one group belong together."""
        return str(self._render("fewshot.match", lambda: self._match.render(row)))

    def rendered(self, name: str, row: Row, bare: Bare) -> Rendered:
        """The item in a formulation. Raises BadExample."""
        made = self._render(f"formulations.{name}", lambda: self.ways[name].render(row, bare))
        assert isinstance(made, Rendered)
        return made

    def _index(self, row: Row, choices: Sequence[str]) -> int:
        if self._answer is None:
            value: Any = self.task.answer
        else:
            try:
                value = self._answer.value(row)
            except RenderError as error:
                raise BadExample("no_answer", str(error)) from None
        if isinstance(value, str) and value.strip().isdecimal():
            value = int(value)
        if isinstance(value, bool):
            value = int(value)
        if not isinstance(value, int):
            raise BadExample("no_answer", f"{value!r} is no index")
        if not 0 <= value < len(choices):
            raise BadExample("answer_out_of_range", f"{value!r} of {len(choices)} choices")
        return value

    @staticmethod
    def _render(place: str, render: Any) -> Any:
        try:
            return render()
        except RenderError as error:
            raise BadExample("template_failed", f"{place}: {error}") from None


@dataclass
class TaskRows:
    """What makes rows of the `benchmarks` table under a task: a picklable `Convert`.

    `examples` are by group, in the order of their source; with a `seed` each item draws its own.
    """

    task: Task
    formulations: tuple[str, ...]
    shots: tuple[int, ...]
    examples: dict[str, list[Example]]
    seed: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        compiled = ("_compiled", "_texts")
        return {name: value for name, value in vars(self).items() if name not in compiled}

    @cached_property
    def _compiled(self) -> Compiled:
        self._texts: dict[tuple[str, int], str] = {}
        return Compiled(self.task)

    def __call__(self, fields: dict[str, Any], origin: Origin) -> dict[str, Any]:
        """The row of the `benchmarks` table that a data set's row makes. Raises BadExample."""
        compiled = self._compiled
        bare = compiled.bare(fields)
        item_id = compiled.item_id(fields, origin.id)
        if any(self.shots):
            examples = self._examples_of(compiled.group(fields), bare, item_id)
        else:
            examples = []
        requests = [
            self._request(name, shots, fields, bare, examples)
            for name in self.formulations
            for shots in self.shots
        ]
        metadata = {name: fields[name] for name in self.task.keep}
        right = compiled.right(fields, bare)
        if right is not None:
            metadata[RIGHT] = right
        return {
            "benchmark": self.task.name,
            "item_id": item_id,
            "form": "multiple_choice" if bare.choices else "free",
            "prompt": bare.question,
            "choices": list(bare.choices),
            "answer": bare.answer if bare.choices else None,
            "requests": requests,
            "metadata": metadata_json(metadata),
        }

    def _request(
        self, name: str, shots: int, fields: Row, bare: Bare, examples: Sequence[Example]
    ) -> dict[str, Any]:
        made = self._compiled.rendered(name, fields, bare)
        before = "".join(self._example_text(name, example) for example in examples[:shots])
        return {
            "formulation": name,
            "shots": shots,
            "prompt": made.preamble + before + made.prompt,
            "choices": made.choices,
            "references": made.references,
            "contexts": made.contexts,
        }

    def _example_text(self, name: str, example: Example) -> str:
        key = (name, id(example))
        if key not in self._texts:
            made = self._compiled.rendered(name, example.row, example.bare)
            self._texts[key] = made.prompt + made.answer + self.task.fewshot.separator
        return self._texts[key]

    def _examples_of(self, group: str, bare: Bare, item_id: str) -> list[Example]:
        """As many as the longest prompt has, never the item itself."""
        most = max(self.shots)
        others = [one for one in self.examples.get(group, []) if one.bare != bare]
        if len(others) < most:
            where = f"group '{group}'" if group else "the few-shot source"
            raise BadExample("too_few_examples", f"{len(others)} in {where}, {most} needed")
        if self.seed is None:
            return others[:most]
        return [others[place] for place in _draw(self.seed, item_id, len(others), most)]


def _draw(seed: int, item_id: str, among: int, count: int) -> list[int]:
    """`count` different places of `among`, by hashes of the seed and the item's name."""
    places: dict[int, None] = {}
    turn = 0
    while len(places) < count:
        named = json.dumps([seed, item_id, turn]).encode()
        hashed = hashlib.blake2b(named, digest_size=8).digest()
        places[int.from_bytes(hashed) % among] = None
        turn += 1
    return list(places)


POOL = 2_000
"""Examples that are drawn from, at most: the first of each group."""


def gather_examples(
    task: Task, rows: Iterable[dict[str, Any]], most: int, where: str, *, drawn: bool
) -> dict[str, list[Example]]:
    """Examples by group, equal ones once, in order; rows that make no example are left out.

    `most` is the largest number of shots. InputError if no row made one.
    """
    compiled = Compiled(task)
    enough = POOL if drawn else most + 1
    groups: dict[str, dict[Bare, Example]] = {}
    reasons: list[str] = []
    for row in rows:
        try:
            bare = compiled.bare(row)
            group = groups.setdefault(compiled.group(row), {})
        except BadExample as bad:
            reasons.append(f"{bad.reason} {bad.detail}".rstrip())
            continue
        if len(group) < enough and bare not in group:
            needed = {name: row[name] for name in task.fields}
            group[bare] = Example(needed, bare)
        elif not task.fewshot.match and len(group) >= enough:
            break
    largest = max((len(group) for group in groups.values()), default=0)
    if largest < most:
        sample = f"; a bad row: {reasons[0]}" if reasons else ""
        raise InputError(
            f"{largest} examples in the largest group, {most} shots{sample}",
            where=where,
            hint="take fewer `shots`, or a larger few-shot source",
        )
    return {name: list(group.values()) for name, group in groups.items()}
