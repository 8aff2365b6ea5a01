"""Encoding: a little text at a time, by either encoder the same ids, or a refusal."""

from __future__ import annotations

import importlib.util
import json
import random
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
import zstandard

from artifacts_schema.errors import UsageError
from stages.pack import encoder as probe
from stages.pack import encoder as texts
from stages.pack.encoder import HOSTILE, Encoded, GigatokenEncoder, TokenizersEncoder
from stages.pack.plan import Plan
from stages.tokenizer.training import train
from stages.tokens.vocabulary import SpecialTokens

needs_gigatoken = pytest.mark.skipif(
    importlib.util.find_spec("gigatoken") is None,
    reason="needs gigatoken: pip install 'ingot[dev]'",
)


def plan_of(tokenizer, encoder="tokenizers"):
    size = tokenizer.get_vocab_size()
    tokens = SpecialTokens(0, 1, 2)
    return Plan(tokenizer.to_str(), tokens, size, size, 64, "best_fit", 0.0, 0, encoder=encoder)


def ids_of(encoded):
    borders = encoded.starts.tolist()
    return [encoded.ids[a:b].tolist() for a, b in pairwise(borders)]


@pytest.fixture(scope="session")
def real_texts(request):
    """Every document of the shared text, with those of other than English in all their scripts."""
    from pathlib import Path

    folder = Path(__file__).resolve().parents[4] / "shared" / "data" / "text"
    if not folder.is_dir():
        pytest.skip("needs the shared data folder beside the project")
    found = []
    for path in sorted(folder.glob("*.jsonl.zst")):
        with path.open("rb") as file:
            raw = zstandard.ZstdDecompressor().stream_reader(file).read()
        for line in raw.splitlines():
            row = json.loads(line)
            found += [value for key, value in row.items() if key in ("text", "context")]
    return found


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string()])
def test_ids_are_those_of_the_library_one_text_at_a_time(tokenizer, type_):
    texts = pa.array(["skipped", *HOSTILE], type_).slice(1)
    plan = plan_of(tokenizer)
    reference = plan.tokenizer()
    expected = [reference.encode(t, add_special_tokens=False).ids for t in HOSTILE]
    assert ids_of(TokenizersEncoder(plan.tokenizer())(texts)) == expected
    if importlib.util.find_spec("gigatoken"):
        assert ids_of(GigatokenEncoder(plan.description)(texts)) == expected
    assert not {0, 1, 2, 3, 4, 5, 6, 7} & {i for ids in expected for i in ids}, "no special token"


@pytest.mark.full
@needs_gigatoken
@pytest.mark.parametrize(
    "every", [pytest.param(40, id="some"), pytest.param(1, id="all", marks=pytest.mark.full)]
)
@pytest.mark.parametrize("name", ["gpt-2", "llama-bpe", "qwen2"])
def test_gigatoken_gives_the_same_ids_on_every_real_document(real_texts, name, every):
    """All documents of the shared text, in 20 languages, by a vocabulary of their own."""
    sample = random.Random(0).sample(real_texts, min(20_000 // every, len(real_texts)))
    tokenizer = train(iter(sample), vocabulary_size=4_000, pre_tokenizer=name, min_frequency=2)
    plan = plan_of(tokenizer)
    fast = GigatokenEncoder(plan.description)
    chosen = real_texts[::every]
    for begin in range(0, len(chosen), 1_000):
        some = pa.array(chosen[begin : begin + 1_000], pa.string())
        probe.check_ids(fast, plan, some, "a document")


@needs_gigatoken
def test_gigatoken_has_no_smollm_and_says_so():
    tokenizer = train(iter(HOSTILE), vocabulary_size=300, pre_tokenizer="smollm", min_frequency=2)
    with pytest.raises(UsageError, match="Unsupported"):
        GigatokenEncoder(tokenizer.to_str())


@needs_gigatoken
@pytest.mark.parametrize("encoder", ["gigatoken", "auto"])
def test_the_encoder_changes_no_byte(pack, corpus, encoder):
    shards = corpus()
    shards[0][0]["text"] = "".join(HOSTILE)
    first = pack(shards, fim={"sources": ["code*"]}, execution={"encoder": encoder})
    assert first.telemetry["encoder"] == "gigatoken"
    assert pack(shards, fim={"sources": ["code*"]}, force=True).outputs == first.outputs


@needs_gigatoken
def test_auto_encodes_by_tokenizers_what_gigatoken_has_not(pack, corpus, tokenizer_files, caplog):
    texts = (row["text"] for shard in corpus() for row in shard)
    other = train(texts, vocabulary_size=390, pre_tokenizer="smollm", min_frequency=2)
    files = tokenizer_files(other)
    manifest = pack(corpus(), execution={"encoder": "auto"}, files=files)
    assert manifest.telemetry["encoder"] == "tokenizers"
    assert "Unsupported" in caplog.text
    with pytest.raises(UsageError, match="Unsupported"):
        pack(corpus(), execution={"encoder": "gigatoken"}, files=files, force=True)


class Wrong(TokenizersEncoder):
    """Gives another id for the last token of each text that has a marked word."""

    def __init__(self, description, word="345"):
        super().__init__(plan_of_description(description).tokenizer())
        self.word = word

    def __call__(self, texts):
        found = super().__call__(texts)
        ids = found.ids.copy()
        for number, text in enumerate(texts.to_pylist()):
            if self.word in text:
                ids[found.starts[number + 1] - 1] += 1
        return Encoded(ids, found.starts)


def plan_of_description(description):
    return Plan(description, SpecialTokens(0, 1, 2), 390, 448, 64, "best_fit", 0.0, 0)


@pytest.fixture
def wrong_encoder(monkeypatch):
    """In the place of gigatoken one that errs on texts with a word."""
    probe.load_encoder.cache_clear()

    def put(word):
        monkeypatch.setattr(probe, "GigatokenEncoder", lambda text: Wrong(text, word))

    yield put
    probe.load_encoder.cache_clear()


@pytest.mark.parametrize(
    ("word", "where"),
    [
        ("٣٤٥", "a probe text"),
        ("first document", "one of the first documents"),
        ("second shard", r"one of the first documents of 00001.parquet"),
    ],
)
def test_other_ids_are_refused_with_the_first_difference(pack, corpus, wrong_encoder, word, where):
    shards = corpus()
    shards[0][0]["text"], shards[1][2]["text"] = "the first document", "the second shard"
    wrong_encoder(word)
    with pytest.raises(
        UsageError,
        match=rf"{where}, '.*{word}.*token \d+ is",
    ):
        pack(shards, execution={"encoder": "gigatoken"})


def test_a_missing_gigatoken_names_the_extra(pack, corpus, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gigatoken", None)
    with pytest.raises(UsageError, match=r"ingot\[gigatoken\]"):
        pack(corpus(20), execution={"encoder": "gigatoken"})
    assert pack(corpus(20), execution={"encoder": "auto"}).telemetry["encoder"] == "tokenizers"


def test_no_more_text_is_read_at_once_than_asked_for(make_documents, read_input):
    draw = random.Random(0)
    rows = ["x" * int(draw.lognormvariate(4, 2)) for _ in range(3_000)]
    rows[700] = "long " * 20_000
    (shard,) = read_input(*make_documents([rows])).shards()
    found = [batch["text"].to_pylist() for batch in texts.batches(shard, ["text"], 10_000)]
    assert [text for batch in found for text in batch] == rows
    assert all(sum(map(len, batch)) <= 10_000 or len(batch) == 1 for batch in found)
    assert len(found) < 3 * sum(map(len, rows)) / 10_000 + 50


def test_batches_do_not_show_in_the_bytes(pack, corpus, monkeypatch):
    first = pack(corpus(), fim={"sources": ["*"]})
    monkeypatch.setattr(TokenizersEncoder, "text_bytes", 300)
    assert pack(corpus(), fim={"sources": ["*"]}, force=True).outputs == first.outputs


@pytest.mark.full
@pytest.mark.parametrize("strategy", ["best_fit", "best_fit_crop"])
def test_real_text_fills_sequences(pack, read_shards, real_texts, strategy):
    """At 2,048 tokens, real documents in shards of 40: more than 99.9 % of positions."""
    draw = random.Random(0)
    pieces = [
        text[at : at + int(draw.lognormvariate(7.5, 1)) + 20]
        for text in real_texts
        for at in range(0, min(len(text), 6_000), 3_000)
    ]
    chosen = draw.sample(pieces, 2_500)
    shards = [chosen[n : n + 40] for n in range(0, len(chosen), 40)]
    manifest = pack(
        shards, sequence_length=2048, held_out_share=0.0, strategy=strategy, repetition=None
    )
    source = read_shards(manifest, "train")["sources"]["web"]
    assert source["tokens"] / (source["sequences"] * 2048) > 0.999
    assert strategy != "best_fit" or source["cut"] == 0
    assert source["documents"] == sum(bool(text.strip()) for text in chosen)
    lost = source["dropped_tokens"]["cropped"]
    assert lost == manifest.counts["train_cropped_tokens"]
    assert (lost > 0) == (strategy == "best_fit_crop")


@needs_gigatoken
def test_no_texts_have_no_ids(tokenizer):
    empty = pa.array([], pa.string())
    for encoder in (TokenizersEncoder(tokenizer), GigatokenEncoder(tokenizer.to_str())):
        found = encoder(empty)
        assert (found.ids.tolist(), found.starts.tolist()) == ([], [0])
        assert found.ids.dtype == np.uint32
