"""Kinds of what stands beside an evaluation: samples of other harnesses, answers of judges."""

from __future__ import annotations

from artifacts_schema.kinds.schema import Column, Kind, make_table

SCORE_KINDS = (
    Kind(
        name="harness_samples",
        description="Every sample of lm-evaluation-harness, in the form of its own files.",
        files={
            "samples_*.jsonl": "One task: a line for each row and filter, with prompts, answers, "
            "hashes and metrics. `tasks.json` of the evaluation names the file of each task."
        },
    ),
    Kind(
        name="judge_answers",
        description="What a judge was asked and answered, and what pairs of answers came to.",
        tables={
            "answers.parquet": make_table(
                Column(
                    "request",
                    "string",
                    "sha256 of what was asked, of which model: an equal request has this answer.",
                ),
                Column("benchmark", "string", "Of the pair."),
                Column("item_id", "string", "Of the pair."),
                Column("swapped", "bool", "Whether B was shown first."),
                Column(
                    "text",
                    "string",
                    "The answer, as it came; of a checkpoint the letter; '' where there was none.",
                ),
                Column(
                    "status",
                    "string",
                    "`answered`, `refused` (by the endpoint; of a checkpoint: longer than its "
                    "context) or `malformed` (no chat completion).",
                ),
                Column(
                    "verdict",
                    "string?",
                    "`first`, `second` or `tie`, as they were shown; null where it has none.",
                ),
                Column("prompt_tokens", "int64?", "As the endpoint counts them."),
                Column("completion_tokens", "int64?", "As the endpoint counts them."),
            ),
            "comparisons.parquet": make_table(
                Column("benchmark", "string", "`judged/` or `human/` and a name."),
                Column("item_id", "string", "Item, prompt's digest, or preference pair."),
                Column("sample", "int32", "Number of the answer among the item's."),
                Column("prompt", "string", "The question."),
                Column("a", "string", "Answer A."),
                Column("b", "string", "Answer B."),
                Column(
                    "outcome",
                    "string?",
                    "What both orders say: `a`, `b` or `tie`; null without two verdicts.",
                ),
                Column("flipped", "bool", "Whether the preference changed with the order."),
                Column("human", "string?", "Which of the two people prefer, where known."),
            ),
        },
    ),
)
