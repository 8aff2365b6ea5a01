"""The tokenizer: exact round trips, the same bytes every time, what `transformers` loads."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from artifacts_schema.errors import InputError, Stopped, UsageError
from stages.tokenizer.stage import TokenizerStage
from stages.tokenizer.training import special_tokens, train, transformers_config
from stages.tokens.chat import CHAT_TEMPLATE, encode_segments, render_segments
from stages.tokens.vocabulary import count_token_bytes

WORDS = [
    "the",
    "a",
    "cat",
    "sat",
    "on",
    "mat",
    "and",
    "dog",
    "ran",
    "far",
    "away",
    "naïve",
    "你好",
    "Привет",
    "12",
    "345",
    "def",
    "return",
    "self",
]
PRE_TOKENIZERS = ["gpt-2", "smollm", "llama-bpe", "qwen2"]
ALGORITHMS = ["bpe", "unigram", "wordpiece"]
SPECIAL = special_tokens(8)
ROLES = ["begin", "end", "padding", "turn_start", "turn_end"]
ROLES += ["fim_prefix", "fim_middle", "fim_suffix"]


def texts(seed: int = 0, documents: int = 200) -> list[str]:
    draw = random.Random(seed)
    return [
        f"{' '.join(draw.choices(WORDS, k=draw.randint(3, 40)))}.\n\n\tx = {draw.randint(0, 99)}"
        for _ in range(documents)
    ]


def trained(pre_tokenizer: str = "llama-bpe", algorithm: str = "bpe", size: int = 380) -> Tokenizer:
    return train(
        iter(texts()),
        algorithm=algorithm,
        vocabulary_size=size,
        pre_tokenizer=pre_tokenizer,
        min_frequency=2,
    )


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return trained()


@pytest.fixture(
    scope="module",
    params=[(cut, how) for cut in PRE_TOKENIZERS for how in ALGORITHMS],
    ids="-".join,
)
def each_tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return trained(*request.param)


@settings(max_examples=60, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives_encoding_and_decoding(each_tokenizer, text):
    each_tokenizer.encode_special_tokens = True
    ids = each_tokenizer.encode(text, add_special_tokens=False).ids
    lengths = count_token_bytes(each_tokenizer)
    assert each_tokenizer.decode(ids, skip_special_tokens=False) == text
    assert sum(int(lengths[i]) for i in ids) == len(text.encode())


def test_a_text_that_spells_special_tokens_survives_as_text(each_tokenizer):
    for text in ("".join(SPECIAL), " ".join(SPECIAL), *SPECIAL, *(f"a{t}1" for t in SPECIAL)):
        each_tokenizer.encode_special_tokens = True
        ids = each_tokenizer.encode(text, add_special_tokens=False).ids
        each_tokenizer.encode_special_tokens = False
        assert min(ids) >= len(SPECIAL)
        assert each_tokenizer.decode(ids) == text


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_word_of_any_length_survives_in_time(algorithm):
    """WordPiece alone would look at all 20,000 ** 3 / 6 bytes of substrings, or call it unknown."""
    made = trained(algorithm=algorithm)
    text = "naïve" * 4_000 + "你好" * 2_000
    ids = made.encode(text, add_special_tokens=False).ids
    assert made.decode(ids) == text


def test_special_tokens_leave_the_spaces_around_them(tokenizer):
    text = "cat <|im_end|> \n<|im_start|> dog"
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert [i for i in ids if i < len(SPECIAL)] == [4, 3]
    assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_special_tokens_are_first_then_bytes_then_longer_ones(each_tokenizer):
    assert [each_tokenizer.token_to_id(token) for token in SPECIAL] == list(range(16))
    lengths = count_token_bytes(each_tokenizer)
    assert lengths[:16].tolist() == [0] * 16
    assert lengths[16:272].tolist() == [1] * 256
    assert (lengths[272:] >= 2).all()
    assert 300 < len(lengths) <= 380


def test_reserved_tokens_follow_the_eight():
    made = train(
        iter(texts()),
        vocabulary_size=300,
        pre_tokenizer="gpt-2",
        min_frequency=2,
        reserved_tokens=2,
    )
    assert made.token_to_id("<|reserved_1|>") == 9
    assert made.token_to_id("<|reserved_2|>") is None
    assert special_tokens(2)[8:] == ("<|reserved_0|>", "<|reserved_1|>")


@pytest.mark.parametrize(
    ("pre_tokenizer", "expected"),
    [
        ("gpt-2", ["a", " 12345", " x", "'ll", " B"]),
        ("smollm", ["a", " ", "1", "2", "3", "4", "5", " x", "'ll", " B"]),
        ("llama-bpe", ["a", " ", "123", "45", " x", "'ll", " B"]),
        ("qwen2", ["a", " ", "1", "2", "3", "4", "5", " x", "'ll", " B"]),
    ],
)
def test_pre_tokenizers_cut_digits_and_words_as_their_namesakes(pre_tokenizer, expected):
    """Expected by hand from the regexes of GPT-2, SmolLM, Llama 3 and Qwen 2."""
    from stages.tokens.pre_tokenizers import build_pre_tokenizer

    cut = build_pre_tokenizer(pre_tokenizer).pre_tokenize_str("a 12345 x'll B")
    assert [piece.replace("Ġ", " ") for piece, _ in cut] == expected


def test_llama_pattern_is_that_of_llama_3():
    """From `pre_tokenizer.pretokenizers[0].pattern.Regex` of Meta-Llama-3-8B's tokenizer.json."""
    from stages.tokens.pre_tokenizers import DIGITS, LLAMA3_PATTERN

    assert LLAMA3_PATTERN.replace("DIGITS", DIGITS["llama-bpe"]) == (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )


def test_encoding_for_a_reader_begins_with_begin_of_text(tokenizer):
    assert tokenizer.encode("cat").ids == [
        0,
        *tokenizer.encode("cat", add_special_tokens=False).ids,
    ]


PROGRAM = """
import json, random, sys
from stages.tokenizer.training import train
given = json.load(sys.stdin)
random.Random(given["order"]).shuffle(given["texts"])
made = train(
    iter(given["texts"]),
    algorithm=given["algorithm"],
    vocabulary_size=380,
    pre_tokenizer="llama-bpe",
    min_frequency=2,
)
sys.stdout.write(made.to_str(pretty=True))
"""


@pytest.mark.full
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_order_threads_and_hash_seeds_change_nothing(algorithm):
    """Many strings of equal frequency here, so ties are broken all the time.

    The library's own trainers give another tokenizer in each process, but for BPE
    (huggingface/tokenizers#1794).
    """
    root = Path(__file__).resolve().parents[3]
    expected = trained(algorithm=algorithm).to_str(pretty=True)
    for threads, seed in (("1", "1"), ("3", "2")):
        made = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            input=json.dumps({"texts": texts(), "algorithm": algorithm, "order": int(seed)}),
            env={
                "RAYON_NUM_THREADS": threads,
                "TOKENIZERS_PARALLELISM": "true",
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": str(root),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        assert made.stdout == expected


@pytest.fixture(scope="module")
def folder(tokenizer, tmp_path_factory) -> Path:
    return saved(tokenizer, tmp_path_factory.mktemp("tokenizer"))


def saved(tokenizer: Tokenizer, path: Path) -> Path:
    (path / "tokenizer.json").write_text(tokenizer.to_str(pretty=True))
    (path / "tokenizer_config.json").write_text(json.dumps(transformers_config("llama-bpe")))
    return path


def test_transformers_loads_it_with_equal_ids_and_roles(each_tokenizer, tmp_path):
    from transformers import AutoTokenizer

    each_tokenizer.encode_special_tokens = False
    loaded = AutoTokenizer.from_pretrained(saved(each_tokenizer, tmp_path))
    assert (loaded.bos_token_id, loaded.eos_token_id, loaded.pad_token_id) == (0, 1, 2)
    assert set(loaded.all_special_ids) == set(range(16))
    assert len(loaded) == each_tokenizer.get_vocab_size()
    for text in (*texts(1, 20), " two  spaces , here .", "don 't\r\n\r\n  ", "😀𝒳\x00"):
        assert loaded(text)["input_ids"] == each_tokenizer.encode(text).ids
        assert loaded.decode(loaded(text)["input_ids"], skip_special_tokens=True) == text


def test_chat_ids_and_masks_equal_those_of_transformers(tokenizer, folder):
    from transformers import AutoTokenizer

    loaded = AutoTokenizer.from_pretrained(folder)
    messages = [
        {"role": "system", "content": "\n the cat "},
        {"role": "user", "content": "\n\nnaïve 12 345?\n\n"},
        {"role": "assistant", "content": "\n\t def cat\n\n\n"},
    ]
    assert loaded.chat_template is None
    oracle = loaded.apply_chat_template(
        messages,
        chat_template=CHAT_TEMPLATE,
        return_assistant_tokens_mask=True,
        return_dict=True,
        tokenize=True,
    )
    ids, learnt = encode_segments(tokenizer, render_segments(messages))
    assert ids == oracle["input_ids"]
    assert [int(flag) for flag in learnt] == oracle["assistant_masks"]


def rows(bodies: list[str], source: str) -> list[dict[str, str]]:
    return [{"text": body, "source": source} for body in bodies]


@pytest.fixture
def train_stage(run_stage, make_documents):
    """`train_stage(shards, **config)` → the manifest of the stage on documents in those shards."""
    return lambda shards, **config: run_stage(
        TokenizerStage, config, {"documents": [make_documents(shards)]}
    )


def test_stage_writes_what_it_trained_on_and_measured(train_stage, read_input):
    shards = [texts(0), rows(texts(1), "code")]
    manifest = train_stage(shards, vocabulary_size=350, held_share=0.2)
    found = read_input(manifest, "tokenizer")
    record = found.read_json("training.json")
    assert (record["algorithm"], record["padded_vocabulary_size"]) == ("bpe", 384)
    assert record["special_tokens"] == dict(zip(ROLES, range(8), strict=True))
    assert record["short"] == []
    assert record["vocabulary_size"] == 350 == manifest.counts["vocabulary_size"]
    assert record["pre_tokenizer"] == "llama-bpe"
    held = sum(source["documents"] for source in record["held"].values())
    assert 40 < held < 120  # 400 draws at 0.2: mean 80, deviation 8
    assert record["documents"] + held == 400
    assert manifest.conservation.out == 400  # Held documents are measured on: not lost.
    assert manifest.conservation.dropped == {}
    assert manifest.counts["documents_held"] == held
    code = record["held"]["code"]
    assert code["tokens_per_word"] == round(code["tokens"] / code["words"], 4) > 1
    assert Tokenizer.from_str(found.read_bytes("tokenizer.json").decode()).get_vocab_size() == 350


def test_a_cap_on_bytes_draws_documents_evenly(train_stage, read_input):
    web, code = texts(0, 1000), texts(1, 1000)
    quarter = sum(len(text.encode()) for text in web + code) // 4
    shards = [web, rows(code, "code")]
    manifest = train_stage(shards, vocabulary_size=300, max_bytes=quarter, held_share=0.0)
    record = read_input(manifest, "tokenizer").read_json("training.json")
    for source in ("web", "code"):
        assert 200 < record["sources"][source]["documents"] < 300  # mean 250, deviation 14
    assert record["drawn_share"] == pytest.approx(0.25, abs=1e-4)


def test_too_little_text_gives_a_smaller_vocabulary_and_says_so(train_stage):
    manifest = train_stage([["abab abab"]], vocabulary_size=1000)
    assert 272 < manifest.counts["vocabulary_size"] < 1000


def test_a_stop_while_texts_are_read_ends_the_training():
    def stopping():
        yield "some text"
        raise Stopped("stopped on request")

    with pytest.raises(Stopped):
        train(stopping(), vocabulary_size=300, pre_tokenizer="llama-bpe", min_frequency=2)


def test_no_documents_is_an_input_error(train_stage):
    with pytest.raises(InputError, match="document"):
        train_stage([[]], vocabulary_size=300)


def test_a_vocabulary_without_room_for_the_bytes_is_refused(train_stage):
    with pytest.raises(UsageError, match="vocabulary_size"):
        train_stage([["x"]], vocabulary_size=260)
    with pytest.raises(UsageError, match=r"28 .* 256 .* 284"):
        train_stage([["x"]], vocabulary_size=280, reserved_tokens=20)
