"""Conversations and preference pairs from docstrings of modules that are held out for them."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

from stages.sample.harvest import Entry, Module
from stages.sample.quizzes import summary

QUESTIONS = (
    "What does `{name}` do?",
    "Explain `{name}` from Python's `{module}` module.",
    "I am reading code that uses `{name}`. What is it for?",
    "In a few words, what is `{name}`?",
    "Describe the {kind} `{short}` of the module `{module}`.",
    "How would you document `{name}`?",
    "Can you tell me what the {kind} `{name}` is good for?",
)
FOLLOW_UPS = ("How is it called?", "What is its signature?", "Which arguments does it take?")
MORE = ("Is there more to know?", "Please go on.", "Tell me more.")
SYSTEM = "You explain Python's standard library briefly and correctly."

Message = dict[str, str]


def taught(modules: Sequence[Module]) -> list[Entry]:
    """Entries with something to tell, each summary once, in the order of the modules."""
    entries, seen = [], set[str]()
    for module in modules:
        for entry in module.entries:
            text = summary(entry.doc)
            if len(text.split()) >= 4 and text not in seen:
                seen.add(text)
                entries.append(entry)
    return entries


def conversations(modules: Sequence[Module], seed: int) -> list[dict[str, Any]]:
    """One conversation an entry: a question and its answer, often with a second turn."""
    return [{"messages": _conversation(entry, seed)} for entry in taught(modules)]


def _conversation(entry: Entry, seed: int) -> list[Message]:
    rng = random.Random(f"{seed}/conversation/{entry.module}.{entry.name}")
    messages = [_message("system", SYSTEM)] if rng.random() < 0.1 else []
    messages += [_message("user", question(entry, rng)), _message("assistant", summary(entry.doc))]
    rest = re.split(r"\n\s*\n", entry.doc.strip())[1:]
    if rest and rng.random() < 0.4:
        messages += [_message("user", rng.choice(MORE)), _message("assistant", rest[0].rstrip())]
    if entry.signature != "(...)" and rng.random() < 0.3:
        call = f"`{entry.module}.{entry.name}{entry.signature}`"
        messages += [_message("user", rng.choice(FOLLOW_UPS)), _message("assistant", call)]
    return messages


def preferences(modules: Sequence[Module], seed: int) -> list[dict[str, Any]]:
    """One pair an entry: the right summary, and a wrong, cut or repeating one."""
    entries = taught(modules)
    pairs = []
    for n, entry in enumerate(entries):
        rng = random.Random(f"{seed}/preference/{entry.module}.{entry.name}")
        chosen = summary(entry.doc)
        wrong = summary(entries[(n + rng.randrange(1, len(entries))) % len(entries)].doc)
        prompt = [_message("user", question(entry, rng))]
        rejected = _worse(chosen, wrong, ("wrong", "cut", "repeating")[n % 3])
        pairs.append({"prompt": prompt, "chosen": chosen, "rejected": rejected})
    return pairs


def _worse(chosen: str, wrong: str, manner: str) -> str:
    words = chosen.split()
    if manner == "cut":
        return " ".join(words[: max(1, len(words) // 3)])
    if manner == "repeating":
        return " ".join([chosen] * 3)
    return wrong


def question(entry: Entry, rng: random.Random) -> str:
    """A question about an entry, in one of several forms."""
    return rng.choice(QUESTIONS).format(
        name=f"{entry.module}.{entry.name}",
        short=entry.name,
        module=entry.module,
        kind=entry.kind,
    )


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}
