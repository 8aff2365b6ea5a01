"""A tokenizer brought along: read as data, checked, completed; hostile ones refused by name."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, processors

from artifacts_schema.errors import InputError
from stages.import_tokenizer.stage import ImportTokenizer
from stages.tokenizer.training import train, transformers_config
from stages.tokens.chat import CHAT_TEMPLATE
from stages.tokens.pre_tokenizers import build_pre_tokenizer
from stages.tokens.vocabulary import SpecialTokens, count_token_bytes

TEXTS = ["the cat sat on the mat", "naïve 你好 12345", "def f(x):\n\treturn x"]


def gpt2_like(*, normalizer: Any = None, pre_tokenizer: str = "gpt-2") -> Tokenizer:
    """As GPT-2 publishes itself: bytes and merges, one special token after them, which does all."""
    made = train(
        iter(TEXTS * 20), vocabulary_size=300, pre_tokenizer=pre_tokenizer, min_frequency=2
    )
    model = json.loads(made.to_str())["model"]
    names = sorted(model["vocab"], key=model["vocab"].get)[16:]
    vocabulary = {name: index for index, name in enumerate(names)}
    merges = [tuple(pair) for pair in model["merges"]]
    tokenizer = Tokenizer(
        models.BPE(vocabulary, merges, ignore_merges=bool(model["ignore_merges"]))
    )
    tokenizer.pre_tokenizer = build_pre_tokenizer(pre_tokenizer)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.add_special_tokens([AddedToken("<|endoftext|>", special=True, normalized=False)])
    return tokenizer


GPT2_CONFIG = {
    "tokenizer_class": "GPT2Tokenizer",
    "bos_token": "<|endoftext|>",
    "eos_token": "<|endoftext|>",
    "unk_token": "<|endoftext|>",
    "add_prefix_space": False,
}


def files_of(tokenizer: Tokenizer, config: dict[str, Any] | None = None) -> dict[str, bytes]:
    return {
        "tokenizer.json": tokenizer.to_str().encode(),
        "tokenizer_config.json": json.dumps(GPT2_CONFIG if config is None else config).encode(),
    }


@pytest.fixture
def bring(run_stage, snapshot, read_input):
    """`bring(files, **config)` → the output of the stage on a snapshot of those files."""

    def run(files: dict[str, bytes], **config: Any):
        made = run_stage(ImportTokenizer, config, {"snapshot": snapshot(files)})
        return read_input(made, "tokenizer")

    return run


def loaded(found) -> tuple[Tokenizer, SpecialTokens]:
    tokenizer = Tokenizer.from_str(found.read_bytes("tokenizer.json").decode())
    return tokenizer, SpecialTokens.from_config(tokenizer, found.read_json("tokenizer_config.json"))


def test_a_gpt_2_keeps_its_ids_and_gets_what_it_lacks_at_the_end(bring):
    given = gpt2_like()
    found = bring({f"gpt2/{name}": data for name, data in files_of(given).items()})
    tokenizer, special = loaded(found)
    size = given.get_vocab_size()
    for text in TEXTS:
        assert tokenizer.encode(text).ids == given.encode(text).ids
    assert (special.begin, special.end, special.padding) == (size - 1, size - 1, size)
    assert [special.turn_start, special.turn_end] == [size + 1, size + 2]
    assert special.fim_suffix == size + 5
    record = found.read_json("training.json")
    assert record["algorithm"] == "bpe"
    assert record["pre_tokenizer"] == "gpt-2"
    assert record["added_tokens"][0] == "<|pad|>"
    assert record["vocabulary_size"] == size + 6
    assert record["padded_vocabulary_size"] == 320
    assert record["restores_text"] is True
    assert record["special_ids_in_text"] == []
    assert record["special_tokens"] == special.plain()
    assert set(record["origin"]["files"]) == {"tokenizer.json", "tokenizer_config.json"}


def test_transformers_loads_what_was_imported(bring, tmp_path):
    from transformers import AutoTokenizer

    config = {**GPT2_CONFIG, "chat_template": CHAT_TEMPLATE}
    found = bring(files_of(gpt2_like(pre_tokenizer="qwen2"), config))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes(found.read_bytes(name))
    tokenizer, special = loaded(found)
    oracle = AutoTokenizer.from_pretrained(tmp_path)
    assert (oracle.bos_token_id, oracle.eos_token_id) == (special.begin, special.end)
    assert oracle.pad_token_id == special.padding
    for text in TEXTS:
        assert oracle(text)["input_ids"] == tokenizer.encode(text).ids
    messages = [{"role": "user", "content": "cat?"}, {"role": "assistant", "content": "mat"}]
    from stages.tokens.chat import encode_segments, find_chat_start, render_segments

    ids, learnt = encode_segments(
        tokenizer, render_segments(messages, begin=find_chat_start(tokenizer, special))
    )
    rendered = oracle.apply_chat_template(
        messages, return_dict=True, return_assistant_tokens_mask=True
    )
    assert rendered["input_ids"] == ids
    assert rendered["assistant_masks"] == [int(one) for one in learnt]


def test_what_was_trained_here_is_imported_unchanged(bring, tokenizer):
    found = bring(files_of(tokenizer, transformers_config("llama-bpe")))
    assert found.read_bytes("tokenizer.json").decode() == tokenizer.to_str(pretty=True)
    assert found.read_json("tokenizer_config.json")["pre_tokenizer"] == "llama-bpe"
    assert found.read_json("training.json")["added_tokens"] == []


def test_without_leave_nothing_is_added(bring):
    with pytest.raises(InputError, match="pad_token"):
        bring(files_of(gpt2_like()), add_missing=False)
    given = gpt2_like()
    given.add_special_tokens(["<pad>"])
    found = bring(files_of(given), add_missing=False, padding_token="<pad>")
    _, special = loaded(found)
    assert special.padding == given.token_to_id("<pad>")
    assert special.turn_start is None
    assert "chat_template" not in found.read_json("tokenizer_config.json")
    assert found.read_json("training.json")["has_chat_template"] is False


def test_a_chat_template_is_kept_as_it_is_from_the_file_or_the_config(bring):
    config = {**GPT2_CONFIG, "chat_template": "{{ 'from the config' }}"}
    files = files_of(gpt2_like(), config)
    found = bring(files)
    assert found.read_json("tokenizer_config.json")["chat_template"] == config["chat_template"]
    assert found.read_json("training.json")["has_chat_template"] is True
    found = bring({**files, "chat_template.jinja": "{{ 'é' }}\n".encode()})
    assert found.read_json("tokenizer_config.json")["chat_template"] == "{{ 'é' }}\n"
    with pytest.raises(InputError, match=r"\{'a': 1\}"):
        bring(files_of(gpt2_like(), {**GPT2_CONFIG, "chat_template": {"a": 1}}))


def test_begin_may_be_absent_and_roles_come_from_either_file(bring):
    given = gpt2_like()
    given.add_special_tokens(["<pad>"])
    files = files_of(given, {"auto_map": {"AutoTokenizer": ["evil.py", None]}})
    files["special_tokens_map.json"] = json.dumps(
        {"eos_token": {"content": "<|endoftext|>"}, "pad_token": "<pad>"}
    ).encode()
    tokenizer, special = loaded(bring(files))
    assert special.begin is None
    assert special.end == tokenizer.token_to_id("<|endoftext|>")
    assert special.padding == tokenizer.token_to_id("<pad>")


def test_code_that_a_config_names_is_neither_run_nor_kept(bring, caplog):
    config = {**GPT2_CONFIG, "auto_map": {"AutoTokenizer": ["evil.py", None]}}
    found = bring({**files_of(gpt2_like(), config), "evil.py": b"raise SystemExit(3)"})
    assert "auto_map" not in found.read_json("tokenizer_config.json")
    assert any("auto_map" in record.getMessage() for record in caplog.records)


def test_text_that_is_lost_is_measured_and_told(bring, caplog):
    given = gpt2_like(
        normalizer=normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    )
    record = bring(files_of(given)).read_json("training.json")
    assert record["restores_text"] is False
    assert any("ﬁne" in text for text in record["lost_texts"])
    assert "0 12 345 6789 3.14159" not in record["lost_texts"]
    assert record["pre_tokenizer"] is None
    warnings = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert len(warnings) == 2
    assert repr(record["lost_texts"][0]) in warnings[0]
    assert "llama.cpp" in warnings[1]


def test_qwen_s_normalizer_has_a_name_in_llama_cpp_but_loses_text(bring):
    given = gpt2_like(normalizer=normalizers.NFC(), pre_tokenizer="qwen2")
    record = bring(files_of(given)).read_json("training.json")
    assert record["pre_tokenizer"] == "qwen2"
    assert len(record["lost_texts"]) == 1


def test_a_text_that_can_spell_a_special_token_is_told(bring):
    """As T5's and XLM-R's: the end of a text is a piece of the unigram model, with score 0."""
    pieces = [("</s>", 0.0), ("<pad>", 0.0)]
    alphabet = [(f"<0x{byte:02X}>", -9.0) for byte in range(256)]
    letters = [(letter, -5.0) for letter in "▁abcs</>"]
    given = Tokenizer(models.Unigram([*pieces, *alphabet, *letters], 2, byte_fallback=True))
    given.normalizer = normalizers.Replace(" ", "▁")
    given.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    given.add_special_tokens(["</s>", "<pad>"])
    config = {"eos_token": "</s>", "pad_token": "<pad>"}
    found = bring(files_of(given, config))
    assert found.read_json("training.json")["special_ids_in_text"] == ["</s>", "<pad>"]
    tokenizer, _ = loaded(found)
    ids = tokenizer.encode("ab cé", add_special_tokens=False).ids
    assert count_token_bytes(tokenizer)[ids].sum() == len("ab cé".encode())


def test_what_would_cut_or_vary_an_encoding_is_turned_off(bring):
    given = gpt2_like()
    given.enable_truncation(5)
    given.enable_padding()
    content = json.loads(given.to_str())
    content["model"]["dropout"] = 0.5
    found = bring({**files_of(given), "tokenizer.json": json.dumps(content).encode()})
    tokenizer, _ = loaded(found)
    assert tokenizer.truncation is None
    assert tokenizer.padding is None
    text = "the cat sat on the mat " * 5
    assert len({tuple(tokenizer.encode(text).ids) for _ in range(10)}) == 1
    assert {"truncation is off", "padding is off", "dropout is off"} <= set(
        found.read_json("training.json")["changes"]
    )


def broken(change) -> dict[str, bytes]:
    content = json.loads(gpt2_like().to_str())
    change(content)
    return {**files_of(gpt2_like()), "tokenizer.json": json.dumps(content).encode()}


@pytest.mark.parametrize(
    ("change", "value"),
    [
        (lambda c: c["model"]["vocab"].update(cat=5), "id 5 twice"),
        (lambda c: c["model"]["vocab"].update(cat=9_000), "8,716 gaps.*263, 285"),
        (lambda c: c["model"]["vocab"].update(cat=-1), "'cat'.*-1"),
        (lambda c: c["model"]["vocab"].update(cat=True), "'cat'.*True"),
        (lambda c: c["model"]["vocab"].update(cat=2**60), f"'cat'.*{2**60}"),
        (lambda c: c["model"].update(vocab=[["a", 0.0], ["a", 0.0]]), "'a' twice"),
        (lambda c: c["model"].update(vocab="none"), "vocabulary"),
        (lambda c: c["model"].update(type="Pickle"), "'Pickle'"),
        (lambda c: c.update(model=None), "None"),
        (lambda c: c["added_tokens"].append({"id": 3, "content": "new"}), "id 3 twice"),
        (lambda c: c["added_tokens"].append("new"), "'new'"),
        (lambda c: c["model"]["merges"].append(["absent", "too"]), "absent"),
        (
            lambda c: c.update(pre_tokenizer={"type": "Split", "pattern": {"Regex": "(("}}),
            "Exception",
        ),
        (lambda c: c.update(decoder={"type": "Shell", "command": "rm"}), "Exception"),
    ],
)
def test_a_broken_tokenizer_json_is_one_clear_error(bring, change, value):
    with pytest.raises(InputError, match=value) as caught:
        bring(broken(change))
    assert caught.value.where == "tokenizer.json"


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"", "JSON"),
        (b"\x80\x02}q\x00.", "UTF-8"),
        (b"[1, 2]", "list"),
        (b'{"a": 1, "a": 2}', "'a'"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a":' * 100_000, "nested"),
    ],
)
def test_what_is_no_json_is_one_clear_error(bring, data, value):
    with pytest.raises(InputError, match=value) as caught:
        bring({**files_of(gpt2_like()), "tokenizer.json": data})
    assert caught.value.where == "tokenizer.json"


@pytest.mark.parametrize(
    ("files", "value"),
    [
        ({"tokenizer.model": b"x"}, "tokenizer.model"),
        ({"cl100k_base.tiktoken": b"x"}, "cl100k_base.tiktoken"),
        ({"vocab.json": b"{}", "merges.txt": b""}, "vocabulary"),
        ({"README.md": b"x"}, "tokenizer.json"),
        (
            {"a/tokenizer.json": b"{}", "b/tokenizer.json": b"{}"},
            "a/tokenizer.json and b/tokenizer.json",
        ),
    ],
)
def test_a_snapshot_of_something_else_says_what_to_do(bring, files, value):
    with pytest.raises(InputError, match=value) as caught:
        bring(files)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("config", "value"),
    [
        ({"eos_token": "</s>"}, "eos_token.*'</s>'"),
        ({"eos_token": ["</s>"]}, r"eos_token.*\['</s>'\]"),
        (
            {"added_tokens_decoder": {"7": {"content": "<|endoftext|>"}}},
            r"'<\|endoftext\|>'.* 7, .* 284",
        ),
        ({"added_tokens_decoder": {"x": {"content": "<new>"}}}, "'<new>'.* x, .* none"),
        ({"added_tokens_decoder": [1]}, "added_tokens_decoder"),
    ],
)
def test_files_that_disagree_are_named(bring, config, value):
    with pytest.raises(InputError, match=value) as caught:
        bring(files_of(gpt2_like(), config))
    assert caught.value.where == "tokenizer_config.json"


@pytest.mark.parametrize("key", ["eos_token", "bos_token", "unk_token"])
def test_a_padding_that_has_another_role_is_replaced_and_told(bring, key):
    given = gpt2_like()
    given.add_special_tokens(["<other>"])
    config = {"eos_token": "<|endoftext|>", key: "<other>", "pad_token": "<other>"}
    found = bring(files_of(given, config))
    tokenizer, special = loaded(found)
    assert special.padding == tokenizer.token_to_id("<|pad|>") == given.get_vocab_size()
    assert (
        f"pad_token was '<other>', which is {key} too"
        in found.read_json("training.json")["changes"]
    )


def test_a_padding_that_is_asked_for_must_be_of_its_own(bring):
    with pytest.raises(InputError, match="eos_token"):
        bring(files_of(gpt2_like()), padding_token="<|endoftext|>")


def test_a_pattern_that_never_ends_is_ended(bring, monkeypatch):
    from stages.import_tokenizer import published

    monkeypatch.setattr(published, "SECONDS", 20)
    content = json.loads(gpt2_like().to_str())
    slow = {"type": "Split", "pattern": {"Regex": "(\\S+\\s?)+$x"}, "behavior": "Isolated"}
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [{**slow, "invert": False}]}
    files = {**files_of(gpt2_like()), "tokenizer.json": json.dumps(content).encode()}
    with pytest.raises(InputError, match=r"20 s|signal|Exception"):
        bring(files)
