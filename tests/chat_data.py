"""Conversations and preference pairs by hand, for tests of what is decided about them."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]

MAIL = "anna.lindqvist@proton-post.se"
QUESTION = "Which of these seven planets is the largest one that orbits our own sun today?"
SHORT = "Name the largest moon of the planet Saturn now"


def message(role: str, content: str, **fields: Any) -> Row:
    absent = dict.fromkeys(("reasoning", "tool_call_id", "name", "weight"))
    return {"role": role, "content": content, **absent, "tool_calls": [], **fields}


def call(arguments: str) -> Row:
    return {"id": "c1", "name": "send", "arguments": arguments}


def conversation(name: str, *messages: Row, source: str = "talks", tools: str | None = None) -> Row:
    return {
        "conversation_id": name,
        "source": source,
        "messages": list(messages),
        "tools": tools,
        "metadata": "{}",
    }


def preference(name: str, prompt: str, chosen: str, rejected: str, source: str = "pairs") -> Row:
    return {
        "preference_id": name,
        "source": source,
        "prompt": [message("user", prompt)],
        "chosen": [message("assistant", chosen)],
        "rejected": [message("assistant", rejected)],
        "tools": None,
        "metadata": "{}",
    }


TALKS = [
    conversation(
        "mails",
        message("user", f"Write to {MAIL} for me, please, and to nobody else at all."),
        message(
            "assistant",
            "",
            reasoning=f"The address is {MAIL} as was said.",
            tool_calls=[call(f'{{"to":  ["{MAIL}"], "text": "Hi\\n\\u00e9", "n": 1.50}}')],
        ),
        message("tool", '{"sent": true}', tool_call_id="c1", name="send"),
        message("assistant", "It was sent to the address that you named.", weight=0.5),
    ),
    conversation(
        "leak",
        message("system", "You answer questions in few words."),
        message("user", QUESTION),
        message("assistant", "Jupiter."),
    ),
    conversation("short", message("user", f"{SHORT}?"), message("assistant", "Titan")),
    conversation("plain", message("user", "How do I bake bread?"), message("assistant", "Slowly.")),
    conversation("gone", message("user", "What is a verb?"), message("assistant", "A word.")),
]
PAIRS = [
    preference("better", "Who wrote it?", f"Ask {MAIL} about this.", "I do not know it."),
    preference("leaked", f"Tell me: {QUESTION}", "It is Jupiter.", "It is Mars, I believe."),
    preference("good", "Say hello to me.", "Hello to you.", "No."),
]
ITEMS = [
    {
        "benchmark": "exam",
        "item_id": name,
        "form": "multiple_choice",
        "prompt": prompt,
        "choices": choices,
        "answer": 1,
        "metadata": "{}",
    }
    for name, prompt, choices in (
        ("planets", QUESTION, ["Mars", "Jupiter"]),
        ("moon", SHORT, ["Rhea", "Titan"]),
    )
]
