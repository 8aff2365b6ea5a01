"""Templates that somebody else wrote: rendered as `transformers` does, with limits; and records."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from artifacts_schema.errors import InputError
from stages.tokens import isolated
from stages.tokens.chat import CHAT_TEMPLATE
from stages.tokens.chat_template import (
    JINJA_LIMIT,
    TOKENIZER_CONFIG,
    TokenizerWithTemplate,
    is_template_file,
    make_imported_record,
    make_trained_record,
    read_published_template,
    render_prompt,
)

LLAMA_LIKE = (
    "{{- bos_token }}{%- for message in messages %}"
    "{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' }}"
    "{{- message['content'] | trim + '<|eot_id|>' }}{%- endfor %}"
    "{%- if add_generation_prompt %}"
    "{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif %}"
)
ASKED = [{"role": "user", "content": " Hi "}]
CONFIG = {"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": LLAMA_LIKE}


def test_a_template_renders_as_in_transformers():
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.BPE()), bos_token="<s>", eos_token="</s>"
    )
    oracle = tokenizer.apply_chat_template(
        ASKED, chat_template=LLAMA_LIKE, tokenize=False, add_generation_prompt=True
    )
    assert render_prompt(LLAMA_LIKE, ASKED, CONFIG) == oracle
    assert oracle.startswith("<s><|start_header_id|>user")
    several = [{"name": "tool_use", "template": "x"}, {"name": "default", "template": LLAMA_LIKE}]
    assert render_prompt(several, ASKED, CONFIG) == oracle


def test_a_date_in_a_template_does_not_depend_on_the_day():
    assert render_prompt("{{ strftime_now('%d %b %Y') }}", ASKED, {}) == "26 Jul 2024"


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{% include '/etc/passwd' %}",
        "{{ raise_exception('no system role') }}",
        "{{ 'a' * 10**11 }}",
        "{{ 'a' * 10**7 }}",
        "{% for",
        [{"name": "tool_use", "template": "x"}],
    ],
)
def test_a_template_that_reaches_out_or_takes_too_much_is_an_error(template):
    with pytest.raises(InputError) as found:
        render_prompt(template, ASKED, CONFIG)
    assert found.value.where == "checkpoint"


def test_an_endless_template_is_ended(monkeypatch):
    monkeypatch.setattr("stages.tokens.chat_template.RENDER_SECONDS", 4)
    loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    with pytest.raises(InputError):
        render_prompt(loops, ASKED, CONFIG)


def test_templates_are_taken_from_files_first_and_kept_as_they_are():
    assert read_published_template(CONFIG, {}, where="x") == LLAMA_LIKE
    file = {"chat_template.jinja": "é".encode()}
    assert read_published_template(CONFIG, file, where="x") == "é"
    both = {**file, "additional_chat_templates/tool_use.jinja": b"t"}
    assert read_published_template(CONFIG, both, where="x") == [
        {"name": "default", "template": "é"},
        {"name": "tool_use", "template": "t"},
    ]
    assert read_published_template({}, {}, where="x") is None
    named = [
        path for path in (*both, "a/b.jinja", "a/chat_template.jinja") if is_template_file(path)
    ]
    assert named == [*both, "a/chat_template.jinja"]


@pytest.mark.parametrize(
    ("config", "files"),
    [
        ({"chat_template": 5}, {}),
        ({"chat_template": [{"name": "default"}]}, {}),
        ({"chat_template": "x" * JINJA_LIMIT}, {}),
        ({}, {"chat_template.jinja": b"\xff"}),
        ({}, {"chat_template.jinja": b"x" * (JINJA_LIMIT + 1)}),
    ],
)
def test_what_is_no_template_is_refused_by_file(config, files):
    with pytest.raises(InputError) as found:
        read_published_template(config, files, where="tokenizer_config.json")
    assert found.value.where == next(iter(files), "tokenizer_config.json")


def test_the_record_says_what_chatml_replaced_through_further_stages():
    own = make_imported_record(LLAMA_LIKE, "llama")
    assert (own["format"], own["source"]) == ("imported", "snapshot llama")
    tuned = make_trained_record("sft", own)
    assert (tuned["format"], tuned["source"], tuned["replaced"]) == ("ChatML", "stage sft", own)
    preferred = make_trained_record("dpo", tuned)
    assert (preferred["source"], preferred["replaced"]) == ("stage dpo", own)
    assert make_trained_record("sft", None)["replaced"] is None
    assert (
        make_trained_record("sft", make_imported_record(CHAT_TEMPLATE, "ours"))["replaced"] is None
    )
    json.dumps(preferred)


def test_a_new_model_does_not_get_the_template_of_its_tokenizers_publisher():
    class Held:
        def read_bytes(self, path):
            return json.dumps(CONFIG).encode() if path == TOKENIZER_CONFIG else b"whole"

    without, with_it = (TokenizerWithTemplate(Held(), one) for one in (None, CHAT_TEMPLATE))
    assert "chat_template" not in json.loads(without.read_bytes(TOKENIZER_CONFIG))
    assert json.loads(with_it.read_bytes(TOKENIZER_CONFIG))["chat_template"] == CHAT_TEMPLATE
    assert without.read_bytes("tokenizer.json") == b"whole"


def test_what_runs_in_isolation_imports_nothing_of_ingot():
    source = Path(isolated.__file__).read_text(encoding="utf-8")
    assert not re.search(r"(from|import) (stages|artifacts_schema)", source)
