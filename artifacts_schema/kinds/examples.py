"""Kinds of examples: conversations, preference pairs, benchmarks, planted defects."""

from __future__ import annotations

from artifacts_schema.kinds.documents import METADATA
from artifacts_schema.kinds.schema import Column, Kind, make_table

TOOL_CALLS = "list<struct<id: string?, name: string, arguments: string>>"

MESSAGES = (
    f"list<struct<role: string, content: string, reasoning: string?, tool_calls: {TOOL_CALLS}, "
    "tool_call_id: string?, name: string?, weight: float64?>>"
)
"""Content is '' where an assistant only calls tools; `arguments` is JSON text; a null weight is the
default of the stage that trains."""

DATA_SET = Column("source", "string", "Name of the data set.")
TASKS_FILE = (
    "The tasks that items came from, as resolved plain data: name, version, licence, source, "
    "formulations, chat; an empty list where rows came without a task."
)
TOOLS = Column("tools", "string?", "JSON text of the tools' definitions, where the row has any.")

EXAMPLE_KINDS = (
    Kind(
        name="conversations",
        version=2,
        description="Instruction data: one conversation a row, ending with an assistant message.",
        tables={
            "*.parquet": make_table(
                Column("conversation_id", "string", "32 hex digits: hash of snapshot, file, line."),
                DATA_SET,
                Column("messages", MESSAGES, "Roles system, user, assistant, tool, in order."),
                TOOLS,
                METADATA,
            )
        },
    ),
    Kind(
        name="preferences",
        version=3,
        description="Preference pairs: a prompt, the better and the worse answer; or one answer "
        "that is good or bad, which versions 1 and 2 have not.",
        tables={
            "*.parquet": make_table(
                Column("preference_id", "string", "32 hex digits: hash of snapshot, file, line."),
                DATA_SET,
                Column(
                    "prompt",
                    MESSAGES,
                    "Messages before the answers; the last is the user's or a tool's.",
                ),
                Column(
                    "chosen",
                    MESSAGES,
                    "The preferred answer: the assistant's, and tools'; empty where the row is one "
                    "undesirable answer.",
                ),
                Column(
                    "rejected",
                    MESSAGES,
                    "The other answer; empty where the row is one desirable answer.",
                ),
                TOOLS,
                METADATA,
            )
        },
    ),
    Kind(
        name="benchmarks",
        version=2,
        description="Evaluation items of several forms under benchmark names.",
        tables={
            "*.parquet": make_table(
                Column("benchmark", "string", "Name of the benchmark the item belongs to."),
                Column("item_id", "string", "Identifier, unique within the benchmark."),
                Column(
                    "form",
                    "string",
                    "`multiple_choice`, `text` (bits per byte of `prompt`), `question` (asked in "
                    "the chat format) or `free` (has free requests alone).",
                ),
                Column("prompt", "string", "Context shown before the choices, text, or question."),
                Column(
                    "choices",
                    "list<string>",
                    "Continuations to rank; of a `question` what its answer should name; empty for "
                    "`text` and `free`.",
                ),
                Column("answer", "int32?", "Index of the right choice."),
                Column(
                    "requests",
                    "list<struct<formulation: string, shots: int32, prompt: string, "
                    "choices: list<string>, references: list<string>, contexts: list<string>>>",
                    "How the item is put to a model; empty: `prompt` and `choices` as they are. "
                    "A choice is scored after the prompt and, where there are `contexts`, after "
                    "that of its place; `references` are right answers of `free`.",
                ),
                METADATA,
            )
        },
        files={"tasks.json": TASKS_FILE},
    ),
    Kind(
        name="truth",
        description="Planted defects of a made corpus, to measure what a pipeline catches and "
        "misses.",
        tables={
            "*.parquet": make_table(
                Column(
                    "defect", "string", "near_duplicate, boilerplate, garbled, personal_data, …"
                ),
                Column("doc_id", "string", "The document (or broken record) that carries it."),
                Column(
                    "partner", "string?", "doc_id of the original of a copy; item_id of a leak."
                ),
                Column("url", "string?", "Its address."),
                Column("count", "int32", "Occurrences in the document (addresses to redact, …)."),
                Column("detail", "string", "What was planted."),
            )
        },
    ),
)
