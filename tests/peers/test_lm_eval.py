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
from stages.evaluate.measure import Scorer, measure_choices, measure_texts
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.scoring.choices import Choice, choice_observations
from stages.scoring.likelihood import Request, encode_text, rolling_requests, score_requests
from stages.scoring.observations import results_table
from stages.tokenizer.training import train
from tests.peers.harness_tasks import (
    CHOICES,
    ask_harness,
    put,
    read_choices,
    read_lambada,
    read_rows,
    write_model,
    write_task,
)

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

PUT = {"cloze": (["cloze"], 0), "listed": (["multiple_choice"], 0), "shots": (["cloze"], 2)}
"""Formulations and shots, beside items as their rows came."""
ITEMS = 6
METRICS = {
    "acc": "accuracy",
    "acc_norm": "accuracy_by_characters",
    "acc_bytes": "accuracy_by_bytes",
}

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


def all_items(shared: Path) -> dict[str, tuple[list[Item], str | None]]:
    """By task of the harness: items, and the formulation that it has them in."""
    tasks = {}
    for name in CHOICES:
        read = read_choices(shared, name, ITEMS + 2)
        tasks[f"{name}-row"] = read[:ITEMS], None
        for way, (formulations, shots) in PUT.items():
            tasks[f"{name}-{way}"] = put(read, formulations, shots), formulations[0]
    tasks["lambada"] = read_lambada(shared, 3 * ITEMS), "cloze"
    return tasks


def spans_border(tokenizer, item: Item, formulation: str | None) -> bool:
    """Whether a token begins in the prompt and ends in a choice: there the two differ by design."""
    (way,) = (one for one in item.ranked(" ") if one.formulation == formulation)
    bare = way.prompt.rstrip()
    context = encode_text(tokenizer, bare)
    return any(
        encode_text(tokenizer, way.prompt + choice)[: len(context)] != context
        for choice in way.choices
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("float64", 1e-6)])
def test_every_item_has_the_harness_s_log_likelihoods(
    shared_data, python, tokenizer, make, tmp_path, shape, dtype, tolerance
):
    model = make(getattr(torch, dtype), **SHAPES[shape])
    scorer = Scorer(model, tokenizer, 0, None, 4096)
    tasks = all_items(shared_data)
    write_model(tmp_path, model, tokenizer)
    names = [write_task(tmp_path, name, *items) for name, items in tasks.items()]
    (answer,) = ask_harness(python, tmp_path, names, dtype=dtype)
    greatest, compared, apart = 0.0, 0, 0
    for name, (items, formulation) in tasks.items():
        found = measure_choices(scorer, items, " ")
        assert found.bad == []
        by_item: dict[str, list[Choice]] = {}
        for choice in found.choices:
            by_item.setdefault(choice.item_id, []).append(choice)
        spanning = {item.item_id for item in items if spans_border(tokenizer, item, formulation)}
        for item, document in zip(items, answer["scores"][name], strict=True):
            if item.item_id in spanning:
                apart += 1
                continue
            for choice, ((theirs, greedy),) in zip(by_item[item.item_id], document, strict=True):
                greatest = max(greatest, abs(choice.log_likelihood - float(theirs)))
                compared += 1
                assert choice.is_greedy == (str(greedy) == "True"), (name, item.item_id)
        if not spanning:
            check_metrics(found.choices, answer["metrics"][name])
    print(f"{shape} {dtype}: {compared} choices, {apart} items apart, {greatest:.2e} nats at most")
    assert compared > 12 * 4 * ITEMS * 2
    assert greatest <= tolerance
    assert apart <= 5


def check_metrics(choices: list[Choice], theirs: dict[str, float]) -> None:
    observed = choice_observations(choices, ["sum", "characters", "bytes"])
    ours = {row["metric"]: row["value"] for row in results_table(observed).to_pylist()}
    if "perplexity" in ours:
        assert ours["perplexity"] == pytest.approx(theirs["perplexity,none"], rel=1e-4)
        assert ours["greedy_match"] == theirs["acc,none"]
        return
    # Characters and bytes of the harness include a delimiter that its documents carry.
    assert ours["accuracy"] == pytest.approx(theirs["acc,none"])


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
    first = score_requests(model, [Request((0,), (0,))])[0].log_likelihoods[0]
    assert all(abs(a - b) > abs(first) / 2 for a, b in zip(ours, theirs, strict=True))
