"""The pack_chat stage: conversations whole in sequences, with what is learnt and who speaks."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from artifacts_schema.errors import CorruptArtifact, InputError, UsageError
from stages.engine.page import Artifact
from stages.examples.messages import message
from stages.pack.page import page
from stages.pack.stage import PackChat
from stages.tokens.chat import render_segments
from stages.training.examples import encode_example
from stages.training.token_marks import BEGINS, IGNORED, LEARNT, PADDED, SPEAKERS, speakers_of
from stages.training.token_shards import TokenShards
from tests.written_shards import every

LENGTH = 256
WORDS = ["the cat", "a dog ran", "naïve", "你好 12", "def the a"]
TOOL = json.dumps([{"name": "find", "parameters": {}}])


def conversation(number: int, answers: int = 1, source: str = "made", **fields: Any) -> dict:
    """A conversation of so many answers, the first about a system's rule."""
    messages = [message("system", "be brief")]
    for turn in range(answers):
        messages.append(message("user", f"{WORDS[number % 5]} {turn}"))
        messages.append(message("assistant", " ".join(WORDS[: (number + turn) % 3 + 1])))
    return {
        "conversation_id": f"{number:032x}",
        "source": source,
        "messages": messages,
        "tools": None,
        "metadata": "{}",
        **fields,
    }


@pytest.fixture
def pack_chat(run_stage, given, tokenizer, tokenizer_files):
    """`pack_chat(rows, execution, **config)` → the stage's manifest; rows lie in two shards."""
    own = tokenizer_files(tokenizer)

    def run(rows, execution=None, files=own, **config):
        half = len(rows) // 2
        tables = {"00000.parquet": rows[:half], "00001.parquet": rows[half:]}
        inputs = {
            "conversations": [given("conversations", tables)],
            "tokenizer": [given("tokenizer", files)],
        }
        config = {"sequence_length": LENGTH, "held_out_share": 0, **config}
        return run_stage(PackChat, config, inputs, execution)

    return run


def examples_of(manifest, read_input, split="train") -> dict[str, tuple[list[int], list[bool]]]:
    """conversation id → ids, and whether each is learnt, read as training reads them."""
    shards = TokenShards([read_input(manifest, split)])
    found = {}
    for source in shards.sources:
        batch = shards.batch(*every(shards, source))
        names = shards.documents_of(*every(shards, source))
        for row, pieces in enumerate(names):
            for number, piece in enumerate(pieces):
                places = np.flatnonzero(batch.documents_BL[row] == number)
                ids = batch.tokens_BL[row, places]
                targets = batch.targets_BL[row, places]
                assert (places[0], len(places)) == (piece.start, piece.length)
                # What follows a conversation is another's, or padding: nothing to predict.
                assert targets[-1] == IGNORED
                predicted = targets[:-1] != IGNORED
                assert (targets[:-1][predicted] == ids[1:][predicted]).all()
                found[piece.doc_id] = (ids.tolist(), [False, *predicted.tolist()])
    return found


def test_training_reads_what_the_chat_format_says(pack_chat, read_input, tokenizer):
    rows = [conversation(i, answers=i % 3 + 1, source="ab"[i % 2]) for i in range(30)]
    rows[3]["messages"][2]["weight"] = 0.0
    rows[3]["messages"].extend([message("user", "the"), message("assistant", "a")])
    found = examples_of(pack_chat(rows), read_input)
    assert set(found) == {row["conversation_id"] for row in rows}
    for row in rows:
        wanted = encode_example(tokenizer, render_segments(row["messages"], tools=row["tools"]))
        assert found[row["conversation_id"]] == (wanted.ids.tolist(), wanted.trained.tolist())


def test_conversations_lie_whole_and_close_together(pack_chat, read_input):
    rows = [conversation(i, answers=i % 3 + 1) for i in range(40)]
    shards = TokenShards([read_input(pack_chat(rows), "train")])
    batch = shards.batch(*every(shards, "made"))
    filled = (batch.documents_BL != PADDED).mean()
    assert filled > 0.8
    assert batch.documents_BL.max() > 0
    marks = shards.marks(*every(shards, "made"))
    assert ((marks & BEGINS) > 0).sum() == 40
    assert ((marks == 0) == (batch.documents_BL == PADDED)).all()


def test_marks_say_who_speaks(pack_chat, read_input, tokenizer):
    row = conversation(1, tools=TOOL)
    row["messages"] = [
        message("system", "the rule"),
        message("user", "12"),
        message("assistant", "", tool_calls=[{"id": None, "name": "find", "arguments": "{}"}]),
        message("tool", "345"),
        message("assistant", "a dog"),
    ]
    shards = TokenShards(
        [read_input(pack_chat([row, conversation(2)], sequence_length=1024), "train")]
    )
    tokens = shards.batch(*every(shards, "made")).tokens_BL
    marks = shards.marks(*every(shards, "made"))
    said = {
        name: tokenizer.decode(tokens[speakers_of(marks) == number].tolist())
        for number, name in enumerate(SPEAKERS)
    }
    assert "the rule" in said["system"]
    assert '"find"' in said["system"]
    assert "345" in said["tool"]
    assert "a dog" in said["assistant"]
    assert "<tool_call>" in said["assistant"]
    assert "a dog" not in said["user"] + said["template"] + said["tool"]
    learnt = (marks & LEARNT) > 0
    assert (speakers_of(marks)[learnt] == SPEAKERS.index("assistant")).all()


def test_what_does_not_fit_is_cut_or_left_out_and_named(
    pack_chat, read_input, read_table, read_rows
):
    rows = [conversation(i) for i in range(8)]
    rows[1]["messages"][-1] = message("assistant", "the cat " * 200)
    rows[2]["messages"][1] = message("user", "the cat " * 200)
    cut = pack_chat(rows, max_bad_share=0.5)
    assert cut.counts["truncated"] == 1
    assert cut.counts["nothing_to_learn"] == 1  # Its answer begins beyond the sequence.
    found = examples_of(cut, read_input)
    assert len(found[rows[1]["conversation_id"]][0]) == LENGTH
    dropped = pack_chat(rows, too_long="drop", max_bad_share=0.5)
    assert dropped.counts["too_long"] == 2
    assert set(examples_of(dropped, read_input)) == {
        row["conversation_id"] for number, row in enumerate(rows) if number not in (1, 2)
    }
    names = [
        (row["doc_id"], row["reason"])
        for path in ("documents/000-00000.parquet",)
        for row in read_table(dropped, "excluded", path).to_pylist()
    ]
    assert names == [(rows[number]["conversation_id"], "too_long") for number in (1, 2)]
    with pytest.raises(InputError, match="2 of 8 records are bad"):
        pack_chat(rows, too_long="drop")


def test_a_conversation_keeps_its_side_whatever_joins_it(pack_chat, read_input):
    rows = [conversation(i) for i in range(60)]
    few = pack_chat(rows[:30], held_out_share=0.3)
    many = pack_chat(rows, held_out_share=0.3)
    held = set(examples_of(few, read_input, "held_out"))
    assert 2 < len(held) < 20
    assert held == set(examples_of(many, read_input, "held_out")) & {
        row["conversation_id"] for row in rows[:30]
    }
    assert not held & set(examples_of(few, read_input))


def test_workers_and_order_of_work_change_no_byte(pack_chat):
    rows = [conversation(i, answers=i % 4 + 1, source="ab"[i % 2]) for i in range(40)]
    one = pack_chat(rows, {"workers": 1})
    assert {n: o.digest for n, o in pack_chat(rows, {"workers": 2}).outputs.items()} == {
        n: o.digest for n, o in one.outputs.items()
    }


def test_a_tokenizer_without_turns_is_refused(pack_chat, tokenizer, tokenizer_files):
    plain = Tokenizer.from_str(tokenizer.to_str().replace("<|im_start|>", "<|other|>"))
    files = tokenizer_files(plain)
    with pytest.raises(InputError, match="has no special token"):
        pack_chat([conversation(1), conversation(2)], files=files)


def test_a_file_of_marks_that_was_cut_is_told(pack_chat, read_input):
    artifact = read_input(pack_chat([conversation(i) for i in range(4)]), "train")
    path = artifact.local_path("made/00000.marks")
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1])
    shards = TokenShards([artifact])
    with pytest.raises(CorruptArtifact):
        shards.batch(*every(shards, "made"))


def test_a_page_says_what_is_learnt_and_what_is_left_out(pack_chat, store):
    rows = [conversation(i) for i in range(20)]
    rows[2]["messages"][1] = message("user", "the cat " * 200)
    manifest = pack_chat(rows, held_out_share=0.2, max_bad_share=0.5)
    figures = {figure.title: figure for figure in page(Artifact(store, manifest))}
    assert "Conversations by length in tokens, train" in figures
    facts = dict(figures["Packed tokens"].rows)
    assert facts["conversations without a learnt token"] == 1
    assert facts["tokens that are learnt"] == manifest.counts["learnt_tokens"]
    assert not any("documents" in name for name in facts)
    speakers = {row[0]: row[1:3] for row in figures["Tokens by speaker, train"].rows}
    assert speakers["user"][1] == speakers["template"][1] == 0
    assert speakers["assistant"][0] == speakers["assistant"][1] > 0
    shown = figures["What is learnt of conversation 3"]
    assert shown.text.count("⟦") == shown.text.count("<|im_end|>⟧") == 1


def test_what_chatml_does_not_hold_is_counted_and_logged(pack_chat, caplog):
    rows = [conversation(i) for i in range(8)]
    rows[0]["messages"][2].update(reasoning="hm", weight=0.5)
    rows[1]["messages"][2].update(weight=1.0)
    rows[1]["messages"][1].update(name="ann", weight=0.0)
    rows[2]["messages"][1].update(weight=1.0, reasoning="a user's")
    rows[3]["messages"][2].update(weight=0.0)
    manifest = pack_chat(rows, max_bad_share=0.2)
    found = {name: n for name, n in manifest.counts.items() if name.endswith("_unused")}
    assert found == {
        "messages_with_name_unused": 1,
        "messages_with_reasoning_unused": 1,
        "messages_with_weight_unused": 1,
    }
    assert manifest.counts["nothing_to_learn"] == 1
    assert any("messages with name, which" in one.getMessage() for one in caplog.records)


def test_reasoning_is_learnt_as_an_answer_that_holds_it_already(pack_chat, read_input, tokenizer):
    row, inline = conversation(1), conversation(2)
    row["messages"][2] = message("assistant", "a dog", reasoning=" the cat\n")
    inline["messages"][1:] = [
        row["messages"][1],
        message("assistant", "<think>\nthe cat\n</think>\n\na dog"),
    ]
    made = examples_of(pack_chat([row, inline]), read_input)
    assert made[row["conversation_id"]] == made[inline["conversation_id"]]
    ids, learnt = made[row["conversation_id"]]
    text = tokenizer.decode(np.array(ids)[learnt].tolist(), skip_special_tokens=False)
    assert text == "<think>\nthe cat\n</think>\n\na dog<|im_end|>"


TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}"
    "{% if loop.last or m.role != 'assistant' %}!{% endif %}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""By it an answer ends otherwise once another follows."""


def test_a_template_of_the_tokenizer_or_a_snapshot_writes(
    pack_chat, read_input, tokenizer, tokenizer_files, snapshot, run_stage, given
):
    files = tokenizer_files(tokenizer)
    files["tokenizer_config.json"] = {**files["tokenizer_config.json"], "chat_template": TEMPLATE}
    rows = [conversation(i, answers=i % 2 + 1) for i in range(8)]
    rows[0]["messages"][2].update(reasoning="which it does not write", weight=0.5)
    own = pack_chat(rows, files=files, sequence_length=512)
    assert own.counts["messages_with_reasoning_unused"] == 1
    assert "messages_with_weight_unused" not in own.counts
    assert own.counts["rows_by_turn"] == 4
    assert own.conservation.out == 8
    shards = TokenShards([read_input(own, "train")])
    assert shards.chat_template == TEMPLATE
    marks = shards.marks(*every(shards, "made"))
    assert ((marks & BEGINS) > 0).sum() == 12
    tokens = shards.batch(*every(shards, "made")).tokens_BL
    learnt = tokenizer.decode(tokens[(marks & LEARNT) > 0].tolist(), skip_special_tokens=False)
    assert learnt.count("!<|im_end|>") == learnt.count("<|im_end|>") == 12
    inputs = {
        "conversations": [given("conversations", {"00000.parquet": rows})],
        "tokenizer": [given("tokenizer", tokenizer_files(tokenizer))],
        "chat_template": snapshot({"mine.jinja": TEMPLATE.encode()}, "template"),
    }
    config = {"sequence_length": 512, "held_out_share": 0}
    brought = run_stage(PackChat, config, inputs)
    assert read_input(brought, "train").read_json("shards.json")["chat_template"] == TEMPLATE
    with pytest.raises(UsageError, match="there is an input chat_template"):
        run_stage(PackChat, {**config, "template": "chatml"}, inputs)
    chatml = pack_chat(rows, files=files, template="chatml")
    assert chatml.counts["rows_by_turn"] == 0


def test_a_pattern_that_matches_nothing_is_refused(pack_chat):
    with pytest.raises(InputError, match="no token would be learnt"):
        pack_chat([conversation(i) for i in range(4)], learn_pattern="zebra", max_bad_share=1.0)
    last = pack_chat([conversation(1, answers=2), conversation(2)], learn="last")
    both = pack_chat([conversation(1, answers=2), conversation(2)])
    assert 0 < last.counts["learnt_tokens"] < both.counts["learnt_tokens"]


# Weights of messages -----------------------------------------------------------------------------


def weights_of(manifest, read_input) -> dict[str, set[float]]:
    """conversation id → weights of its targets, as training reads them."""
    shards = TokenShards([read_input(manifest, "train")])
    results: dict[str, set[float]] = {}
    for source in shards.sources:
        batch = shards.batch(*every(shards, source))
        weights = batch.weights_BL
        for row, pieces in enumerate(shards.documents_of(*every(shards, source))):
            for number, piece in enumerate(pieces):
                own = (batch.documents_BL[row] == number) & (batch.targets_BL[row] != IGNORED)
                values = np.ones(1) if weights is None else weights[row, own]
                results[piece.doc_id] = set(np.unique(values).tolist())
    return results


@pytest.mark.parametrize("template", [None, TEMPLATE])
def test_weights_between_0_and_1_lie_beside_the_tokens_that_they_are_of(
    pack_chat, read_input, tokenizer, tokenizer_files, template
):
    files = tokenizer_files(tokenizer)
    if template is not None:
        files["tokenizer_config.json"] = {
            **files["tokenizer_config.json"],
            "chat_template": template,
        }
    rows = [conversation(i) for i in range(8)]
    for row, weight in zip(rows, (0.25, 1.0, None, 0.3, 0.0, 2.5), strict=False):
        row["messages"][2].update(weight=weight)
    manifest = pack_chat(rows, files=files, max_bad_share=0.2, sequence_length=64)
    assert "messages_with_weight_unused" not in manifest.counts
    made = weights_of(manifest, read_input)
    names = [row["conversation_id"] for row in rows]
    expected = [{0.25}, {1.0}, {1.0}, {float(np.float32(0.3))}, None, {2.5}, {1.0}, {1.0}]
    assert [made.get(name) for name in names] == expected


def test_each_turn_has_its_own_weight(pack_chat, read_input, tokenizer):
    row = conversation(1, answers=3)
    for place, weight in ((2, 0.5), (4, 0.0), (6, 0.125)):
        row["messages"][place].update(weight=weight)
    shards = TokenShards([read_input(pack_chat([row, conversation(2)]), "train")])
    batch = shards.batch(*every(shards, "made"))
    weighed = {}
    for place in zip(*np.nonzero(batch.targets_BL != IGNORED), strict=True):
        weighed.setdefault(float(batch.weights_BL[place]), []).append(batch.targets_BL[place])
    texts = {w: tokenizer.decode(ids, skip_special_tokens=False) for w, ids in weighed.items()}
    said = [row["messages"][place]["content"] + "<|im_end|>" for place in (2, 6)]
    assert {texts[0.5], texts[0.125]} == set(said)
    assert set(texts) == {0.5, 0.125, 1.0}


def test_without_such_weights_the_shards_are_what_they_were(pack_chat, read_input):
    rows = [conversation(i) for i in range(8)]
    rows[1]["messages"][2].update(weight=0.0)
    rows[2]["messages"][2].update(weight=1.0)
    made = read_input(pack_chat(rows, max_bad_share=0.2), "train")
    assert not [path for path in made.paths() if path.endswith(".weights")]
    assert not TokenShards([made]).is_weighted
