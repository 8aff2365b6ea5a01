"""A teacher's records over packed shards, and pretraining and fine-tuning on them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import load

from artifacts_schema.errors import InputError, UsageError
from stages.engine.page import Artifact
from stages.engine.protocol import Upstream
from stages.examples.messages import message
from stages.export.provenance import Provenance
from stages.model.files import read_model
from stages.pack.stage import PackChat
from stages.pretrain.config import PretrainConfig
from stages.pretrain.page import page as run_page
from stages.pretrain.stage import Pretrain, Sft
from stages.teacher.page import page
from stages.teacher.records import records_of
from stages.teacher.stage import Teacher
from stages.training.config import TrainingExecution
from stages.training.distillation import record_type
from stages.training.token_shards import IGNORED, TokenShards

TOP = 5


@pytest.fixture
def taught(run_stage, packed, pretrain):
    """`taught(top=5, seed=0)` → inputs of pretrain with the records of a trained teacher."""

    def make(top=TOP, execution=None, length=32):
        inputs = packed(sequence_length=length)
        model = {"width": 48, "layers": 2, "heads": 2, "kv_heads": 1, "context": length}
        teacher = pretrain(inputs, model=model)
        roles = {
            "checkpoint": [(teacher, "checkpoint")],
            "train": inputs["train"],
            "tokenizer": inputs["tokenizer"],
        }
        how = {"device": "cpu", "threads": 1, "batch_tokens": 128, **(execution or {})}
        make.roles, make.teacher = roles, teacher
        make.made = run_stage(Teacher, {"top": top}, roles, how)
        return {**inputs, "teacher": [(make.made, "teacher")]}

    return make


def read_records(read_input, made, shards):
    """[sequences, L] Of all sources, in the order of the token files."""
    output = read_input(made, "teacher")
    top = output.read_json("teacher.json")["top"]
    return {
        path: np.frombuffer(output.read_bytes(path), record_type(top)).reshape(
            -1, shards.sequence_length
        )
        for path in output.paths("*/*.teacher")
    }


def test_records_are_the_softmax_of_plain_passes(taught, read_input):
    inputs = taught()
    train = read_input(*inputs["train"][0])
    shards = TokenShards([train])
    model = read_model(read_input(taught.teacher, "checkpoint"))
    seen = 0
    for path, records in read_records(read_input, taught.made, shards).items():
        source = shards.sources.index(path.split("/")[0])
        for sequence in (0, len(records) - 1):
            batch = shards.batch(np.array([source]), np.array([sequence]))
            for document in range(int(batch.documents_BL.max()) + 1):
                places = np.flatnonzero(batch.documents_BL[0] == document)
                tokens = torch.from_numpy(batch.tokens_BL[0, places].astype(np.int64))
                with torch.no_grad():
                    expected = model(tokens[None])[0].log_softmax(-1)
                for place, own in zip(places, expected, strict=True):
                    record = records[sequence, place]
                    if batch.targets_BL[0, place] == IGNORED:
                        assert not record["log_probs"].any()
                        continue
                    best = own.topk(TOP)
                    np.testing.assert_allclose(
                        record["log_probs"][:TOP], best.values.numpy(), atol=2e-5
                    )
                    others = np.log(max(1 - best.values.exp().sum().item(), 1e-12))
                    assert record["log_probs"][TOP] == pytest.approx(others, abs=1e-3)
                    ids = torch.from_numpy(record["ids"].astype(np.int64))
                    np.testing.assert_allclose(own[ids].numpy(), best.values.numpy(), atol=2e-5)
                    seen += 1
    assert seen > 50


def test_rows_beyond_the_vocabulary_are_never_on_record(make_model, packed, read_input):
    shards = TokenShards([read_input(*packed()["train"][0])])
    model = make_model(vocabulary_size=shards.vocabulary_size + 40, context=32)
    with torch.no_grad():
        model.embedding.weight.zero_()
    batch = shards.batch(np.zeros(2, dtype=np.int64), np.arange(2))
    records = records_of(model, batch, shards.vocabulary_size, 4)
    chosen = records[batch.targets_BL != IGNORED]
    assert (chosen["ids"] < shards.vocabulary_size).all()
    assert all(len(set(row.tolist())) == 4 for row in chosen["ids"])
    share = np.log(1 / (shards.vocabulary_size + 40))
    np.testing.assert_allclose(chosen["log_probs"][:, :4], share, atol=1e-5)


def test_a_killed_teacher_goes_on_to_the_same_bytes(taught, run_stage, store, killed_at):
    taught()
    whole = taught.made
    store.backend.remove(f"artifacts/teacher/{whole.key}.json")
    how = {"device": "cpu", "threads": 1, "batch_tokens": 128}
    with killed_at("shard recorded"):
        run_stage(Teacher, {"top": TOP}, taught.roles, how)
    again = run_stage(Teacher, {"top": TOP}, taught.roles, how)
    assert again.output("teacher").digest == whole.output("teacher").digest


def test_a_teacher_of_another_vocabulary_is_refused_by_name(packed, pretrain, run_stage):
    one, other = packed(), packed(vocabulary_size=280, seed=5)
    teacher = pretrain(other)
    roles = {"checkpoint": [(teacher, "checkpoint")], "train": one["train"]}
    for tokenizer, problem in (
        (one["tokenizer"], f"teacher {teacher.key[:12]} has another vocabulary"),
        (other["tokenizer"], "did not pack the token shards"),
    ):
        with pytest.raises(InputError, match=problem):
            run_stage(Teacher, {}, {**roles, "tokenizer": tokenizer}, {"device": "cpu"})


def test_more_tokens_than_the_vocabulary_has_are_refused(taught):
    with pytest.raises(InputError, match="the vocabulary has 300"):
        taught(top=300)


def test_the_page_shows_how_sure_the_teacher_is(taught, store, read_input):
    inputs = taught()
    (table,) = page(Artifact(store, taught.made))
    shards = TokenShards([read_input(*inputs["train"][0])])
    records = read_records(read_input, taught.made, shards)
    for source, targets, entropy, others in table.rows:
        own = np.concatenate([r.ravel() for path, r in records.items() if path.startswith(source)])
        own = own["log_probs"][own["log_probs"].any(axis=1)].astype(np.float64)
        assert targets == len(own)
        assert entropy == pytest.approx(-(np.exp(own) * own).sum(1).mean(), rel=1e-4)
        assert others == pytest.approx(np.exp(own[:, -1]).mean(), rel=1e-4)


# Learning from it ---------------------------------------------------------------------------------


def metrics_of(read_table, made):
    return read_table(made, "training_run", "metrics.parquet").to_pylist()


@pytest.mark.parametrize("kind", ["forward", "reverse", "mixed"])
def test_a_student_comes_closer_to_its_teacher(taught, pretrain, read_table, store, kind):
    made = pretrain(taught(), distillation={"divergence": kind})
    rows = metrics_of(read_table, made)
    title = f"Divergence from the teacher ({kind}), nats"
    (figure,) = [one for one in run_page(Artifact(store, made)) if one.title == title]
    assert figure.series[0].y == tuple(row["divergence"] for row in rows)
    assert rows[-1]["divergence"] < rows[0]["divergence"] / 1.5
    for row in rows:
        assert row["loss"] == pytest.approx(row["divergence"], rel=1e-5)


def test_a_teacher_that_learns_from_itself_diverges_by_nothing(taught, pretrain, read_table):
    inputs = taught()
    inputs["checkpoint"] = taught.roles["checkpoint"]
    model = {"width": 48, "layers": 2, "heads": 2, "kv_heads": 1, "context": 32}
    first = metrics_of(read_table, pretrain(inputs, model=model, distillation={}))[0]
    assert abs(first["divergence"]) < 1e-5


def test_weight_mixes_the_divergence_with_the_cross_entropy_of_pretraining(
    taught, pretrain, read_table
):
    inputs = taught()
    half = metrics_of(read_table, pretrain(inputs, distillation={"weight": 0.5}))[0]
    del inputs["teacher"]
    plain = metrics_of(read_table, pretrain(inputs))[0]
    assert half["loss"] == pytest.approx((plain["loss"] + half["divergence"]) / 2, rel=1e-5)
    for name in ("loss/web", "targets/web"):
        assert half[name] == pytest.approx(plain[name], rel=1e-5)


def test_a_student_does_not_depend_on_micro_batches_nor_on_chunks(taught, pretrain, read_input):
    inputs = taught()
    weights = [
        load(
            read_input(
                pretrain(inputs, {"micro_batch": size, **more}, distillation={}), "checkpoint"
            ).read_bytes("model.safetensors")
        )
        for size, more in ((4, {}), (1, {}), (3, {"logits_in_memory": 3_000}))
    ]
    for other in weights[1:]:
        for name, tensor in weights[0].items():
            torch.testing.assert_close(other[name], tensor, rtol=0, atol=1e-5)


@pytest.mark.parametrize("visit", [1, 2])
def test_a_killed_student_goes_on_to_the_same_bytes(taught, pretrain, store, killed_at, visit):
    inputs = taught()
    whole = pretrain(inputs, distillation={})
    store.backend.remove(f"artifacts/pretrain/{whole.key}.json")
    with killed_at("checkpoint written", visit):
        pretrain(inputs, distillation={})
    again = pretrain(inputs, distillation={})
    assert {n: o.digest for n, o in again.outputs.items()} == {
        n: o.digest for n, o in whole.outputs.items()
    }


def test_a_teacher_of_other_shards_is_refused(taught, pretrain, packed):
    inputs = taught()
    other = packed(seed=4)
    mixed = {**other, "teacher": inputs["teacher"]}
    with pytest.raises(InputError, match="was made of token shards") as caught:
        pretrain(mixed, distillation={})
    assert caught.value.where == f"teacher {taught.made.key[:12]}"


def test_the_card_of_a_student_names_its_teacher(taught, pretrain, read_input):
    inputs = taught()
    made = pretrain(inputs, distillation={})
    data = Provenance.read(read_input(made, "checkpoint")).training_data()
    read = {(one.trained, one.data.kind) for one in data}
    student, teacher = (("pretrain", one.key) for one in (made, taught.teacher))
    assert read == {
        (student, "token_shards"),
        (student, "teacher_log_probabilities"),
        (teacher, "token_shards"),
    }


def test_fine_tuning_learns_from_a_teacher_too(taught, run_stage, given, read_table):
    """Of conversations, records are of what is learnt alone."""
    inputs = taught(length=64)
    conversations = [
        {
            "conversation_id": f"{number:032x}",
            "source": "chat",
            "messages": [message("user", "the cat sat"), message("assistant", "on a mat")],
            "tools": None,
            "metadata": "{}",
        }
        for number in range(24)
    ]
    shards = run_stage(
        PackChat,
        {"sequence_length": 64, "held_out_share": 0.2},
        {
            "conversations": [given("conversations", {"0.parquet": conversations})],
            "tokenizer": inputs["tokenizer"],
        },
    )
    roles = {
        "checkpoint": taught.roles["checkpoint"],
        "train": [(shards, "train")],
        "tokenizer": inputs["tokenizer"],
    }
    made = run_stage(Teacher, {"top": 3}, roles, {"device": "cpu", "threads": 1})
    phase = {"epochs": 2, "sequences_per_batch": 2, "learning_rate": {"peak": 1e-3}}
    tuned = run_stage(
        Sft,
        {"phases": [phase], "precision": "fp32", "distillation": {"weight": 0.5}},
        {**roles, "teacher": [(made, "teacher")]},
        {"device": "cpu", "threads": 1, "preflight": "off"},
    )
    rows = metrics_of(read_table, tuned)
    assert abs(rows[0]["divergence"]) < 1e-5  # The student begins as its teacher.
    targets = sum(row["targets/chat"] for row in rows)
    assert made.counts["targets"] * 2 == pytest.approx(targets, rel=0.1)
    assert rows[-1]["loss"] < rows[0]["loss"]


def check(config, inputs):
    Pretrain.check_plan(PretrainConfig(**config), inputs)


def test_a_plan_refuses_a_teacher_that_nobody_reads_and_a_reader_without_one(taught, store):
    shards = Upstream("pack", "token_shards", "train")
    tokenizer = Upstream("tokenizer", "tokenizer", "tokenizer")
    teacher = Upstream("teacher", "teacher_log_probabilities", "teacher")
    inputs = {"train": [shards], "tokenizer": [tokenizer]}
    with pytest.raises(UsageError, match="there is a teacher"):
        check({}, {**inputs, "teacher": [teacher]})
    with pytest.raises(UsageError, match="1 token shards have 0 teachers"):
        check({"distillation": {}}, inputs)
    with pytest.raises(UsageError, match="without a z_loss"):
        check({"distillation": {}, "objective": {"z_loss": 1e-4}}, {**inputs, "teacher": [teacher]})
    with pytest.raises(UsageError, match="read by one process"):
        Pretrain.check_layout(
            PretrainConfig(distillation={}), TrainingExecution(layout={"data": 2}), inputs
        )
