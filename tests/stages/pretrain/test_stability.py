"""Bad documents in the corpus of a real pretraining run: found, named, and left out."""

import json
import random

import pytest

from artifacts_schema.errors import IngotError
from artifacts_schema.kinds import KINDS
from flows.analysis.training_batches import open_run_data
from stages.pack.stage import Pack
from stages.pretrain.config import PretrainConfig
from stages.pretrain.plan import make_plan
from stages.pretrain.task import PretrainTask
from stages.tokenizer.stage import TokenizerStage
from stages.training.token_shards import TokenShards

JUNK = 4
"""Documents of characters at random, among 300 that all say the same."""


@pytest.fixture
def corpus(make_documents):
    """One sentence again and again, and some documents of bytes that mean nothing."""
    draw = random.Random(5)
    rows = [{"source": "web", "text": "the cat sat on the mat and " * 8} for _ in range(300)]
    for place in draw.sample(range(300), JUNK):
        noise = "".join(chr(draw.randrange(33, 0x2000)) for _ in range(120))
        rows[place] = {"source": "web", "text": noise}
    return make_documents([rows])


@pytest.fixture
def junk(corpus, read_table):
    manifest, output = corpus
    table = read_table(manifest, output)
    rows = zip(table["doc_id"].to_pylist(), table["text"].to_pylist(), strict=True)
    return {doc_id for doc_id, text in rows if not text.startswith("the cat")}


@pytest.fixture
def inputs(corpus, run_stage):
    settings = {"vocabulary_size": 300, "held_share": 0.0}
    tokenizer = [(run_stage(TokenizerStage, settings, {"documents": [corpus]}), "tokenizer")]
    shards = run_stage(
        Pack,
        {"sequence_length": 64, "held_out_share": 0.0},
        {"documents": [corpus], "tokenizer": tokenizer},
    )
    return {"train": [(shards, "train")], "tokenizer": tokenizer}


PHASES = [
    {
        "tokens": 64 * 4 * 90,
        "sequences_per_batch": 4,
        "learning_rate": {"peak": 7e-3, "warmup_share": 0.1},
    }
]
WATCHED = {"window": 24, "strikes": 1, "margin": 3, "rollbacks": 20, "stall": 30}
SHAPE = {"width": 32, "layers": 2, "heads": 2, "kv_heads": 1, "context": 64}


@pytest.fixture
def run(pretrain, inputs):
    def train(execution=None, **stability):
        watched = {**WATCHED, **stability}
        return pretrain(inputs, execution, phases=PHASES, stability=watched, model=SHAPE)

    return train


def events(read_table, manifest):
    return read_table(manifest, "training_run", "events.parquet").to_pylist()


def digests(manifest):
    return {name: output.digest for name, output in manifest.outputs.items()}


def steps_that_read(documents, inputs, read_input):
    """By the index of the shards and the clock read backwards, not by what the run says."""
    shards = TokenShards([read_input(*inputs["train"][0])])
    settings = {"phases": PHASES, "model": SHAPE}
    clock = make_plan(PretrainConfig.parse(settings, where="test"), shards).clock
    found = shards.sequences_of(documents)
    return {step for name, lines in found.items() for step in clock.steps_of(name, lines.tolist())}


def test_spikes_are_the_steps_that_read_bad_documents_and_those_are_listed(
    run, junk, inputs, read_table, read_input
):
    manifest = run(strikes=24)
    found = events(read_table, manifest)
    assert {one["kind"] for one in found} == {"spike"}
    spikes = {one["training_step"] for one in found}
    reading = steps_that_read(junk, inputs, read_input)
    assert spikes <= reading
    # Towards the end the loss of all else is so low that none goes unseen.
    assert {step for step in reading if step > 70} <= spikes
    assert manifest.counts["skipped_updates"] == len(found) >= 2

    excluded = read_table(manifest, "training_run", "excluded.parquet")
    assert steps_that_read(excluded["doc_id"].to_pylist(), inputs, read_input) >= spikes
    # A bad document and whose pieces lie in the same sequence, not all of the step's.
    assert junk & set(excluded["doc_id"].to_pylist())
    rows = [json.loads(one["details"])["rows"] for one in found]
    assert all(1 <= len(one) <= 2 for one in rows)
    assert len(excluded) <= 3 * sum(map(len, rows))
    KINDS["exclusions"].tables["*.parquet"].check(excluded.schema, where="here")
    assert all(len(reason) <= 200 for reason in excluded["reason"].to_pylist())


def test_with_rollbacks_their_data_is_left_out_and_said(run, store, read_table, read_input):
    manifest = run()
    found = events(read_table, manifest)
    account = read_input(manifest, "training_run").read_json("run.json")
    backs = [json.loads(one["details"]) for one in found if one["kind"] == "rollback"]
    assert 1 <= len(backs) == manifest.counts["rollbacks"]
    metrics = read_table(manifest, "training_run", "metrics.parquet")
    left_out = {
        step
        for first, last in account["left_out_training_steps"]
        for step in range(first, last + 1)
    }
    for back in backs:
        assert set(range(back["first"], back["last"] + 1)) <= left_out
        assert back["last"] - back["first"] >= WATCHED["margin"]
    assert metrics["training_step"].to_pylist() == [
        step for step in range(1, 91) if step not in left_out
    ]
    state = read_input(manifest, "checkpoint").read_json("state.json")
    assert state["left_out"] == account["left_out_training_steps"]
    # `ingot trace` asks this clock what a training step read.
    clock = open_run_data(store, manifest, where="test").clock
    assert {step for step in range(1, 91) if clock.skipped(step)} == left_out


@pytest.mark.full
@pytest.mark.parametrize(
    "point",
    [
        pytest.param("rollback decided", marks=pytest.mark.full),
        pytest.param("rollback cleared", marks=pytest.mark.full),
        "checkpoint written",
    ],
)
def test_killed_in_a_rollback_it_commits_the_same_bytes(run, store, killed_at, point):
    whole = digests(run())
    manifest = run()
    store.backend.remove(f"artifacts/pretrain/{manifest.key}.json")
    with killed_at(point, visit=1 if "rollback" in point else 5):
        run()
    assert digests(run({"checkpoint_every": 7})) == whole


def test_where_rollbacks_are_not_enough_the_verdict_names_documents_and_lists_all(
    run, junk, inputs, read_input, tmp_path
):
    """The first trouble stops it: every document of the rows that stood out is on the list."""
    said = r"training step (\d+): .* trouble at training steps \d+; documents: \d+ of web \("
    with pytest.raises(IngotError, match=said) as raised:
        run(rollbacks=0)
    (listed,) = tmp_path.rglob("suspects.txt")
    doc_ids = listed.read_text().split()
    assert set(doc_ids) & junk
    assert all(doc_id in str(raised.value) for doc_id in doc_ids[:3])
    step = int(raised.value.where.split()[-1])
    assert all(step in steps_that_read([doc_id], inputs, read_input) for doc_id in doc_ids)


def test_a_step_that_overflows_names_the_module_the_micro_batch_and_the_documents(
    packed, pretrain, monkeypatch
):
    """The second block's MLP overflows in the second micro-batch of training step 5."""
    plain = PretrainTask.micro_batches

    def overflowing(self, model, batch):
        calls = []

        def hook(module, given, result):
            calls.append(1)
            return result * (float("inf") if len(calls) == 2 else 1.0)

        if batch.training_step != 5:
            yield from plain(self, model, batch)
            return
        handle = model.blocks[1].mlp.register_forward_hook(hook, prepend=True)
        try:
            yield from plain(self, model, batch)
        finally:
            handle.remove()

    monkeypatch.setattr(PretrainTask, "micro_batches", overflowing)
    with pytest.raises(IngotError, match=r"training step 5: 1\b") as raised:
        pretrain(packed())
    assert (
        "first not finite: the forward pass of blocks.1.mlp of micro-batch 1; documents: "
        in str(raised.value)
    )
