"""Examples of post-training: what of a conversation is learnt, what a context holds, order."""

from __future__ import annotations

import numpy as np

from stages.examples.messages import message
from stages.tokens.chat import render_segments
from stages.training.examples import ExampleClock, encode_example, fit_example, held_out_split


def test_only_what_the_assistant_says_and_its_closing_token_is_learnt(tokenizer):
    """As TRL's assistant-only masks: "yes" + end and "dog" + end, no header, no user text."""
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "say yes"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": "say dog"},
        {"role": "assistant", "content": "dog"},
    ]
    example = encode_example(tokenizer, render_segments(messages))
    learnt = tokenizer.decode(example.ids[example.trained].tolist(), skip_special_tokens=False)
    assert learnt == "yes<|im_end|>dog<|im_end|>"


def test_fitting_keeps_what_the_context_holds(tokenizer):
    example = encode_example(
        tokenizer,
        render_segments([message("user", "what is the sky"), message("assistant", "green")]),
    )
    assert fit_example(example, len(example), "drop") == (example, None)
    cut, reason = fit_example(example, len(example) - 2, "truncate")
    assert (len(cut), reason) == (len(example) - 2, "truncated")
    assert fit_example(example, len(example) - 1, "drop") == (None, "too_long")
    assert fit_example(example, 3, "truncate") == (None, "nothing_to_learn")


def test_every_epoch_shows_every_example_once_in_another_order():
    clock = ExampleClock(size=10, per_batch=4, epochs=3, seed=1)
    assert clock.steps == 8
    seen = np.concatenate([clock.batch(step) for step in range(1, 9)])
    epochs = seen.reshape(3, 10)
    assert [sorted(epoch) for epoch in epochs.tolist()] == [list(range(10))] * 3
    assert len({tuple(epoch) for epoch in epochs.tolist()}) == 3
    assert len(clock.batch(8)) == 2


def test_the_held_out_side_of_an_example_does_not_depend_on_the_others():
    ids = [f"{i:032x}" for i in range(1000)]
    train, held_out = held_out_split(ids, 0.1, seed=3)
    assert 70 < len(held_out) < 130
    assert sorted([*train, *held_out]) == list(range(1000))
    _, alone = held_out_split(ids[500:], 0.1, seed=3)
    assert [i + 500 for i in alone.tolist()] == [i for i in held_out.tolist() if i >= 500]


def test_a_tool_call_is_learnt_as_qwen_writes_it_and_weight_0_is_not(tokenizer):
    call = {"id": "1", "name": "sky", "arguments": '{"day": "today"}'}
    messages = [
        message("user", "say"),
        message("assistant", "no", weight=0.0),
        message("user", "what"),
        message("assistant", " ", tool_calls=[call, {**call, "arguments": "{}"}]),
        message("tool", "blue"),
        message("assistant", "blue", weight=1.0),
    ]
    example = encode_example(tokenizer, render_segments(messages, tools='[{"name": "sky"}]'))
    learnt = tokenizer.decode(example.ids[example.trained].tolist(), skip_special_tokens=False)
    assert learnt == (
        '<tool_call>\n{"name": "sky", "arguments": {"day": "today"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "sky", "arguments": {}}\n</tool_call><|im_end|>blue<|im_end|>'
    )
