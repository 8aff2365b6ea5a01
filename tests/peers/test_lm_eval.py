"""Item by item our log-likelihoods beside lm-evaluation-harness's, of equal prompts and choices.

INGOT_PEERS_LM_EVAL names a Python that has lm_eval[hf] (`setup.sh`). Both sides have the same
weights, ours in our own decoder and theirs in the class of transformers that a release loads.
"""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path

import pytest
import torch

from stages.evaluate.benchmarks import Item
from stages.evaluate.measure import Scorer, measure_texts
from stages.import_model.stage import ImportModel
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.files import read_model, read_tokenizer
from stages.scoring.likelihood import encode_text, rolling_requests, score_requests
from stages.tokenizer.training import train, transformers_config
from stages.tokens.vocabulary import SpecialTokens
from tests.peers.harness_parity import compare, read_tasks
from tests.peers.harness_tasks import ask_harness, read_rows, write_model, write_task

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

ITEMS = 6
TYPES = [("float32", 1e-4), ("float64", 1e-6)]
"""And the greatest difference in nats."""

SHAPES = {
    "llama": {"init_std": 0.08},
    "qwen3": {"init_std": 0.08, "qk_norm": "head"},
}


@pytest.fixture(scope="module")
def python() -> str:
    named = os.environ.get("INGOT_PEERS_LM_EVAL")
    if not named:
        pytest.skip("needs INGOT_PEERS_LM_EVAL: sh tests/peers/setup.sh FOLDER")
    return named


@pytest.fixture
def tokenizer(shared_data):
    """Of real questions, with tokens of several words' parts."""
    texts = [row["question"] for row in read_rows(shared_data, "mmlu-test", 500)]
    return train(iter(texts), vocabulary_size=1500, pre_tokenizer="llama-bpe", min_frequency=2)


@pytest.fixture
def make(tokenizer):
    def model(dtype: torch.dtype, **shape) -> Decoder:
        size = {"width": 64, "layers": 2, "heads": 4, "kv_heads": 2, "context": 400}
        config = ModelConfig(vocabulary_size=tokenizer.get_vocab_size(), **size, **shape)
        return Decoder(config, seed=7).to(dtype).eval()

    return model


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("dtype", "tolerance"), TYPES)
def test_every_item_has_the_harness_s_log_likelihoods(
    shared_data, python, tokenizer, make, tmp_path, shape, dtype, tolerance
):
    model = make(getattr(torch, dtype), **SHAPES[shape])
    write_model(tmp_path, model, tokenizer)
    scorer = Scorer(model, tokenizer, 0, None, 4096)
    check_parity(scorer, tmp_path, python, read_tasks(shared_data, ITEMS), dtype, tolerance)


def check_parity(scorer, folder, python, tasks, dtype, tolerance) -> None:
    """Log-likelihoods within `tolerance`, greedy choices and metrics equal."""
    compared = list(compare(scorer, folder, python, tasks, dtype=dtype))
    for one in compared:
        assert one.nats <= tolerance, one
        assert one.greedy == 0, one
        for name, ours, theirs in one.metrics:
            assert ours == pytest.approx(theirs, rel=1e-4), (one.task, name)
    assert sum(one.choices for one in compared) > 12 * 4 * ITEMS * 2
    assert sum(one.apart for one in compared) <= 5
    assert sum(bool(one.metrics) for one in compared) > 40


def teach(model: Decoder, tokenizer, texts: list[str], steps: int) -> tuple[float, float]:
    """Train on packed texts; the mean loss of the first and of the last ten steps, nats."""
    ids = [one for text in texts for one in [0, *encode_text(tokenizer, text)]]
    rows = torch.tensor(ids[: len(ids) // 129 * 129]).view(-1, 129)
    draw = torch.Generator().manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(steps):
        batch = rows[torch.randint(len(rows), (16,), generator=draw)]
        logits = model(batch[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses[:10]) / 10, sum(losses[-10:]) / 10


@pytest.mark.parametrize(("dtype", "tolerance"), TYPES)
def test_a_trained_model_has_the_harness_s_log_likelihoods(
    shared_data, python, tokenizer, make, tmp_path, dtype, tolerance
):
    """Random weights have flat distributions; these have learnt something."""
    model = make(torch.float32).train()
    texts = [row["question"] for row in read_rows(shared_data, "mmlu-test", 2000)]
    first, last = teach(model, tokenizer, texts, 150)
    assert last < first - 1.5
    model = model.to(getattr(torch, dtype)).eval()
    write_model(tmp_path, model, tokenizer)
    scorer = Scorer(model, tokenizer, 0, None, 4096)
    check_parity(scorer, tmp_path, python, read_tasks(shared_data, ITEMS), dtype, tolerance)


def publish(folder: Path, family: str, tokenizer) -> dict[str, bytes]:
    """A model of random weights and its tokenizer as transformers saves them, in `folder/model`."""
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

    described = {k: v for k, v in transformers_config("llama-bpe").items() if k.endswith("_token")}
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **described)
    config = AutoConfig.for_model(
        family, vocab_size=len(wrapped), hidden_size=64, intermediate_size=160, head_dim=16,
        num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=400, initializer_range=0.15, tie_word_embeddings=False,
        bos_token_id=wrapped.bos_token_id, eos_token_id=wrapped.eos_token_id,
        pad_token_id=wrapped.pad_token_id,
    )  # fmt: skip
    torch.manual_seed(4)
    place = folder / "model"
    AutoModelForCausalLM.from_config(config).to(torch.float32).save_pretrained(place)
    wrapped.save_pretrained(place)
    return {path.name: path.read_bytes() for path in place.iterdir()}


@pytest.mark.parametrize("family", ["qwen3", "olmo2"])
@pytest.mark.parametrize(("dtype", "tolerance"), TYPES)
def test_an_imported_model_has_the_harness_s_log_likelihoods(
    shared_data, python, tokenizer, run_stage, snapshot, read_input, tmp_path,
    family, dtype, tolerance,
):  # fmt: skip
    """The harness loads the folder of transformers, Ingot what `import_model` made of it."""
    files = publish(tmp_path, family, tokenizer)
    made = read_input(run_stage(ImportModel, {}, {"snapshot": snapshot(files)}), "checkpoint")
    model = read_model(made).to(getattr(torch, dtype)).eval()
    own = read_tokenizer(made)
    special = SpecialTokens.from_config(own, made.read_json("tokenizer_config.json"))
    scorer = Scorer(model, own, special.context, None, 4096)
    check_parity(scorer, tmp_path, python, read_tasks(shared_data, ITEMS), dtype, tolerance)


def test_rolling_likelihoods_differ_by_the_harness_s_second_first_token(
    shared_data, python, tokenizer, make, tmp_path
):
    """It puts its prefix token before a text that begins with that token already, and scores it.

    With that reproduced the sums are equal; where it adds no token of its own they are so at once.
    """
    model = make(torch.float32, **SHAPES["llama"])
    model.set_context(48)
    texts = [row["context"] for row in read_rows(shared_data, "lambada", 10)]
    items = [Item("prose", str(n), "text", text, (), 0) for n, text in enumerate(texts)]
    assert max(len(encode_text(tokenizer, text)) for text in texts) > 96
    write_model(tmp_path, model, tokenizer)
    name = write_task(tmp_path, "prose", items, None)
    measured = measure_texts(Scorer(model, tokenizer, 0, None, 4096), items)
    ours = [-one.numerator * 0.6931471805599453 for one in measured]
    (plain,) = ask_harness(python, tmp_path, [name], bos=False)
    theirs = [float(answer) for ((answer,),) in plain["scores"][name]]
    assert ours == pytest.approx(theirs, abs=1e-4)
    (doubled,) = ask_harness(python, tmp_path, [name], bos=True)
    theirs = [float(answer) for ((answer,),) in doubled["scores"][name]]
    windows = [rolling_requests([0, 0, *encode_text(tokenizer, text)], 48) for text in texts]
    scored = score_requests(model, list(chain.from_iterable(windows)))
    sums = iter(one.log_likelihoods.sum() for one in scored)
    reproduced = [sum(next(sums) for _ in group) for group in windows]
    assert reproduced == pytest.approx(theirs, abs=1e-4)
    assert all(abs(a - b) > 0.01 for a, b in zip(ours, theirs, strict=True))
