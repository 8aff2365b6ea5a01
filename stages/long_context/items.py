"""Items of a stated length: the haystack is as large as the tokens of the item allow."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from tokenizers import Tokenizer

from artifacts_schema.errors import CorruptArtifact, InputError
from artifacts_schema.kinds import KINDS
from stages.long_context.config import QUESTIONS, Family, LongContextConfig
from stages.long_context.families import (
    EXAMPLE_TOKENS,
    NIAH,
    Draws,
    Problem,
    Setting,
    answer_tokens,
    has_depth,
    least_size,
    make_problem,
    solved_variables,
)
from stages.long_context.questions import (
    CANDIDATES,
    QuestionSet,
    question_problem,
    read_questions,
    wrong_answers,
)
from stages.text.draw import draw

if TYPE_CHECKING:
    from stages.engine import Input, ShardOutput

CLOZE, FREE = "cloze", "free"
LONGEST_SENTENCE = 400
"""Characters; longer ones are no sentences, and would make lengths coarse."""
LETTERS_OF_TOKEN = 6
"""Characters that a token of a haystack has at most, for how many documents are read."""
ATTEMPTS = 20
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*")
_ITEMS_OF_PART = 20


@dataclass(frozen=True)
class Part:
    """Some items of one family and length; what a run that is killed makes again."""

    family: Family
    length: int
    start: int
    stop: int

    @property
    def id(self) -> str:
        """Its place among all, for the shard map and the table's file."""
        return f"{benchmark_name(self.family, self.length)}-{self.start:06d}"


def benchmark_name(family: Family, length: int) -> str:
    """Items of one family and length are a benchmark: `niah_single_1-4096`."""
    return f"{family}-{length}"


def list_parts(config: LongContextConfig) -> list[Part]:
    """The parts of all families and lengths, in the order of the config."""
    return [
        Part(family, length, start, min(start + _ITEMS_OF_PART, config.items))
        for family in config.families
        for length in config.lengths
        for start in range(0, config.items, _ITEMS_OF_PART)
    ]


def prepare_questions(
    family: Family, rows: Input, source: Input, config: LongContextConfig
) -> QuestionSet:
    """Questions of a family, and which of them the items of each length are made of.

    InputError where fewer fit into a length than there are items, or answers are too few to rank.
    """
    characters = 2 * LETTERS_OF_TOKEN * max(config.lengths)
    candidates = CANDIDATES * config.items
    questions = read_questions(rows).draw((config.seed, family), candidates, characters)
    fewest = min(len(wrong_answers(questions.questions, one)) for one in questions.questions)
    if fewest < config.choices - 1:
        raise InputError(
            f"a question of {family} has {fewest} wrong answers, {config.choices - 1} are needed",
            where=f"long_context.{family}",
            hint="lower `choices`, or give more rows",
        )
    counter, room = TokenCounter.read(source), config.answer_tokens or answer_tokens(family)
    chosen = {}
    for length in config.lengths:
        fitting = (
            place
            for place, one in enumerate(questions.questions)
            if counter.item(_ask(questions, place, len(one.own), family, length, config), room)
            <= length
        )
        chosen[length] = tuple(islice(fitting, config.items))
        if len(chosen[length]) < config.items:
            raise InputError(
                f"{len(chosen[length]):,} of {len(questions.questions):,} questions of {family} "
                f"fit into {length:,} tokens with their own documents, {config.items:,} are needed",
                where=f"long_context.{family}",
                hint="give more rows, lower `items`, or raise the length",
            )
    return replace(questions, chosen=chosen)


def _ask(
    questions: QuestionSet,
    place: int,
    size: int,
    family: Family,
    length: int,
    config: LongContextConfig,
) -> Problem:
    """The question at a place on so many documents; its draws follow from its name."""
    draws = Draws(config.seed, family, length, questions.questions[place].name)
    return question_problem(questions, place, draws, size, Setting(length, None, config.choices))


def describe_tasks(config: LongContextConfig) -> list[dict[str, Any]]:
    """Entries of `tasks.json`: how written answers are ended and judged."""
    return [
        {
            "name": benchmark_name(family, length),
            "version": 1,
            "description": f"{family} of RULER at {length:,} tokens.",
            "licence": None if family in QUESTIONS else "Apache-2.0",
            "source": "https://github.com/NVIDIA/RULER",
            "chat": False,
            "formulations": {
                CLOZE: {},
                FREE: {
                    "stop": [],
                    "max_new_tokens": config.answer_tokens or answer_tokens(family),
                    "samples": 1,
                    "temperature": 0.0,
                    "extraction": [],
                    "metric": "string_match_part" if family in QUESTIONS else "string_match_all",
                    "normalise": {},
                },
            },
        }
        for family in config.families
        for length in config.lengths
    ]


# Haystacks of documents


def read_sentences(documents: Sequence[Input], tokens: int, seed: int) -> tuple[str, ...]:
    """Sentences of drawn documents, in their order, about as many as so many tokens need.

    InputError where the documents hold none.
    """
    shards = [shard for one in documents for shard in one.shards()]
    wanted = LETTERS_OF_TOKEN * tokens
    total = sum(shard.input.size for shard in shards) or 1  # Compressed: the draw is too large.
    sentences: list[str] = []
    for share in (min(1.0, 4 * wanted / total), 1.0):
        for shard in shards:
            for group in shard.row_groups(["doc_id", "text"]):
                for row in group.to_pylist():
                    if draw(row["doc_id"], f"long context {seed}") < share:
                        sentences += split_sentences(row["text"])
                if sum(map(len, sentences)) >= wanted:
                    return tuple(sentences)
        if share == 1.0:
            break
        sentences.clear()
    if not sentences:
        raise InputError(
            f"no sentence of at most {LONGEST_SENTENCE} characters in the documents",
            where="long_context: documents",
            hint="give documents of prose, or none: then the haystack is noise",
        )
    return tuple(sentences)


def split_sentences(text: str) -> list[str]:
    """Sentences with single spaces, without those that are too long."""
    parts = _SENTENCE_END.split(" ".join(text.split()))
    return [one for one in parts if 0 < len(one) <= LONGEST_SENTENCE]


# Lengths in tokens


@dataclass(frozen=True)
class TokenCounter:
    """Counts tokens as an evaluation sees them: special tokens in a text are ordinary text."""

    tokenizer: Tokenizer

    @classmethod
    def read(cls, source: Input) -> TokenCounter:
        """That of a tokenizer or a checkpoint."""
        raw = source.read_bytes("tokenizer.json")
        try:
            tokenizer = Tokenizer.from_str(raw.decode("utf-8"))
        except Exception as error:  # `tokenizers` raises bare Exception for what it cannot parse.
            where = f"{source.kind} {source.key[:12]}/tokenizer.json"
            raise CorruptArtifact(f"not a tokenizer: {error}", where=where) from None
        tokenizer.encode_special_tokens = True
        return cls(tokenizer)

    def count(self, text: str) -> int:
        """Tokens of a text alone."""
        return len(self.tokenizer.encode(text, add_special_tokens=False))

    def item(self, problem: Problem, room: int) -> int:
        """Tokens of an item: one that begins it, its prompt, and room for the longest answer."""
        longest = max(map(self.count, problem.choices))
        return 1 + self.count(problem.prompt) + max(room, longest)


def largest_size(count: Callable[[int], int], least: int, most: int) -> int | None:
    """A size with at most `most` tokens, where the next one has more; None if `least` has more.

    Tokens grow about evenly with the size, so the next guess lies on a line between the bounds.
    """
    low, low_tokens = least, count(least)
    first_tokens = low_tokens
    if low_tokens > most:
        return None
    high, high_tokens = 2 * least + 1, count(2 * least + 1)
    while high_tokens <= most:
        low, low_tokens = high, high_tokens
        slope = max(high_tokens - first_tokens, 1) / (high - least)
        high = low + max(1, int(1.02 * (most - low_tokens) / slope) + 1)
        high_tokens = count(high)
    while high - low > 1:
        share = (most - low_tokens) / max(high_tokens - low_tokens, 1)
        guess = min(high - 1, max(low + 1, low + int(share * (high - low))))
        tokens = count(guess)
        if tokens <= most:
            low, low_tokens = guess, tokens
        else:
            high, high_tokens = guess, tokens
    return low


# Items


def make_items(
    part: Part,
    out: ShardOutput,
    *,
    source: Input,
    sentences: tuple[str, ...],
    questions: Mapping[str, QuestionSet],
    config: LongContextConfig,
) -> dict[str, Any]:
    """Write the items of a part."""
    counter = TokenCounter.read(source)
    schema = KINDS["benchmarks"].tables["*.parquet"].arrow()
    rows = []
    for number in range(part.start, part.stop):
        out.check_stop()
        if part.family in questions:
            question_set = questions[part.family]
            row = make_question_item(
                part.family, part.length, number, counter, question_set, config
            )
        else:
            row = make_item(part.family, part.length, number, counter, sentences, config)
        rows.append(row)
    out.write_table("benchmarks", f"{part.id}.parquet", pa.Table.from_pylist(rows, schema=schema))
    return {"items": len(rows), "tokens": sum(_tokens(row) for row in rows)}


def _tokens(row: dict[str, Any]) -> int:
    return int(json.loads(row["metadata"])["tokens"])


def make_item(
    family: Family,
    length: int,
    number: int,
    counter: TokenCounter,
    sentences: tuple[str, ...],
    config: LongContextConfig,
) -> dict[str, Any]:
    """A row of `benchmarks`. InputError if the length is too short for the family."""
    depth = config.depths[number % len(config.depths)] if has_depth(family) else None
    room = config.answer_tokens or answer_tokens(family)
    setting = Setting(length, depth, config.choices, sentences)
    if family == "vt":
        setting = replace(setting, example=_solved_example(length, number, counter, config))
    for attempt in _attempts(family, length):
        name = (config.seed, family, length, number, attempt)
        problem, size = _fitting(family, name, length, room, counter, setting)
        if all(problem.prompt.count(one) == 1 for one in problem.references) or family not in NIAH:
            break
    uses_documents = family in NIAH and NIAH[family].haystack == "documents" and bool(sentences)
    own = NIAH[family].haystack if family in NIAH else {"vt": "noise"}.get(family, "words")
    haystack = own if own != "documents" or uses_documents else "noise"
    metadata = {
        "family": family,
        "length": length,
        "depth": depth,
        "tokens": counter.item(problem, room),
        "haystack": haystack,
        "size": size,
    }
    return _row(problem, number, metadata)


def make_question_item(
    family: Family,
    length: int,
    number: int,
    counter: TokenCounter,
    questions: QuestionSet,
    config: LongContextConfig,
) -> dict[str, Any]:
    """A row of `benchmarks`. InputError if all documents together are shorter than the length."""
    place = questions.chosen[length][number]
    room, most = config.answer_tokens or answer_tokens(family), len(questions.documents)

    def ask(size: int) -> Problem:
        return _ask(questions, place, size, family, length, config)

    def tokens(size: int) -> int:
        return length + size if size > most else counter.item(ask(size), room)

    size = largest_size(tokens, len(questions.questions[place].own), length)
    assert size is not None, "a question is chosen where its own documents fit"
    problem = ask(size)
    if size == most:
        raise InputError(
            f"all {most:,} documents of {family} have {tokens(most):,} tokens, the length is "
            f"{length:,}",
            where=f"long_context.{family}",
            hint="give more rows, or lower the length",
        )
    metadata = {
        "family": family,
        "length": length,
        "depth": None,
        "tokens": counter.item(problem, room),
        "haystack": "rows",
        "size": size,
        "question": questions.questions[place].name,
    }
    return _row(problem, number, metadata)


def _row(problem: Problem, number: int, metadata: Mapping[str, Any]) -> dict[str, Any]:
    requests = [
        {
            "formulation": formulation,
            "shots": 0,
            "prompt": problem.prompt,
            "contexts": [],
            "choices": list(problem.choices) if formulation == CLOZE else [],
            "references": list(problem.references) if formulation == FREE else [],
        }
        for formulation in (CLOZE, FREE)
    ]
    return {
        "benchmark": benchmark_name(metadata["family"], metadata["length"]),
        "item_id": f"{number:06d}",
        "form": "multiple_choice",
        "prompt": problem.question,
        "choices": list(problem.choices),
        "answer": problem.answer,
        "requests": requests,
        "metadata": json.dumps(metadata, sort_keys=True),
    }


def _attempts(family: Family, length: int) -> Iterator[int]:
    """Numbers of draws: a text of the user's may hold a number that is hidden in it."""
    yield from range(ATTEMPTS)
    raise InputError(
        f"{ATTEMPTS} draws gave values that the documents hold as well",
        where=f"{family} at {length:,} tokens",
        hint="give other documents",
    )


def _fitting(
    family: Family,
    name: tuple[object, ...],
    length: int,
    room: int,
    counter: TokenCounter,
    setting: Setting,
) -> tuple[Problem, int]:
    def tokens(size: int) -> int:
        return counter.item(make_problem(family, Draws(*name), size, setting), room)

    least = least_size(family, setting.choices)
    size = largest_size(tokens, least, length)
    if size is None:
        raise InputError(
            f"the shortest item of {family} has {tokens(least):,} tokens, the length is {length:,}",
            where="long_context.lengths",
            hint=f"leave {family} out of `families`, raise the length, or lower `answer_tokens`",
        )
    return make_problem(family, Draws(*name), size, setting), size


def _solved_example(
    length: int, number: int, counter: TokenCounter, config: LongContextConfig
) -> str:
    """Put before an item of `vt`, as RULER does."""
    name = (config.seed, "vt example", length, number)
    most = min(EXAMPLE_TOKENS, length // 2)
    least = least_size("vt", 2)

    def solved(size: int) -> str:
        return solved_variables(Draws(*name), size)

    size = largest_size(lambda size: counter.count(solved(size)), least, most)
    return solved(least if size is None else size)
