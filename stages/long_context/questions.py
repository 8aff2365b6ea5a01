"""RULER's families of questions on documents, `qa_1` and `qa_2`, made of rows of the user's.

Rows have SQuAD's shape (a paragraph, questions on it) or HotpotQA's (a question on ten paragraphs).
A prompt holds the documents of its question and, as distractors, other documents of the same rows:
those of the same article first, as RULER takes them (NVIDIA/RULER, scripts/data/synthetic/qa.py, at
c3f5e3b, Apache-2.0). What differs: every draw follows from the seed, and each item has answers to
other questions as wrong choices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError
from stages.long_context.families import Draws, Problem, Setting, rank

if TYPE_CHECKING:
    from stages.engine import Input

CANDIDATES = 5
"""Questions drawn for each item: those whose own documents are too long for a length are left."""
_INSTRUCTION = (
    "Answer the question based on the given documents. Only give me the answer and do not output "
    "any other words.\n\n"
)
_BEGIN = _INSTRUCTION + "The following are given documents.\n\n{context}\n\n" + _INSTRUCTION
_END = "Question: {query} Answer:"
_DOCUMENT = "Document {number}:\n{text}"

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Question:
    """A question with its right answers, the numbers of its documents (`own`) and of those of the
    same article (`near`)."""

    name: str
    text: str
    answers: tuple[str, ...]
    own: tuple[int, ...]
    near: tuple[int, ...] = ()


@dataclass(frozen=True)
class QuestionSet:
    """Questions in the order in which they are tried, and all documents.

    `chosen` has, for each length, the places of the questions that its items are made of.
    """

    questions: tuple[Question, ...]
    documents: tuple[str, ...]
    chosen: Mapping[int, tuple[int, ...]]

    def draw(self, seed: object, count: int, characters: int) -> QuestionSet:
        """So many questions, their documents, and others up to so many characters in all."""
        draws = Draws(seed, "questions")
        questions = draws.sample(self.questions, min(count, len(self.questions)))
        kept = dict.fromkeys(n for one in questions for n in (*one.own, *one.near))
        size = sum(len(self.documents[number]) for number in kept)
        for number in draws.sample(range(len(self.documents)), len(self.documents)):
            if size >= characters:
                break
            if number not in kept:
                kept[number] = None
                size += len(self.documents[number])
        order = sorted(kept)
        place = {number: new for new, number in enumerate(order)}
        return QuestionSet(
            tuple(
                replace(
                    one,
                    own=tuple(place[n] for n in one.own),
                    near=tuple(place[n] for n in one.near),
                )
                for one in questions
            ),
            tuple(self.documents[number] for number in order),
            {},
        )


# Rows


@dataclass(frozen=True)
class _RowQuestion:
    """A question of a row, its documents, and the article that they are of."""

    name: str
    text: str
    answers: tuple[str, ...]
    documents: tuple[str, ...]
    article: str | None


def read_questions(source: Input) -> QuestionSet:
    """The questions of a snapshot that have an answer, and its documents, sorted and distinct.

    InputError for a row of another shape, by its name, and where no question has an answer.
    """
    from stages.engine.reading.rows import read_rows
    from stages.engine.sources import snapshot_name, source_files

    pending: list[_RowQuestion] = []
    documents: dict[str, None] = {}
    articles: dict[str, dict[str, None]] = {}
    for file in source_files(source):
        for row in read_rows(file):
            where = f"{file.name}:{row.record}"
            if row.value is None:
                raise InputError(f"{row.reason}: {row.detail}", where=where)
            for text, article in row_documents(row.value, where):
                documents[text] = None
                if article is not None:
                    articles.setdefault(article, {})[text] = None
            pending += row_questions(row.value, where)
    if not pending:
        raise InputError(
            "no question has an answer",
            where=f"snapshot '{snapshot_name(source)}'",
            hint="rows of SQuAD or HotpotQA; questions that are called impossible are left out",
        )
    ordered = sorted(documents)
    place = {text: number for number, text in enumerate(ordered)}
    questions = []
    for one in pending:
        own = tuple(place[text] for text in one.documents)
        article_texts = articles.get(one.article, {}) if one.article is not None else {}
        near = tuple(place[text] for text in article_texts if place[text] not in own)
        questions.append(Question(one.name, one.text, one.answers, own, near))
    return QuestionSet(tuple(questions), tuple(ordered), {})


def row_documents(row: Row, where: str) -> Iterator[tuple[str, str | None]]:
    """The documents of a row, each with its article if it has others. InputError: see `_shape`."""
    shape = _shape(row, where)
    if shape == "article":
        yield from ((one["context"], row.get("title") or where) for one in row["paragraphs"])
    elif shape == "squad":
        yield row["context"], row.get("title")
    else:
        yield from ((text, None) for text in _paragraphs(row["context"]))


def row_questions(row: Row, where: str) -> list[_RowQuestion]:
    """The questions of a row that have an answer. InputError: see `_shape`."""
    shape = _shape(row, where)
    rows: list[tuple[Row, tuple[str, ...], str | None, str]]
    if shape == "article":
        article = row.get("title") or where
        pairs = [(qa, one["context"]) for one in row["paragraphs"] for qa in one["qas"]]
        rows = [(qa, (text,), article, f"{where}-{n}") for n, (qa, text) in enumerate(pairs)]
    elif shape == "squad":
        rows = [(row, (row["context"],), row.get("title"), where)]
    else:
        rows = [(row, tuple(dict.fromkeys(_paragraphs(row["context"]))), None, where)]
    questions = []
    for qa, documents, article, place in rows:
        answers = _answers(qa)
        if answers:
            name = str(qa.get("id") or qa.get("_id") or place)
            questions.append(_RowQuestion(name, qa["question"], answers, documents, article))
    return questions


def _shape(row: Row, where: str) -> str:
    """`article` (SQuAD's own file), `squad` (a row a question) or `hotpotqa`. InputError: none."""
    try:
        if all(isinstance(qa["question"], str) for p in row["paragraphs"] for qa in p["qas"]):
            return "article"
    except (KeyError, TypeError):
        pass  # Another shape, or none of them, which is an error below.
    context, has_question = row.get("context"), isinstance(row.get("question"), str)
    if has_question and isinstance(context, str):
        return "squad"
    try:
        if has_question and _paragraphs(context):
            return "hotpotqa"
    except (KeyError, TypeError, ValueError):
        pass
    raise InputError(
        f"no row of SQuAD or HotpotQA; its fields are {', '.join(sorted(map(str, row)))[:200]}",
        where=where,
        hint="give `question`, `context` (a text, or paragraphs with titles) and `answers`",
    )


def _paragraphs(context: Any) -> list[str]:
    """Title and sentences of each, as RULER joins them; pairs, or columns as on the Hub."""
    if isinstance(context, Mapping):
        context = list(zip(context["title"], context["sentences"], strict=True))
    return [f"{title}\n{''.join(sentences)}" for title, sentences in context]


def _answers(qa: Row) -> tuple[str, ...]:
    """Distinct answers; none where the question is called impossible."""
    if qa.get("is_impossible"):
        return ()
    answers = qa.get("answers") or qa.get("answer") or ()
    if isinstance(answers, Mapping):
        answers = answers.get("text") or ()
    texts = [answers] if isinstance(answers, str) else list(answers)
    plain = (one.get("text", "") if isinstance(one, Mapping) else str(one) for one in texts)
    return tuple(dict.fromkeys(text.strip() for text in plain if text.strip()))


# Problems


def question_problem(
    questions: QuestionSet, place: int, draws: Draws, size: int, setting: Setting
) -> Problem:
    """The question at a place of the set, on `size` documents in random order."""
    one = questions.questions[place]
    wrong = draws.sample(wrong_answers(questions.questions, one), setting.choices - 1)
    choices, answer = rank(draws, f" {one.answers[0]}", [f" {text}" for text in wrong])
    more = size - len(one.own)
    chosen = [*one.own, *draws.sample(one.near, min(more, len(one.near)))]
    if more > len(one.near):
        taken = {*one.own, *one.near}
        far = [n for n in range(len(questions.documents)) if n not in taken]
        chosen += draws.sample(far, more - len(one.near))
    shuffled = [questions.documents[number] for number in draws.sample(chosen, len(chosen))]
    prompt, question = render(shuffled, one.text)
    return Problem(prompt, question, one.answers, choices, answer)


def render(documents: Sequence[str], query: str) -> tuple[str, str]:
    """RULER's prompt up to where the answer begins, and its end alone."""
    context = "\n\n".join(
        _DOCUMENT.format(number=number, text=text) for number, text in enumerate(documents, 1)
    )
    question = _END.format(query=query)
    return _BEGIN.format(context=context) + question, question


def wrong_answers(questions: Iterable[Question], one: Question) -> list[str]:
    """First answers to other questions, each once, that are no answer to this one."""
    right = {answer.casefold() for answer in one.answers}
    others = {other.answers[0].casefold(): other.answers[0] for other in questions}
    return [text for plain, text in others.items() if plain not in right]
