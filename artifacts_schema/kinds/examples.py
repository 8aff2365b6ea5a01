"""What models are taught and asked: conversations, preferences, benchmarks; and planted truth."""

from artifacts_schema.kinds.schema import Column, Kind, Table

TOOL_CALLS = "list<struct<id: string?, name: string, arguments: string>>"
MESSAGES = (
    f"list<struct<role: string, content: string, reasoning: string?, tool_calls: {TOOL_CALLS}, "
    "tool_call_id: string?, name: string?, weight: float64?>>"
)
"""Content is '' where an assistant only calls tools; `arguments` is JSON text; a null weight is the
default of the stage that trains."""
TOOLS = Column("tools", "string?", "JSON text of the tools' definitions, where the row has any.")

CONVERSATIONS = Kind(
    name="conversations",
    version=2,
    description="Instruction data: one conversation a row, ending with an assistant message.",
    tables={
        "*.parquet": Table(
            (
                Column("conversation_id", "string", "32 hex digits: hash of snapshot, file, line."),
                Column("source", "string", "Name of the data set."),
                Column("messages", MESSAGES, "Roles system, user, assistant, tool, in order."),
                TOOLS,
                Column("metadata", "string", "JSON object with what else the reader kept."),
            )
        )
    },
)

PREFERENCES = Kind(
    name="preferences",
    version=2,
    description="Preference pairs: a prompt, the better and the worse answer.",
    tables={
        "*.parquet": Table(
            (
                Column("preference_id", "string", "32 hex digits: hash of snapshot, file, line."),
                Column("source", "string", "Name of the data set."),
                Column(
                    "prompt",
                    MESSAGES,
                    "Messages before the answers; the last is the user's or a tool's.",
                ),
                Column("chosen", MESSAGES, "The preferred answer: the assistant's, and tools'."),
                Column("rejected", MESSAGES, "The other answer."),
                TOOLS,
                Column("metadata", "string", "JSON object with what else the reader kept."),
            )
        )
    },
)

BENCHMARKS = Kind(
    name="benchmarks",
    version=1,
    description="Evaluation items of several forms under benchmark names.",
    tables={
        "*.parquet": Table(
            (
                Column("benchmark", "string", "Name of the benchmark the item belongs to."),
                Column("item_id", "string", "Identifier, unique within the benchmark."),
                Column(
                    "form", "string", "`multiple_choice` or `text` (bits per byte of `prompt`)."
                ),
                Column("prompt", "string", "Context shown before the choices, or the text."),
                Column("choices", "list<string>", "Continuations to rank; empty for `text`."),
                Column("answer", "int32?", "Index of the right choice."),
                Column("metadata", "string", "JSON object with what else the reader kept."),
            )
        )
    },
)

TRUTH = Kind(
    name="truth",
    version=1,
    description="Planted defects of a made corpus, to measure what a pipeline catches and misses.",
    tables={
        "*.parquet": Table(
            (
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
        )
    },
)
