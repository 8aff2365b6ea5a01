"""Pairs are written by the chat template of the checkpoint, which it keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import AddedToken, Tokenizer

from artifacts_schema.errors import InputError
from stages.examples.messages import message
from stages.model.files import model_files, read_model
from stages.model.reward import read_reward_model
from stages.pairs.encoding import encode_pairs
from stages.preference.stage import Dpo, Reference, Reward
from stages.tokenizer.training import transformers_config
from stages.tokens.chat_template import make_trained_record
from stages.training.chat_format import JinjaFormat, Learning
from stages.training.examples import held_out_split
from stages.training.token_marks import LEARNT
from tests.stages.training.test_chat_templates import SPECIAL, template_of

NAMES = ("llama3", "llama3_1", "qwen3", "deepseekv3", "ours")
CLOSING = {
    "llama3": "<|eot_id|>",
    "llama3_1": "<|eot_id|>",
    "qwen3": "<|im_end|>",
    "deepseekv3": "<｜end▁of▁sentence｜>",
    "ours": "<|end|>",
}
QUICK = {"device": "cpu", "threads": 1, "micro_batch": 2}


def make_tokenizer(tokenizer, name):
    made = Tokenizer.from_str(tokenizer.to_str())
    made.add_special_tokens(
        [AddedToken(one, special=True, normalized=False) for one in SPECIAL[name]]
    )
    return made


def pair(number, prompt, chosen="yes", rejected="no"):
    answers = {"chosen": chosen, "rejected": rejected}
    return {
        "preference_id": f"{number:032x}",
        "source": "made",
        "prompt": prompt,
        **{
            side: said if isinstance(said, list) else [message("assistant", said)]
            for side, said in answers.items()
        },
        "tools": None,
        "metadata": "{}",
    }


TALK = [
    message("user", "say blue"),
    message("assistant", "blue", reasoning="a colour"),
    message("user", "say yes"),
]


@pytest.fixture
def tuned(given, make_model, tokenizer):
    """`tuned(name)` → a checkpoint as `sft` leaves it, trained by the template of that name."""

    def make(name, template=None):
        template = template_of(name) if template is None else template
        own = make_tokenizer(tokenizer, name)
        model = make_model(vocabulary_size=own.get_vocab_size(), context=128)
        described = {
            **transformers_config("llama-bpe"),
            "bos_token": SPECIAL[name][0],
            "chat_template": template,
        }
        record = make_trained_record("sft", None, template)
        return given(
            "checkpoint",
            {
                **model_files(model),
                "tokenizer.json": own.to_str().encode(),
                "tokenizer_config.json": described,
                "state.json": {"stage": "sft", "training_step": 1, "chat_template": record},
            },
        )

    return make


@pytest.fixture
def run(run_stage, given):
    def start(stage, checkpoint, rows, execution=None, **config):
        inputs = {
            "checkpoint": [checkpoint],
            "preferences": [given("preferences", {"00000.parquet": rows})],
        }
        return run_stage(stage, {"precision": "fp32", **config}, inputs, execution or QUICK)

    return start


def rendered(tokenizer, name, messages, **more: Any):
    """Token ids by `transformers`."""
    from transformers import PreTrainedTokenizerFast

    made = PreTrainedTokenizerFast(
        tokenizer_object=make_tokenizer(tokenizer, name), bos_token=SPECIAL[name][0]
    )
    plain = [
        {"role": one["role"], "content": one["content"]}
        | ({"reasoning_content": one["reasoning"]} if one["reasoning"] is not None else {})
        for one in messages
    ]
    template = template_of(name)
    text = made.apply_chat_template(plain, chat_template=template, tokenize=False, **more)
    return made(text, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_those_of_transformers_and_the_answer_alone_is_learnt(tokenizer, name):
    own = make_tokenizer(tokenizer, name)
    config = {"bos_token": SPECIAL[name][0]}
    chat_format = JinjaFormat(template_of(name), own, config, "2024-07-26", Learning())
    row = pair(0, TALK, "yes the man", "no")
    for side, (encoded,) in zip(
        ("chosen", "rejected"), next(encode_pairs(chat_format, [row])), strict=True
    ):
        whole = rendered(tokenizer, name, [*row["prompt"], *row[side]])
        learnt = np.flatnonzero(encoded.marks & LEARNT)
        stop = int(learnt[-1]) + 1
        assert encoded.ids[:stop].tolist() == whole[:stop]
        assert learnt.tolist() == list(range(int(learnt[0]), stop))
        said = own.decode(encoded.ids[learnt].tolist(), skip_special_tokens=False)
        assert said.endswith(row[side][0]["content"] + CLOSING[name])
        assert "blue" not in said


@pytest.mark.parametrize("name", ["llama3", "qwen3", "ours"])
def test_the_reference_is_of_what_the_template_writes(
    tuned, run, read_input, read_table, tokenizer, name
):
    """By one plain forward pass over the ids of `transformers`."""
    checkpoint = tuned(name)
    rows = [pair(n, TALK[:1], "yes " * (n + 1)) for n in range(3)]
    manifest = run(Reference, checkpoint, rows)
    model = read_model(read_input(*checkpoint))
    made = read_table(manifest, "reference", "pairs.parquet").to_pylist()
    for row, scores in zip(rows, made, strict=True):
        for side in ("chosen", "rejected"):
            ids = rendered(tokenizer, name, [*row["prompt"], *row[side]])
            prompt = rendered(tokenizer, name, row["prompt"], add_generation_prompt=True)
            closing = make_tokenizer(tokenizer, name).token_to_id(CLOSING[name])
            ids = ids[: len(ids) - ids[::-1].index(closing)]
            with torch.no_grad():
                logits = model(torch.tensor([ids[:-1]]))[0].double()
            expected = sum(
                torch.log_softmax(logits[place - 1], -1)[ids[place]].item()
                for place in range(len(prompt), len(ids))
            )
            assert ids[: len(prompt)] == prompt
            assert scores[side] == pytest.approx(expected, rel=1e-5)


def test_the_checkpoint_keeps_its_template_and_the_record_of_it(tuned, run, read_input):
    checkpoint = tuned("llama3")
    rows = [pair(n, TALK[:1], f"yes {n}") for n in range(12)]
    manifest = run(Dpo, checkpoint, rows, pairs_per_batch=4)
    after = read_input(manifest, "checkpoint")
    assert after.read_json("tokenizer_config.json")["chat_template"] == template_of("llama3")
    record = after.read_json("state.json")["chat_template"]
    assert (record["format"], record["replaced"]) == ("the tokenizer's", None)
    assert record["sha256"] == make_trained_record("sft", None, template_of("llama3"))["sha256"]


def test_what_a_template_cannot_hold_is_left_out_by_name_and_counted(tuned, run, read_input):
    """Qwen 3 writes an answer's first turn without its reasoning once another follows."""
    turns = [
        message("assistant", "yes", reasoning="so it is"),
        message("user", "sure"),
        message("assistant", "yes"),
    ]
    rows = [*(pair(n, TALK[:1], f"yes {n}") for n in range(9)), pair(9, TALK[:1], turns)]
    manifest = run(Reference, tuned("qwen3"), rows)
    assert (manifest.counts["several_rows"], manifest.counts["pairs_left_out"]) == (1, 1)
    strict = "{% if messages[0].content == 'no' %}{{ raise_exception('no') }}{% endif %}"
    rows = [*(pair(n, TALK[:1], f"yes {n}") for n in range(9)), pair(9, [message("user", "no")])]
    manifest = run(Reference, tuned("ours", strict + template_of("ours")), rows)
    assert (manifest.counts["not_rendered"], manifest.counts["pairs_left_out"]) == (1, 1)


def test_reasoning_that_a_template_drops_is_counted(tuned, run):
    rows = [pair(n, TALK, f"yes {n}") for n in range(3)]
    assert run(Reference, tuned("qwen3"), rows).counts["messages_with_reasoning_unused"] == 3
    assert "messages_with_reasoning_unused" not in run(Reference, tuned("ours"), rows).counts


def test_a_template_of_no_use_is_refused(tuned, run):
    with pytest.raises(InputError, match="does not render"):
        run(Reference, tuned("ours", "{{ nothing.at.all }}"), [pair(0, TALK[:1])])


def test_a_reference_of_another_day_is_refused(tuned, run_stage, given):
    checkpoint = tuned("llama3_1")
    rows = [pair(n, TALK[:1], f"yes {n}") for n in range(12)]
    inputs = {
        "checkpoint": [checkpoint],
        "preferences": [given("preferences", {"00000.parquet": rows})],
    }
    config = {"precision": "fp32", "date": "2025-01-01"}
    made = run_stage(Reference, config, inputs, QUICK)
    with pytest.raises(InputError, match="another date"):
        run_stage(
            Dpo,
            {"precision": "fp32", "pairs_per_batch": 4},
            {**inputs, "reference": [(made, "reference")]},
            QUICK,
        )


@pytest.mark.parametrize("name", ["llama3", "qwen3", "ours"])
def test_a_score_is_of_the_ids_that_transformers_renders(
    tuned, run, read_input, read_table, tokenizer, name
):
    rows = [pair(n, TALK, "yes " * (n % 5 + 1), "no") for n in range(20)]
    manifest = run(Reward, tuned(name), rows, held_out_share=0.5)
    model = read_reward_model(read_input(manifest, "checkpoint"))
    _, held_out = held_out_split([row["preference_id"] for row in rows], 0.5, seed=0)
    losses = []
    for row in (rows[index] for index in held_out.tolist()):
        with torch.no_grad():
            chosen, rejected = (
                model(torch.tensor([rendered(tokenizer, name, [*row["prompt"], *row[side]])]))[
                    0, -1
                ]
                for side in ("chosen", "rejected")
            )
        losses.append(torch.nn.functional.softplus(rejected - chosen).item())
    last = read_table(manifest, "training_run", "held_out.parquet").to_pylist()[-1]
    assert last["loss"] == pytest.approx(np.mean(losses), rel=1e-4)
