"""Conversations longer than a model's context, with a model that counts words as tokens."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from flows.analysis.chat import Conversation


@dataclass
class WordModel:
    """A token for each word; it answers with `answer`, a word at a time."""

    context: int = 20
    answer: tuple[str, ...] = ("yes ", "sir")
    seen: list[list[str]] = field(default_factory=list)

    def encode_chat(self, messages):
        return [word for one in messages for word in one["content"].split()]

    def write(self, ids, sampling, max_new_tokens):
        self.seen.append(ids)
        yield from self.answer[:max_new_tokens]


def talk(model, *texts, system=None, most=4):
    conversation = Conversation(model, None, most)
    if system:
        conversation.messages.append({"role": "system", "content": system})
    for text in texts:
        list(conversation.ask(text))
    return conversation


def test_every_turn_is_seen_while_all_fit():
    model = WordModel()
    conversation = talk(model, "a b", "c d", system="s")
    assert model.seen[-1] == ["s", "a", "b", "yes", "sir", "c", "d"]
    assert conversation.skipped == 0
    assert [one["role"] for one in conversation.messages[1:]] == ["user", "assistant"] * 2


def test_the_oldest_turns_go_first_and_the_system_message_stays():
    """16 of 20 tokens are for the prompt: of 3 turns of 8 and 2, the last and the one before."""
    model = WordModel()
    conversation = talk(model, "a " * 8, "b " * 8, "c " * 3, system="s")
    assert model.seen[1] == ["s", *"bbbbbbbb"]
    assert model.seen[2] == ["s", *"bbbbbbbb", "yes", "sir", *"ccc"]
    assert conversation.skipped == 2


def test_a_question_longer_than_the_context_is_still_asked():
    model = WordModel()
    assert talk(model, "a", "b " * 50).skipped == 2
    assert len(model.seen[-1]) == 50


def test_room_for_an_answer_is_half_the_context_at_most():
    model = WordModel()
    talk(model, "a " * 4, "b " * 4, most=1000)
    assert len(model.seen[-1]) == 10  # All three messages: 4 + 2 + 4.


def test_an_answer_that_was_cut_counts_as_said():
    conversation = Conversation(WordModel(), None, 4)
    answer = conversation.ask("a")
    next(answer)
    answer.close()
    assert conversation.messages[-1] == {"role": "assistant", "content": "yes "}


@pytest.mark.parametrize("most", [1, 2])
def test_an_answer_has_at_most_so_many_tokens(most):
    conversation = talk(WordModel(), "a", most=most)
    assert conversation.messages[-1]["content"] == "".join(("yes ", "sir")[:most])
