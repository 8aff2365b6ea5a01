"""A tiny model learns planted documents by heart; how many depends on their copies."""

import random

import numpy as np
import pytest
import torch

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.store.gc import remove_artifact
from stages.engine.page import Artifact, make_page
from stages.memorisation.extraction import predicted_tokens
from stages.memorisation.stage import Memorisation
from stages.model.files import model_files
from stages.pack.stage import Pack
from stages.scoring.generation import Generator, Sampling
from stages.tokenizer.training import transformers_config
from stages.training.token_shards import TokenShards

PROMPT = CONTINUATION = 8
SMALL = {"prompt_tokens": PROMPT, "continuation_tokens": CONTINUATION, "copies": [1, 4, 16, 64]}
PLANTED = {1: 24, 4: 12, 16: 8, 64: 6}
"""Copies of a document → how many different ones have so many."""


def made_text(random):
    return "".join(random.choices("abcdefghijklmnopqrstuvwxyz ", k=40))


@pytest.fixture(scope="module")
def texts():
    """Random letters, so that nothing but memory predicts them."""
    draws = random.Random(5)
    return [
        text
        for copies, count in PLANTED.items()
        for text in [made_text(draws) for _ in range(count)]
        for _ in range(copies)
    ]


@pytest.fixture
def tokenizer_artifact(given, tokenizer):
    described = {"vocabulary_size": 400, "padded_vocabulary_size": 400}
    return given(
        "tokenizer",
        {
            "tokenizer.json": tokenizer.to_str().encode(),
            "tokenizer_config.json": transformers_config("llama-bpe"),
            "training.json": described,
        },
    )


@pytest.fixture
def pack(run_stage, make_documents, tokenizer_artifact):
    """`pack(texts, name)` → train shards of all of them."""

    def run(texts, name="given"):
        draws = random.Random(name)
        rows = draws.sample(texts, len(texts))
        config = {"sequence_length": 64, "held_out_share": 0.0}
        inputs = {"documents": [make_documents([rows], name)], "tokenizer": [tokenizer_artifact]}
        return run_stage(Pack, config, inputs), "train"

    return run


@pytest.fixture
def held_out(pack):
    draws = random.Random(6)
    return pack([made_text(draws) for _ in range(50)], "other")


@pytest.fixture
def train(pack, texts):
    return pack(texts)


def learn(model, shards, epochs):
    """A few epochs of AdamW over all rows."""
    torch.manual_seed(0)
    (source,) = shards.sources
    rows = shards.sequences[source]
    batch = shards.batch(np.zeros(rows, np.int64), np.arange(rows))
    tokens, targets, documents = (
        torch.from_numpy(array).long()
        for array in (batch.tokens_BL, batch.targets_BL, batch.documents_BL)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
    for _ in range(epochs):
        for chosen in torch.randperm(rows).split(16):
            logits = model(tokens[chosen], documents_BL=documents[chosen])
            loss = torch.nn.functional.cross_entropy(
                logits.flatten(0, 1), targets[chosen].flatten(), ignore_index=-100
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval()


@pytest.fixture
def trained(given, make_model, tokenizer, train, read_input):
    """The model after it has seen the planted documents, and as a checkpoint."""
    torch.set_num_threads(1)
    model = learn(make_model(init_std=0.02), TokenShards([read_input(*train)]), epochs=14)
    files = {
        **model_files(model),
        "tokenizer.json": tokenizer.to_str().encode(),
        "tokenizer_config.json": transformers_config("llama-bpe"),
        "state.json": {"stage": "pretrain", "training_step": 1, "tokens": 1},
    }
    return model, given("checkpoint", files)


def test_extraction_rises_with_copies_and_held_out_text_stays_unknown(
    run_stage, read_table, read_input, trained, train, held_out, store, killed_at
):
    model, checkpoint = trained
    inputs = {"checkpoint": [checkpoint], "train": [train], "held_out": [held_out]}
    made = run_stage(Memorisation, SMALL, inputs)
    results = {
        (row["benchmark"], row["metric"]): row
        for row in read_table(made, "evaluation", "results.parquet").to_pylist()
    }
    groups = ["memorised/1-3", "memorised/4-15", "memorised/16-63", "memorised/64+"]
    rates = [results[group, "extracted"]["value"] for group in groups]
    counts = [results[group, "extracted"]["count"] for group in groups]
    assert counts == list(PLANTED.values())
    assert rates == sorted(rates), rates
    assert rates[0] < 0.2
    assert rates[-1] > 0.8
    unseen = results["memorised/held_out", "extracted"]
    assert (unseen["value"], unseen["count"]) == (0.0, 50)
    assert results["memorised/1-3", "extracted"]["baseline"] == 0.0
    held = results["memorised/held_out", "tokens_predicted"]
    assert held["value"] < 0.3
    assert results[groups[-1], "tokens_predicted"]["baseline"] == pytest.approx(held["value"])
    assert held["count"] == 50 * CONTINUATION
    assert made.counts["documents"] == sum(copies * count for copies, count in PLANTED.items())
    assert made.counts["sequences_64+"] == 6

    # Greedy decoding gives back the same sequences.
    shards = read_input(*train)
    items = read_table(made, "evaluation", "items.parquet").to_pylist()
    extracted = {row["item_id"]: row["value"] for row in items if row["metric"] == "extracted"}
    generator = Generator(model)
    index = read_table(train[0], "train", "web/00000.index.parquet").to_pylist()
    tokens = np.frombuffer(shards.read_bytes("web/00000.tokens"), "<u2").reshape(-1, 64)
    tried = 0
    for row in index:
        if row["doc_id"] not in extracted or row["document_start"]:
            continue
        ids = tokens[row["sequence"], row["start"] :][: 1 + PROMPT + CONTINUATION].tolist()
        written = generator.stream(
            ids[: 1 + PROMPT], Sampling(temperature=0), max_new_tokens=CONTINUATION
        )
        assert (list(written) == ids[1 + PROMPT :]) == bool(extracted[row["doc_id"]])
        tried += 1
    assert tried == sum(PLANTED.values())

    # Killed between parts, the same bytes.
    before = made.output("evaluation").digest
    remove_artifact(store, made)
    with killed_at("shard recorded", visit=4):
        run_stage(Memorisation, SMALL, inputs)
    assert run_stage(Memorisation, SMALL, inputs).output("evaluation").digest == before


def test_each_token_is_compared_with_the_likeliest_after_the_true_ones(model):
    tokens = torch.randint(0, 300, (5, 20), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        likeliest = model(tokens).argmax(-1)
    tokens[2, 15:] = likeliest[2, 14:19]  # Only the first of these is sure to be likeliest still.
    hits = predicted_tokens(model, tokens.numpy(), 6, batch_tokens=40)
    with torch.no_grad():
        expected = model(tokens)[:, 13:19].argmax(-1) == tokens[:, 14:]
    assert hits.tolist() == expected.tolist()
    assert hits[2, 1]


def test_held_out_sequences_of_the_training_text_are_left_out(
    run_stage, read_table, checkpoint, pack, store
):
    draws = random.Random(7)
    texts = [made_text(draws) for _ in range(12)]
    inputs = {
        "checkpoint": [checkpoint],
        "train": [pack(texts)],
        "held_out": [pack([*texts[:5], *[made_text(draws) for _ in range(3)]], "other")],
    }
    made = run_stage(Memorisation, SMALL, inputs)
    assert made.counts["held_out_in_training"] == 5
    rows = read_table(made, "evaluation", "results.parquet").to_pylist()
    counts = {row["benchmark"]: row["count"] for row in rows if row["metric"] == "extracted"}
    assert counts == {"memorised/1-3": 12, "memorised/held_out": 3}
    whole, _, groups = make_page(Memorisation, Artifact(store, made))
    assert [(one.name, one.count) for one in whole.estimates] == [
        ("1-3 copies", 12), ("held out", 3),
    ]  # fmt: skip
    assert groups.rows == (
        ("1-3", 12), ("4-15", 0), ("16-63", 0), ("64+", 0), ("held out", 3),
    )  # fmt: skip


def test_a_cap_draws_by_the_seed_and_a_larger_one_keeps_the_smaller(
    run_stage, read_table, checkpoint, pack
):
    draws = random.Random(8)
    inputs = {
        "checkpoint": [checkpoint],
        "train": [pack([made_text(draws) for _ in range(60)])],
    }

    def drawn(**config):
        made = run_stage(Memorisation, {**SMALL, **config}, inputs)
        rows = read_table(made, "evaluation", "items.parquet").to_pylist()
        return {row["item_id"] for row in rows}

    few, more = drawn(max_sequences=10), drawn(max_sequences=25)
    assert len(few) == 10
    assert few < more
    assert drawn(max_sequences=10, seed=1) != few


def test_what_cannot_be_tried_is_refused(run_stage, checkpoint, given, pack, tokenizer, make_model):
    draws = random.Random(9)
    inputs = {"checkpoint": [checkpoint], "train": [pack([made_text(draws) for _ in range(9)])]}
    with pytest.raises(UsageError, match="the model's context has 64"):
        run_stage(Memorisation, {"prompt_tokens": 60, "continuation_tokens": 5}, inputs)
    with pytest.raises(InputError, match="no document is as long"):
        run_stage(Memorisation, {"prompt_tokens": 50, "continuation_tokens": 10}, inputs)
    for wrong in ([4, 1], [2, 2], [0], []):
        with pytest.raises(UsageError, match="copies"):
            Memorisation.Config.parse({"copies": wrong}, where="config")
    shards = given("token_shards", {
        "shards.json": {
            "dtype": "uint16", "sequence_length": 64, "strategy": "best_fit",
            "vocabulary_size": 999, "padded_vocabulary_size": 1024, "tokenizer": "0" * 64,
            "begin_id": 0, "end_id": 1, "padding_id": 2, "sources": {},
        },
    })  # fmt: skip
    with pytest.raises(InputError, match="vocabulary of 999"):
        run_stage(Memorisation, SMALL, {**inputs, "train": [shards]})
