"""Answers to the prompts of a collection, by the generation service, kept as they come.

Prompts are answered in parts of a fixed size, each by one call: what shares a pass bears on the
last digits of a logit. So a collection that was killed and continued has the same bytes as one that
was not, on the same machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError
from flows.collecting.collection import ANSWERS, Collection
from flows.collecting.lines import DurableLines
from flows.collecting.prompts import Prompt, plain_messages
from stages.scoring.generation import Sampling

if TYPE_CHECKING:
    from flows.analysis.chat import LanguageModel

PART = 8
"""Prompts of a call."""


def sample_answers(
    collection: Collection,
    model: LanguageModel,
    prompts: Sequence[Prompt],
    progress: Callable[[int, int], None],
) -> None:
    """Write the answers that are missing; `progress` gets prompts that are done, and all.

    A prompt is excluded, with a reason, if it and an answer exceed the context (`too_long`), it
    spells a special token of a template that would make it one (`special_token`), or the template
    cannot write it (`not_rendered`).
    """
    with DurableLines(collection.folder / ANSWERS) as lines:
        start = len(lines.rows) - len(lines.rows) % PART
        for first in range(start, len(prompts), PART):
            rows = _answer_part(collection, model, prompts[first : first + PART], first)
            lines.append(*rows[len(lines.rows) - first :])
            progress(len(lines.rows), len(prompts))


def _answer_part(
    collection: Collection, model: LanguageModel, prompts: Sequence[Prompt], first: int
) -> list[dict[str, Any]]:
    """A line for each prompt; draws follow from the part and from the place in it."""
    settings = collection.settings
    sampling = Sampling(settings.temperature, settings.top_p, settings.seed)
    encoded = [_encode(model, prompt, settings.max_tokens) for prompt in prompts]
    written = model.write_many(
        [ids for ids in encoded if not isinstance(ids, str)],
        sampling,
        settings.max_tokens,
        samples=settings.answers,
        first_number=first,
    )
    answers: list[list[dict[str, Any]]] = [[] for _ in prompts]
    places = [place for place, ids in enumerate(encoded) if not isinstance(ids, str)]
    for one in written:
        answers[places[one.prompt - first]].append(
            {"text": one.text, "ending": one.ending, "tokens": len(one.ids)}
        )
    return [
        {
            "prompt": prompt.id,
            "messages": prompt.messages,
            "tools": prompt.tools,
            "answers": answers[place],
            "excluded": ids if isinstance(ids, str) else None,
        }
        for place, (prompt, ids) in enumerate(zip(prompts, encoded, strict=True))
    ]


def _encode(model: LanguageModel, prompt: Prompt, max_tokens: int) -> list[int] | str:
    """The prompt's ids, or why it has none."""
    messages = plain_messages(prompt.messages)
    if model.spelled_token(messages):
        return "special_token"
    try:
        ids = model.encode_chat(messages, prompt.tools)
    except InputError:
        return "not_rendered"
    return ids if len(ids) + max_tokens <= model.context else "too_long"
