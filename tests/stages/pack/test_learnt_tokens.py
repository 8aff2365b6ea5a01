"""What is learnt of each shape of instruction data, beside what TRL 1.16 learns of it.

TRL was tried on these inputs with a template like ChatML: `assistant_only_loss` and completions are
learnt alike here; where its defaults learn everything, append an end, or drop a row in silence,
Ingot learns the answers alone, refuses the row, or counts it.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from artifacts_schema.errors import InputError
from stages.examples.stage import Conversations
from stages.pack.stage import PackChat
from stages.training.token_marks import IGNORED, PADDED
from stages.training.token_shards import TokenShards
from tests.written_shards import every

END = "<|im_end|>"
TWO_TURNS = [
    {"role": "system", "content": "the"},
    {"role": "user", "content": "a"},
    {"role": "assistant", "content": "yes"},
    {"role": "user", "content": "b"},
    {"role": "assistant", "content": "dog"},
]


@pytest.fixture
def packed_rows(run_stage, snapshot, given, tokenizer, tokenizer_files):
    """`packed_rows(rows, **config)` → the manifest of pack_chat on a data set of these rows."""

    def run(rows, **config):
        lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        read = run_stage(Conversations, {}, {"snapshot": snapshot({"a.jsonl": lines})})
        inputs = {
            "conversations": [(read, "conversations")],
            "tokenizer": [given("tokenizer", tokenizer_files(tokenizer))],
        }
        config = {"sequence_length": 128, "held_out_share": 0, **config}
        return run_stage(PackChat, config, inputs)

    return run


@pytest.fixture
def learnt(packed_rows, read_input, tokenizer):
    """`learnt(rows, **config)` → of each conversation the runs of its text that are learnt."""

    def read(rows, **config):
        shards = TokenShards([read_input(packed_rows(rows, **config), "train")])
        (source,) = shards.sources
        batch = shards.batch(*every(shards, source))
        texts = []
        for row, pieces in enumerate(shards.documents_of(*every(shards, source))):
            for number, _ in enumerate(pieces):
                places = np.flatnonzero(batch.documents_BL[row] == number)
                targets = batch.targets_BL[row, places]
                runs = np.split(targets, np.flatnonzero(np.diff(targets == IGNORED)) + 1)
                texts.append(
                    [
                        tokenizer.decode(run.tolist(), skip_special_tokens=False)
                        for run in runs
                        if len(run) and run[0] != IGNORED
                    ]
                )
        assert (batch.documents_BL != PADDED).any()
        return texts

    return read


@pytest.mark.parametrize(
    "row",
    [
        {"messages": TWO_TURNS},
        {
            "conversations": [
                {"from": {"user": "human", "assistant": "gpt"}.get(m["role"], m["role"]),
                 "value": m["content"]}
                for m in TWO_TURNS
            ]
        },
    ],
    ids=["messages", "sharegpt"],
)  # fmt: skip
def test_of_several_turns_every_answer_and_its_end_are_learnt(learnt, row):
    """TRL: the same with assistant_only_loss; by default it learns every token."""
    assert learnt([row]) == [["yes" + END, "dog" + END]]
    assert learnt([row], learn="last") == [["dog" + END]]


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "hi", "completion": "dog"},
        {"prompt": [{"role": "user", "content": "hi"}],
         "completion": [{"role": "assistant", "content": "dog"}]},
        {"instruction": "hi", "input": "", "output": "dog"},
        {"instruction": "hi", "input": "the cat", "output": "dog"},
        {"question": "hi", "answer": "dog"},
    ],
    ids=["prompt-completion", "trl-conversational", "alpaca", "alpaca-with-input", "question"],
)  # fmt: skip
def test_of_a_prompt_and_its_answer_the_answer_and_its_end_are_learnt(learnt, row):
    """TRL: the same, the header of the assistant included in what is masked."""
    assert learnt([row]) == [["dog" + END]]


def test_everything_is_learnt_where_it_is_asked_for_but_the_first_token(learnt):
    """TRL's completion_only_loss false, and its default for messages."""
    ((text,),) = learnt([{"prompt": "hi", "completion": "dog"}], learn="everything")
    assert "hi" in text
    assert text.endswith(f"dog{END}\n")


def test_an_end_that_the_text_spells_is_not_doubled_and_ends_nothing(learnt, packed_rows):
    """TRL takes it for its end of sequence; what a user writes is text here."""
    assert learnt([{"prompt": "hi", "completion": f"dog{END}"}]) == [[f"dog{END}{END}"]]


def test_a_row_of_text_alone_is_no_conversation(packed_rows):
    """TRL learns all of it; Ingot's text is documents, for pretrain."""
    with pytest.raises(InputError, match="unknown_shape"):
        packed_rows([{"text": "the cat sat"}])


def test_a_row_that_is_cut_before_its_answer_is_counted_and_listed(packed_rows, read_input):
    """TRL drops it in silence."""
    rows: list[dict[str, Any]] = [{"prompt": "hi", "completion": "dog"}] * 9
    long = {"prompt": "the cat " * 60, "completion": "dog"}
    manifest = packed_rows([*rows, long], sequence_length=32)
    assert manifest.counts["nothing_to_learn"] == 1
    assert manifest.conservation.dropped == {"nothing_to_learn": 1}


def test_a_data_set_of_which_nothing_would_be_learnt_is_an_error(packed_rows):
    """TRL's becomes empty without one."""
    long = {"prompt": "the cat " * 60, "completion": "dog"}
    with pytest.raises(InputError, match="1 of 1 records are bad"):
        packed_rows([long], sequence_length=32)
    with pytest.raises(InputError, match="no token would be learnt"):
        packed_rows([{"prompt": "hi", "completion": "dog"}], learn_pattern="nowhere",
                    max_bad_share=1.0)  # fmt: skip


def test_a_template_without_generation_markers_has_the_same_masks(
    learnt, run_stage, snapshot, given, tokenizer, tokenizer_files, read_input
):
    """TRL refuses such a template with assistant_only_loss; `transformers` gives all zeros."""
    template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    files = tokenizer_files(tokenizer)
    config = {**files["tokenizer_config.json"], "chat_template": template}
    files["tokenizer_config.json"] = config
    lines = json.dumps({"messages": TWO_TURNS}).encode()
    read = run_stage(Conversations, {}, {"snapshot": snapshot({"b.jsonl": lines})})
    packed = run_stage(
        PackChat,
        {"sequence_length": 128, "held_out_share": 0},
        {"conversations": [(read, "conversations")], "tokenizer": [given("tokenizer", files)]},
    )
    shards = TokenShards([read_input(packed, "train")])
    targets = shards.batch(*every(shards, "b")).targets_BL[0]
    text = tokenizer.decode(targets[targets != IGNORED].tolist(), skip_special_tokens=False)
    assert text == f"yes{END}dog{END}"


def test_conversations_are_laid_whole_and_only_what_is_too_long_is_cut(packed_rows, read_input):
    """TRL's bfd; of its wrapped packing, which cuts anywhere, there is none."""
    rows = [{"prompt": "hi " * n, "completion": "dog"} for n in (5, 3, 4, 90, 2)]
    manifest = packed_rows(rows, sequence_length=64, max_bad_share=0.2)
    shards = TokenShards([read_input(manifest, "train")])
    pieces = [one for row in shards.documents_of(*every(shards, "a")) for one in row]
    assert len(pieces) == len({one.doc_id for one in pieces}) == 4
    assert all(one.document_start == 0 for one in pieces)
    assert manifest.counts["nothing_to_learn"] == 1
