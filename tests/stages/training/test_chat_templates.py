"""Chat templates that others wrote: ids as `transformers` has them, and what is learnt of them.

The templates lie in the test-only package `trl`; its twins of them (`*_training.jinja`) mark what
an assistant says, for `transformers` to return as a mask.
"""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer

from artifacts_schema.errors import InputError
from stages.examples.messages import message
from stages.training.chat_format import JinjaFormat, Learning, Refused, check_format
from stages.training.token_marks import LEARNT, SPEAKERS, speakers_of

LLAMA = ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
QWEN = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
DEEPSEEK = (
    *("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"),
    *(
        f"<｜tool▁{name}｜>"
        for name in ("calls▁begin", "call▁begin", "sep", "call▁end", "calls▁end")
    ),
    *(
        f"<｜tool▁{name}｜>"
        for name in ("outputs▁begin", "output▁begin", "output▁end", "outputs▁end")
    ),
)
OURS = (
    "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{% if m.role == 'assistant' %}"
    "{% if m.reasoning_content %}(({{ m.reasoning_content }})){% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}!{{ c.function.name }}{{ c.function.arguments | tojson }}"
    "{% endfor %}{% else %}{{ m.content }}{% endif %}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
SPECIAL = {
    "llama3": LLAMA,
    "llama3_1": (*LLAMA, "<|eom_id|>", "<|python_tag|>"),
    "qwen3": QWEN,
    "deepseekv3": DEEPSEEK,
    "ours": ("<|begin|>", "<|end|>"),
}


def template_of(name: str) -> str:
    if name == "ours":
        return OURS
    spec = importlib.util.find_spec("trl")
    if spec is None or spec.origin is None:
        pytest.skip("trl, which has the templates, is not installed")
    path = Path(spec.origin).parent / "chat_templates" / f"{name}.jinja"
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tokenizers(tokenizer) -> Any:
    """`tokenizers(name)` → the tests' tokenizer with the special tokens of a template."""

    def make(name: str) -> Tokenizer:
        made = Tokenizer.from_str(tokenizer.to_str())
        made.add_special_tokens(
            [AddedToken(one, special=True, normalized=False) for one in SPECIAL[name]]
        )
        return made

    return make


@pytest.fixture
def chat_format(tokenizers):
    def make(name: str, template: str | None = None, **learning: Any) -> JinjaFormat:
        text = template if template is not None else template_of(name)
        config = {"bos_token": SPECIAL[name][0]}
        return JinjaFormat(text, tokenizers(name), config, "2024-07-26", Learning(**learning))

    return make


def row(*messages: dict[str, Any], tools: str | None = None) -> dict[str, Any]:
    return {"messages": list(messages), "tools": tools}


ONE = row(message("system", "be brief"), message("user", "the cat"), message("assistant", "a dog"))
TWO = row(*ONE["messages"], message("user", "12 user"), message("assistant", "345 naïve"))


def oracle(
    tokenizers, name: str, template: str, messages: list[dict[str, Any]], **more: Any
) -> Any:
    from transformers import PreTrainedTokenizerFast

    made = PreTrainedTokenizerFast(tokenizer_object=tokenizers(name), bos_token=SPECIAL[name][0])
    said = [{"role": one["role"], "content": one["content"]} for one in messages]
    return made.apply_chat_template(
        said, chat_template=template, tokenize=True, return_dict=True, **more
    )


def learnt_text(tokenizer: Tokenizer, encoded: Any) -> str:
    chosen = encoded.ids[(encoded.marks & LEARNT) > 0]
    return tokenizer.decode(chosen.tolist(), skip_special_tokens=False)


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("conversation", [ONE, TWO], ids=["one answer", "two"])
def test_ids_are_those_of_transformers(chat_format, tokenizers, name, conversation):
    made = chat_format(name)
    (rows,) = made.encode([conversation])
    messages = conversation["messages"]
    if name == "qwen3":  # The last turn has an empty block of thoughts, which earlier ones lack.
        assert len(rows) == sum(one["role"] == "assistant" for one in messages)
    else:
        assert len(rows) == 1
    for number, encoded in enumerate(rows):
        shown = messages if len(rows) == 1 else messages[: 3 + 2 * number]
        wanted = oracle(tokenizers, name, made.template, shown)["input_ids"]
        assert encoded.ids.tolist() == wanted


@pytest.mark.parametrize("name", ["llama3", "qwen3"])
def test_what_is_learnt_is_what_trls_marked_template_says(chat_format, tokenizers, name):
    made = chat_format(name)
    for conversation in (ONE, TWO) if name == "llama3" else (ONE,):
        ((encoded,),) = made.encode([conversation])
        answer = oracle(
            tokenizers,
            name,
            template_of(f"{name}_training"),
            conversation["messages"],
            return_assistant_tokens_mask=True,
        )
        assert encoded.ids.tolist() == answer["input_ids"]
        # What follows the closing token is not learnt here.
        wanted = np.array(answer["assistant_masks"], dtype=bool)
        if name == "qwen3":
            closing = max(np.flatnonzero(encoded.ids == tokenizers(name).token_to_id("<|im_end|>")))
            wanted[closing + 1 :] = False
        assert ((encoded.marks & LEARNT) > 0).tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("name", "learnt"),
    [
        ("llama3", "a dog<|eot_id|>345 naïve<|eot_id|>"),
        ("llama3_1", "a dog<|eot_id|>345 naïve<|eot_id|>"),
        ("deepseekv3", "a dog<｜end▁of▁sentence｜>345 naïve<｜end▁of▁sentence｜>"),
        ("ours", "a dog<|end|>345 naïve<|end|>"),
    ],
)
def test_every_answer_and_its_closing_token_is_learnt(chat_format, tokenizers, name, learnt):
    ((encoded,),) = chat_format(name).encode([TWO])
    assert learnt_text(tokenizers(name), encoded) == learnt
    spoken = {
        speaker: tokenizers(name).decode(encoded.ids[speakers_of(encoded.marks) == n].tolist())
        for n, speaker in enumerate(SPEAKERS)
    }
    assert spoken["user"].replace(" ", "") == "thecat12user"
    assert spoken["system"] == "be brief"


def test_a_template_that_drops_earlier_reasoning_gives_a_row_for_each_answer(
    chat_format, tokenizers
):
    thought = row(
        message("user", "the"),
        message("assistant", "a", reasoning="cat 12"),
        message("user", "dog"),
        message("assistant", "ran", reasoning="345"),
    )
    made = chat_format("qwen3")
    (rows,) = made.encode([thought])
    texts = [learnt_text(tokenizers("qwen3"), one) for one in rows]
    assert texts == [
        "<think>\ncat 12\n</think>\n\na<|im_end|>",
        "<think>\n345\n</think>\n\nran<|im_end|>",
    ]
    # What inference shows before the second answer has no reasoning of the first.
    assert "cat 12" not in rows[1].text
    assert not check_format(made)
    assert check_format(chat_format("ours"))


def test_an_answer_without_weight_is_context(chat_format, tokenizers):
    quiet = row(
        *TWO["messages"][:2], message("assistant", "a dog", weight=0.0), *TWO["messages"][3:]
    )
    for name in ("llama3", "qwen3"):
        (rows,) = chat_format(name).encode([quiet])
        assert len(rows) == 1
        assert "a dog" not in learnt_text(tokenizers(name), rows[0])
        assert "345" in learnt_text(tokenizers(name), rows[0])


def test_tools_calls_and_results_are_rendered(chat_format, tokenizers):
    call = {"id": None, "name": "find", "arguments": '{"word": "cat"}'}
    talk = row(
        message("user", "the"),
        message("assistant", "", tool_calls=[call]),
        message("tool", 'a "dog"\n12'),
        message("assistant", "ran"),
        tools=json.dumps([{"type": "function", "function": {"name": "find", "parameters": {}}}]),
    )
    for name in ("llama3_1", "qwen3", "deepseekv3", "ours"):
        (rows,) = chat_format(name).encode([talk])
        if name in ("deepseekv3", "ours"):  # They tell of no tools.
            assert isinstance(rows, Refused), name
            assert "leaves out the tools" in rows.detail
            (rows,) = chat_format(name).encode([{**talk, "tools": None}])
        assert not isinstance(rows, Refused), (name, rows)
        learnt = "".join(learnt_text(tokenizers(name), one) for one in rows)
        assert re.search(r'find.*"?word"?: ?"cat"', learnt, re.DOTALL), (name, learnt)
        assert "ran" in learnt
        assert "12" not in learnt


def test_a_special_token_spelled_in_a_message_stays_a_text(chat_format, tokenizers):
    sly = row(message("user", "the <|eot_id|> cat"), message("assistant", "a dog"))
    ((encoded,),) = chat_format("llama3").encode([sly])
    tokenizer = tokenizers("llama3")
    end = tokenizer.token_to_id("<|eot_id|>")
    assert (encoded.ids == end).sum() == 2
    assert tokenizer.decode(encoded.ids.tolist(), skip_special_tokens=False) == encoded.text
    assert encoded.text.count("<|eot_id|>") == 3
    assert learnt_text(tokenizer, encoded) == "a dog<|eot_id|>"


def test_the_last_turn_everything_or_a_pattern_is_learnt(chat_format, tokenizers):
    tokenizer = tokenizers("llama3")
    ((last,),) = chat_format("llama3", scope="last").encode([TWO])
    assert learnt_text(tokenizer, last) == "345 naïve<|eot_id|>"
    ((everything,),) = chat_format("llama3", scope="everything").encode([TWO])
    assert ((everything.marks & LEARNT) > 0).tolist() == [False] + [True] * (len(last.ids) - 1)
    assert everything.ids.tolist() == last.ids.tolist()
    pattern = re.compile(r"(?s)\d+(.*)")
    ((part,),) = chat_format("llama3", pattern=pattern).encode([TWO])
    assert learnt_text(tokenizer, part).strip() == "naïve<|eot_id|>"


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{% for m in messages %}{{ m.role }}<|end|>{% endfor %}", "content_dropped"),
        ("{{ raise_exception('no') }}", "not_rendered"),
        ("{% for m in messages %}{{ m.content }}{% endfor %}", "not_rendered"),
    ],
)
def test_a_template_of_no_use_is_refused(chat_format, template, reason):
    made = chat_format("ours", template)
    (refused,) = made.encode([ONE])
    assert isinstance(refused, Refused)
    assert refused.reason == reason
    with pytest.raises(InputError, match="the chat template"):
        check_format(made)


def test_a_system_message_that_a_template_leaves_out_is_refused_with_its_conversation(chat_format):
    template = OURS.replace(
        "{% for m in messages %}", "{% for m in messages if m.role != 'system' %}"
    )
    made = chat_format("ours", template)
    assert check_format(made)
    refused, rows = made.encode([ONE, row(*ONE["messages"][1:])])
    assert isinstance(refused, Refused)
    assert refused.reason == "content_dropped"
    assert "system" in refused.detail
    assert len(rows) == 1


def test_the_day_is_the_one_of_the_config(tokenizers):
    template = OURS + "{{ strftime_now('%d %b %Y') if add_generation_prompt else '' }}"
    made = JinjaFormat(
        "{{ strftime_now('%Y') }}" + template, tokenizers("ours"), {}, "1999-12-31", Learning()
    )
    ((encoded,),) = made.encode([ONE])
    assert encoded.text.startswith("1999")
