"""Loss trajectories of sft and preference beside TRL's trainers: one released model, one order.

TRL renders, encodes, masks, pads and trains by its own code, in float32 on one thread. Both sides
have the same batches, AdamW and learning rates.
"""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
import torch

from flows.analysis.training_batches import read_batch_documents
from stages.examples.messages import message
from stages.export.stage import Export
from stages.model.files import model_files, read_model
from stages.model.reward import from_language_model
from stages.pack.stage import PackChat
from stages.preference.stage import Preference, Reward
from stages.pretrain.stage import Sft
from stages.tokenizer.training import transformers_config
from stages.tokens.chat import CHAT_TEMPLATE, TURN_END, render_segments
from stages.tokens.chat_template import make_trained_record
from stages.tokens.vocabulary import BEGIN_OF_TEXT, END_OF_TEXT, PADDING
from stages.training.examples import ExampleClock

trl = pytest.importorskip("trl")
datasets = pytest.importorskip("datasets")
transformers = pytest.importorskip("transformers")

pytestmark = [
    pytest.mark.full,
    pytest.mark.filterwarnings("ignore"),
]

STEPS, BATCH, LENGTH, SEED = 20, 4, 64, 3
SAID = ("user", "assistant")
WORDS = ("say", "yes", "or", "no", "to", "the", "man", "what", "is", "colour", "sky", "today")
TOLERANCE = 1e-4
EXECUTION = {
    "device": "cpu",
    "threads": 1,
    "micro_batch": BATCH,
    "preflight": "off",
    "tensorboard": False,
}
OPTIMIZER = {"weight_decay": 0.0, "clip": 1.0}


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def draw_words(draw, least, most):
    return " ".join(draw.choices(WORDS, k=draw.randint(least, most)))


@pytest.fixture
def released(run_stage, checkpoint, read_input, tmp_path):
    """`released()` → the released checkpoint as `transformers` loads it; `released.folder`."""
    manifest = run_stage(Export, {}, {"checkpoint": [checkpoint]})
    release, folder = read_input(manifest, "release"), tmp_path / "release"
    folder.mkdir()
    for name in release.paths():
        (folder / name).write_bytes(release.read_bytes(name))
    return lambda: transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


@pytest.fixture
def wrapped(tokenizer):
    """`wrapped(end)` → the tokenizer as `transformers` sees it, `end` as its end of sequence."""
    return lambda end: transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BEGIN_OF_TEXT,
        eos_token=end,
        pad_token=PADDING,
        chat_template=CHAT_TEMPLATE,
    )


def losses_of(kind, model, settings, data, tokenizer, rates, prepare=None):
    """Loss of each training step of a trainer of TRL that reads `data` in order."""
    losses = []

    class Watched(kind):
        def compute_loss(self, *arguments, **more):
            loss = super().compute_loss(*arguments, **more)
            if self.model.training:
                losses.append(loss.item())
            return loss

    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1.0, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: rates[min(step, len(rates) - 1)]
    )
    trainer = Watched(
        model=model,
        args=settings,
        train_dataset=data,
        processing_class=tokenizer,
        optimizers=(optimizer, schedule),
    )
    if prepare is not None:
        trainer.train_dataset = prepare(trainer.train_dataset)
    trainer.train()
    assert len(losses) == STEPS
    return losses


def quiet(folder, batch, **more):
    """Arguments that all of TRL's trainers take."""
    return {
        "output_dir": str(folder),
        "per_device_train_batch_size": batch,
        "max_steps": STEPS,
        "max_grad_norm": OPTIMIZER["clip"],
        "train_sampling_strategy": "sequential",
        "report_to": [],
        "use_cpu": True,
        "bf16": False,
        "save_strategy": "no",
        "gradient_checkpointing": False,
        **more,
    }


def compare(ours, theirs):
    """Largest difference of two trajectories; it is printed. Both must have moved."""
    apart = np.abs(np.array(ours) - np.array(theirs))
    print(f"from {ours[0]:.4f} to {ours[-1]:.4f}; largest difference {apart.max():.2e}")
    assert abs(ours[0] - ours[-1]) > 100 * TOLERANCE
    assert apart.max() < TOLERANCE


# Supervised fine-tuning ---------------------------------------------------------------------------


def conversation(number, least, most, roles=SAID):
    draw = random.Random(number)
    return {
        "conversation_id": f"{number:032x}",
        "source": "made",
        "messages": [message(role, draw_words(draw, least, most)) for role in roles],
        "tools": None,
        "metadata": "{}",
    }


@pytest.fixture
def sft(run_stage, given, checkpoint, tokenizer, store, read_table):
    """`sft(conversations)` → losses, learning rates, and conversations of each row of each step."""
    artifact = given(
        "tokenizer",
        {
            "tokenizer.json": tokenizer.to_str().encode(),
            "tokenizer_config.json": transformers_config("llama-bpe"),
            "training.json": {
                "vocabulary_size": tokenizer.get_vocab_size(),
                "padded_vocabulary_size": tokenizer.get_vocab_size(),
            },
        },
    )

    def run(rows):
        packed = run_stage(
            PackChat,
            {"sequence_length": LENGTH, "held_out_share": 0.0},
            {"conversations": [given("conversations", {"0.parquet": rows})],
             "tokenizer": [artifact]},
        )  # fmt: skip
        assert not {"too_long", "truncated"} & set(packed.counts)
        rate = {"peak": 5e-3, "warmup_share": 0.2, "decay": "linear"}
        phase = {"tokens": STEPS * BATCH * LENGTH, "sequences_per_batch": BATCH}
        manifest = run_stage(
            Sft,
            {
                "phases": [{**phase, "learning_rate": rate}],
                "optimizer": OPTIMIZER,
                "precision": "fp32",
                "seed": SEED,
            },
            {"checkpoint": [checkpoint], "train": [(packed, "train")], "tokenizer": [artifact]},
            EXECUTION,
        )
        steps = []
        for step in range(1, STEPS + 1):
            read: list[list[str]] = [[] for _ in range(BATCH)]
            for piece in read_batch_documents(store, manifest, step):
                read[piece["row"]].append(piece["doc_id"])  # In the row's order.
            steps.append(read)
        metrics = read_table(manifest, "training_run", "metrics.parquet")
        return metrics["loss"].to_pylist(), metrics["learning_rate"].to_pylist(), steps

    return run


def by_id(rows):
    return {row["conversation_id"]: row for row in rows}


def plain(row):
    return said(row["messages"])


def said(messages):
    return [{"role": one["role"], "content": one["content"]} for one in messages]


def test_sft_of_conversations_that_fill_a_row_each_is_that_of_trl_padded(
    sft, released, wrapped, tmp_path
):
    """TRL has the conversations as messages, and its own masks of what the assistant says."""
    rows = {
        row["conversation_id"]: row for row in (conversation(n, 2, 3, 2 * SAID) for n in range(60))
    }
    ours, rates, steps = sft(list(rows.values()))
    read = [name for step in steps for row in step for name in row]
    assert all(len(row) == 1 for step in steps for row in step)
    data = datasets.Dataset.from_list([{"messages": plain(rows[name])} for name in read])
    settings = trl.SFTConfig(
        **quiet(tmp_path / "out", BATCH), assistant_only_loss=True, max_length=None
    )
    theirs = losses_of(trl.SFTTrainer, released(), settings, data, wrapped(END_OF_TEXT), rates)
    compare(ours, theirs)


def test_sft_of_packed_conversations_is_that_of_trl_without_padding(
    sft, released, wrapped, tmp_path
):
    """TRL's collator joins the rows of a step and numbers positions in each conversation."""
    rows = by_id(conversation(n, 1, 2) for n in range(200))
    ours, rates, steps = sft(list(rows.values()))
    assert sum(len(row) for step in steps for row in step) > 1.5 * STEPS * BATCH
    tokenizer = wrapped(END_OF_TEXT)
    prepared = []
    for row in (row for step in steps for row in step):
        encoded = [
            tokenizer.apply_chat_template(
                plain(rows[name]), return_dict=True, return_assistant_tokens_mask=True
            )
            for name in row
        ]
        prepared.append(
            {
                "input_ids": [token for one in encoded for token in one["input_ids"]],
                "labels": [
                    token if learnt else -100
                    for one in encoded
                    for token, learnt in zip(one["input_ids"], one["assistant_masks"], strict=True)
                ],
                "seq_lengths": [len(one["input_ids"]) for one in encoded],
            }
        )
    settings = trl.SFTConfig(
        **quiet(tmp_path / "out", BATCH),
        padding_free=True,
        max_length=None,
        dataset_kwargs={"skip_prepare_dataset": True},
    )
    data = datasets.Dataset.from_list(prepared)
    compare(ours, losses_of(trl.SFTTrainer, released(), settings, data, tokenizer, rates))


# Preferences --------------------------------------------------------------------------------------


def preference(number):
    draw = random.Random(number)
    return {
        "preference_id": f"{number:032x}",
        "source": "made",
        "prompt": [message("user", draw_words(draw, 2, 8))],
        "chosen": [message("assistant", f"yes {draw_words(draw, 1, 9)}")],
        "rejected": [message("assistant", f"no {draw_words(draw, 1, 9)}")],
        "metadata": "{}",
    }


PAIRS = [preference(number) for number in range(40)]


@pytest.fixture
def prefer(run_stage, given, checkpoint, read_table):
    """`prefer(rows, **config)` → losses, learning rates, and the pairs of each step by number."""

    def run(rows, **config):
        epochs = -(-STEPS * BATCH // len(rows))
        assert epochs * len(rows) == STEPS * BATCH
        manifest = run_stage(
            Preference,
            {
                "epochs": epochs,
                "pairs_per_batch": BATCH,
                "learning_rate": {"peak": 2e-3, "warmup_share": 0.2, "decay": "linear"},
                "optimizer": OPTIMIZER,
                "precision": "fp32",
                "held_out_share": 0.0,
                "seed": SEED,
                **config,
            },
            {"checkpoint": [checkpoint],
             "preferences": [given("preferences", {"00000.parquet": rows})]},
            EXECUTION,
        )  # fmt: skip
        clock = ExampleClock(len(rows), BATCH, epochs, SEED)
        metrics = read_table(manifest, "training_run", "metrics.parquet")
        return (
            metrics["loss"].to_pylist(),
            metrics["learning_rate"].to_pylist(),
            [clock.batch(step).tolist() for step in range(1, STEPS + 1)],
        )

    return run


def test_a_reward_model_is_that_of_trl(
    run_stage, given, checkpoint, read_input, read_table, tokenizer, wrapped, tmp_path
):
    """With margins and centring; TRL starts from the release of our first weights."""
    rows = [
        {**one, "metadata": json.dumps({"margin": number % 3 / 4})}
        for number, one in enumerate(PAIRS)
    ]
    pairs = given("preferences", {"00000.parquet": rows})
    config = {
        "epochs": STEPS * BATCH // len(rows),
        "pairs_per_batch": BATCH,
        "learning_rate": {"peak": 2e-3, "warmup_share": 0.2, "decay": "linear"},
        "optimizer": OPTIMIZER,
        "precision": "fp32",
        "held_out_share": 0.0,
        "margin": "margin",
        "centring": 0.02,
        "seed": SEED,
    }
    inputs = {"checkpoint": [checkpoint], "preferences": [pairs]}
    metrics = read_table(
        run_stage(Reward, config, inputs, EXECUTION), "training_run", "metrics.parquet"
    )
    start = from_language_model(read_model(read_input(*checkpoint)), SEED)
    described = {**transformers_config("llama-bpe"), "chat_template": CHAT_TEMPLATE}
    first = given(
        "reward_model",
        {
            **model_files(start),
            "tokenizer.json": tokenizer.to_str().encode(),
            "tokenizer_config.json": described,
            "state.json": {"chat_template": make_trained_record("reward", None)},
        },
    )
    release = read_input(run_stage(Export, {}, {"reward_model": [first]}), "release")
    folder = tmp_path / "release"
    folder.mkdir()
    for name in release.paths():
        (folder / name).write_bytes(release.read_bytes(name))
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder, dtype=torch.float32
    )
    clock = ExampleClock(len(rows), BATCH, config["epochs"], SEED)
    order = [one for step in range(1, STEPS + 1) for one in clock.batch(step).tolist()]
    data = datasets.Dataset.from_list(
        [
            {
                **{part: said(rows[index][part]) for part in ("prompt", "chosen", "rejected")},
                "margin": json.loads(rows[index]["metadata"])["margin"],
            }
            for index in order
        ]
    )
    settings = trl.RewardConfig(
        **quiet(tmp_path / "out", BATCH), center_rewards_coefficient=0.02, max_length=None
    )
    theirs = losses_of(
        trl.RewardTrainer,
        model,
        settings,
        data,
        wrapped(END_OF_TEXT),
        metrics["learning_rate"].to_pylist(),
    )
    compare(metrics["loss"].to_pylist(), theirs)


def rendered(row):
    """A pair as TRL reads texts; its tokenizer puts begin_of_text first by itself."""
    prompt = "".join(part.text for part in render_segments(row["prompt"], True))
    return {
        "prompt": prompt.removeprefix(BEGIN_OF_TEXT),
        "chosen": row["chosen"][0]["content"] + TURN_END,
        "rejected": row["rejected"][0]["content"] + TURN_END,
    }


def test_dpo_is_that_of_trl(prefer, released, wrapped, tmp_path):
    ours, rates, steps = prefer(PAIRS, loss="sigmoid", beta=0.3)
    data = datasets.Dataset.from_list([rendered(PAIRS[one]) for step in steps for one in step])
    settings = trl.DPOConfig(**quiet(tmp_path / "out", BATCH), beta=0.3, max_length=None)
    compare(ours, losses_of(trl.DPOTrainer, released(), settings, data, wrapped(TURN_END), rates))


def test_simpo_is_that_of_trl(prefer, released, wrapped, tmp_path):
    cpo = pytest.importorskip("trl.experimental.cpo")
    ours, rates, steps = prefer(PAIRS, loss="simpo", beta=2.0, gamma=0.5)
    data = datasets.Dataset.from_list([rendered(PAIRS[one]) for step in steps for one in step])
    settings = cpo.CPOConfig(
        **quiet(tmp_path / "out", BATCH),
        loss_type="simpo",
        cpo_alpha=0.0,
        beta=2.0,
        simpo_gamma=0.5,
        max_length=LENGTH,
    )
    compare(ours, losses_of(cpo.CPOTrainer, released(), settings, data, wrapped(TURN_END), rates))


def test_kto_is_that_of_trl_with_the_same_mismatched_answers(prefer, released, wrapped, tmp_path):
    """TRL's mismatched answer is that of the row before in its batch, ours the next pair's chosen.

    The estimates of KL differ by that, so TRL gets our answers.
    """
    ours, rates, steps = prefer(PAIRS, loss="kto", beta=0.3)
    order = [one for step in steps for one in step]
    texts = [rendered(PAIRS[one]) for one in order]
    data = datasets.Dataset.from_list(
        [
            {"prompt": one["prompt"], "completion": one[side], "label": side == "chosen"}
            for one in texts
            for side in ("chosen", "rejected")
        ]
    )
    chosen = {}

    def mismatched(prepared):
        for row, one in zip(prepared.select(range(0, len(prepared), 2)), order, strict=True):
            chosen[one] = row["completion_ids"]
        answers = [chosen[(one + 1) % len(PAIRS)] for one in order for _ in range(2)]
        return prepared.remove_columns("KL_completion_ids").add_column("KL_completion_ids", answers)

    settings = trl.KTOConfig(**quiet(tmp_path / "out", 2 * BATCH), beta=0.3, max_length=None)
    theirs = losses_of(
        trl.KTOTrainer, released(), settings, data, wrapped(TURN_END), rates, mismatched
    )
    compare(ours, theirs)


def test_kto_of_single_answers_is_that_of_trl_with_the_same_mismatched_answers(
    prefer, released, wrapped, tmp_path
):
    """Rows of one answer, two desirable for each undesirable one, which has twice the weight."""
    labels = [number % 3 > 0 for number in range(len(PAIRS))]
    rows = [
        {**one, "rejected" if label else "chosen": []}
        for one, label in zip(PAIRS, labels, strict=True)
    ]
    ours, rates, steps = prefer(rows, loss="kto", beta=0.3, undesirable_weight=2.0)
    order = [one for step in steps for one in step]
    texts = [rendered(one) for one in PAIRS]
    data = datasets.Dataset.from_list(
        [
            {
                "prompt": texts[one]["prompt"],
                "completion": texts[one]["chosen" if labels[one] else "rejected"],
                "label": labels[one],
            }
            for one in order
        ]
    )

    def mismatched(prepared):
        answers = {one: row["completion_ids"] for one, row in zip(order, prepared, strict=True)}
        ids = [answers[(one + 1) % len(PAIRS)] for one in order]
        return prepared.remove_columns("KL_completion_ids").add_column("KL_completion_ids", ids)

    settings = trl.KTOConfig(
        **quiet(tmp_path / "out", BATCH), beta=0.3, undesirable_weight=2.0, max_length=None
    )
    theirs = losses_of(
        trl.KTOTrainer, released(), settings, data, wrapped(TURN_END), rates, mismatched
    )
    compare(ours, theirs)
