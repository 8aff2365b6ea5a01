"""Losses of SFT and DPO against TRL's trainers on one model: masks and padding are TRL's own."""

import math

import pytest
import torch

from stages.model.config import ModelShape
from stages.model.decoder import Decoder
from stages.model.huggingface.families import to_config, to_weights
from stages.pairs.losses import AnswerPairs, LossSettings, preference_losses
from stages.preference.task import answer_log_probabilities, pack_pairs
from stages.tokenizer.training import train
from stages.tokens.chat import CHAT_TEMPLATE, TURN_END, render_segments
from stages.tokens.vocabulary import BEGIN_OF_TEXT, END_OF_TEXT, PADDING
from stages.training.config import TrainingExecution
from stages.training.examples import encode_example, pack_rows
from stages.training.runtime import runtime
from tests.stages.preference.answers import answer_segments

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning"),
]

CONTEXT = 128
BETA = 0.3
PAIRS = [
    {"prompt": "say yes", "chosen": "yes", "rejected": "no"},
    {"prompt": "say no or yes to the sky", "chosen": "no the sky", "rejected": "yes"},
    {"prompt": "the sky", "chosen": "is blue", "rejected": "is no sky at all or is it"},
]
QUIET = {"report_to": [], "use_cpu": True, "bf16": False, "max_length": None}


def user(text):
    return [{"role": "user", "content": text}]


def said(text):
    return [{"role": "assistant", "content": text}]


@pytest.fixture(scope="module")
def tokenizer():
    texts = iter(["say yes or no", "the sky is blue"] * 9)
    return train(texts, vocabulary_size=300, pre_tokenizer="llama-bpe", min_frequency=2)


@pytest.fixture(scope="module")
def models(tokenizer):
    """`models(seed)` → a decoder, and a `LlamaForCausalLM` with its weights."""
    transformers = pytest.importorskip("transformers")
    shape = ModelShape(width=32, layers=2, heads=2, kv_heads=1, context=CONTEXT, init_std=0.2)
    config = shape.with_vocabulary(tokenizer.get_vocab_size())

    def make(seed):
        decoder = Decoder(config, seed=seed)
        values = to_config(config, bos=0, eos=4, pad=2)
        llama = transformers.LlamaForCausalLM(transformers.LlamaConfig(**values))
        llama.load_state_dict(to_weights(decoder), strict=False)
        llama.tie_weights()
        return decoder, llama

    return make


@pytest.fixture(scope="module")
def wrapped(tokenizer):
    """`wrapped(end)` → the tokenizer as `transformers` sees it, `end` as its end of sequence."""
    transformers = pytest.importorskip("transformers")
    return lambda end: transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BEGIN_OF_TEXT,
        eos_token=end,
        pad_token=PADDING,
        chat_template=CHAT_TEMPLATE,
    )


@pytest.fixture
def how():
    with runtime(TrainingExecution(device="cpu", threads=1), "fp32", 0) as runs, torch.no_grad():
        yield runs


@pytest.fixture
def offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")


def test_sft_loss_over_packed_rows_is_that_of_trl_over_padded_ones(
    offline, models, wrapped, tokenizer, how, tmp_path
):
    trl = pytest.importorskip("trl")
    datasets = pytest.importorskip("datasets")
    conversations = [
        {
            "messages": [
                *user(row["prompt"]),
                {"role": "assistant", "content": row["chosen"]},
                *user("again"),
                {"role": "assistant", "content": row["rejected"]},
            ]
        }
        for row in PAIRS
    ]
    decoder, llama = models(1)
    data = datasets.Dataset.from_list(conversations)
    trainer = trl.SFTTrainer(
        model=llama,
        args=trl.SFTConfig(
            output_dir=str(tmp_path),
            assistant_only_loss=True,
            per_device_eval_batch_size=3,
            **QUIET,
        ),
        train_dataset=data,
        eval_dataset=data,
        processing_class=wrapped(END_OF_TEXT),
    )
    with torch.enable_grad():
        expected = trainer.evaluate()["eval_loss"]
    examples = [
        encode_example(tokenizer, render_segments(one["messages"])) for one in conversations
    ]
    for example, theirs in zip(examples, trainer.eval_dataset, strict=True):
        assert example.ids.tolist() == theirs["input_ids"]
        assert example.trained.tolist() == [label != -100 for label in theirs["labels"]]
    rows = pack_rows(examples, CONTEXT)
    assert len(rows) < len(examples)
    assert how.losses(decoder, rows).sum().item() / rows.targets == pytest.approx(
        expected, rel=1e-5
    )


def test_dpo_loss_and_margin_are_those_of_trl(offline, models, wrapped, tokenizer, how, tmp_path):
    trl = pytest.importorskip("trl")
    datasets = pytest.importorskip("datasets")
    (policy, llama), (reference, llama_reference) = models(1), models(2)
    rendered = [
        {
            # The tokenizer puts begin_of_text first by itself; TRL would double it.
            "prompt": "".join(
                part.text for part in render_segments(user(row["prompt"]), True)
            ).removeprefix(BEGIN_OF_TEXT),
            "chosen": row["chosen"] + TURN_END,
            "rejected": row["rejected"] + TURN_END,
        }
        for row in PAIRS
    ]
    data = datasets.Dataset.from_list(rendered)
    trainer = trl.DPOTrainer(
        model=llama,
        ref_model=llama_reference,
        args=trl.DPOConfig(
            output_dir=str(tmp_path), beta=BETA, per_device_eval_batch_size=3, **QUIET
        ),
        train_dataset=data,
        eval_dataset=data,
        processing_class=wrapped(TURN_END),
    )
    with torch.enable_grad():
        expected = trainer.evaluate()
    pairs = [
        tuple(
            encode_example(tokenizer, answer_segments(user(row["prompt"]), said(row[side])))
            for side in ("chosen", "rejected")
        )
        for row in PAIRS
    ]
    rows = pack_pairs(pairs, CONTEXT)
    ours, theirs = (
        answer_log_probabilities(model, rows, len(pairs), how) for model in (policy, reference)
    )
    tokens = [torch.ones(len(pairs))] * 2
    answers = AnswerPairs(
        ours.chosen_P, ours.rejected_P, theirs.chosen_P, theirs.rejected_P, *tokens
    )
    losses = preference_losses("sigmoid", answers, LossSettings(BETA))
    assert losses.loss_P.mean().item() == pytest.approx(expected["eval_loss"], rel=1e-5)
    margin = losses.margin_P.mean().item()
    assert margin == pytest.approx(expected["eval_rewards/margins"], rel=1e-4)
    for side, rewards in (
        ("chosen", losses.chosen_reward_P),
        ("rejected", losses.rejected_reward_P),
    ):
        theirs = expected[f"eval_rewards/{side}"]
        assert rewards.mean().item() == pytest.approx(theirs, rel=1e-4)
    assert not math.isclose(expected["eval_loss"], math.log(2), rel_tol=1e-2)
