"""llama.cpp as the judge of the GGUF files that `export_gguf` writes.

`INGOT_PEERS_LLAMA_CPP` names the Python that has llama-cpp-python: `sh tests/peers/setup.sh FOLDER`
builds it in about 10 minutes.
"""

from __future__ import annotations

import json
import os
import subprocess

import gguf
import numpy as np
import pytest
import torch
from published_shapes import LLAMA3, YARN

from artifacts_schema.errors import CorruptArtifact, InputError
from stages.export.gguf_check import SCRIPT, check_gguf
from stages.export.stage import Export
from stages.model.config import RopeScaling
from stages.tokenizer.training import train
from stages.tokens.pre_tokenizers import NAMES

from .conftest import FAMILIES
from .test_vocabulary import TEXTS

PYTHON = os.environ.get("INGOT_PEERS_LLAMA_CPP")

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(PYTHON is None, reason="INGOT_PEERS_LLAMA_CPP names no Python"),
]

STRETCHED = {
    "llama linear": RopeScaling(kind="linear", factor=4.0),
    "llama yarn": YARN,
    "llama 3.1": LLAMA3,
}


def answers(file, rows=(), texts=()):
    """ids of each text, logits of each row, by llama.cpp."""
    questions, written = file.with_suffix(".json"), file.with_suffix(".npz")
    questions.write_text(json.dumps({"texts": texts, "rows": rows}), encoding="utf-8")
    command = [PYTHON, "-I", str(SCRIPT), str(file), str(questions), str(written)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    with np.load(written) as stored:
        ids = [stored[f"ids_{n}"].tolist() for n in range(len(texts))]
        return ids, [stored[f"logits_{n}"] for n in range(len(rows))]


def draw_rows(model, count, length):
    generator = torch.Generator().manual_seed(3)
    size = (count, length)
    return torch.randint(0, model.config.vocabulary_size, size, generator=generator)


def divergence(ours, theirs):
    """Mean KL(ours ‖ theirs) in nats a token."""
    ours, theirs = ours.double().log_softmax(-1), theirs.double().log_softmax(-1)
    return float((ours.exp() * (ours - theirs)).sum(-1).mean())


@pytest.mark.parametrize("name", FAMILIES)
def test_the_logits_of_an_f32_file_are_ours(name, make_family, make_checkpoint, make_gguf, capsys):
    model = make_family(name)
    rows = draw_rows(model, 3, 64)
    file = make_gguf(make_checkpoint(model), type="F32").path
    _, logits = answers(file, rows.tolist())
    with torch.no_grad():
        ours = model(rows)
    theirs = torch.from_numpy(np.stack(logits))
    difference = float((theirs - ours).abs().max())
    with capsys.disabled():
        print(f"\n{name}: {difference:.1e} of {float(ours.abs().max()):.1f}")
    assert difference <= 2e-4


@pytest.mark.parametrize("name", STRETCHED)
def test_stretched_positions_are_turned_alike(name, make_family, make_checkpoint, make_gguf):
    model = make_family("llama", rope_scaling=STRETCHED[name].plain())
    rows = draw_rows(model, 2, 64)
    file = make_gguf(make_checkpoint(model), type="F32").path
    _, logits = answers(file, rows.tolist())
    with torch.no_grad():
        ours = model(rows)
        plain = make_family("llama")(rows)
    assert float((torch.from_numpy(np.stack(logits)) - ours).abs().max()) <= 2e-4
    assert float((plain - ours).abs().max()) > 0.1


@pytest.mark.parametrize("name", ["llama", "qwen3", "olmo2", "smollm3"])
def test_q8_0_moves_a_model_of_usual_initial_weights_by_little(
    name, make_model, make_checkpoint, make_gguf, capsys
):
    model = make_model(**{**FAMILIES[name], "init_std": 0.02, "width": 64})
    rows = draw_rows(model, 32, 64)
    _, logits = answers(make_gguf(make_checkpoint(model), type="Q8_0").path, rows.tolist())
    with torch.no_grad():
        ours = model(rows)
    theirs = torch.from_numpy(np.stack(logits))
    moved = divergence(ours, theirs)
    with capsys.disabled():
        largest = float((theirs - ours).abs().max())
        print(f"\n{name}: KL {moved:.1e} nats a token on {rows.numel():,}, logits {largest:.1e}")
    assert moved <= 1e-4


def rounded_weights(model, kind):
    """The model with the numbers of a file of this type."""
    copy = type(model)(model.config)
    copy.load_state_dict(model.state_dict())
    with torch.no_grad():
        for name, weight in copy.named_parameters():
            if weight.ndim > 1:
                chosen = "Q8_0" if kind == "Q4_0" and name == "embedding.weight" else kind
                chosen = gguf.GGMLQuantizationType[chosen]
                values = gguf.dequantize(gguf.quantize(weight.numpy(), chosen), chosen)
                weight.copy_(torch.from_numpy(values.reshape(weight.shape)))
    return copy


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0", "Q4_0"])
def test_a_type_costs_what_rounding_the_weights_and_the_states_costs(
    kind, make_family, make_checkpoint, make_gguf, capsys
):
    """llama.cpp rounds the states that a matrix is multiplied by to blocks as well."""
    model = make_family("llama one head of keys")
    rows = draw_rows(model, 32, 64)
    _, logits = answers(make_gguf(make_checkpoint(model), type=kind).path, rows.tolist())
    theirs = torch.from_numpy(np.stack(logits))
    with torch.no_grad():
        ours, rounded = model(rows), rounded_weights(model, kind)(rows)
    moved, by_weights = divergence(ours, theirs), divergence(ours, rounded)
    with capsys.disabled():
        print(f"\n{kind}: KL {moved:.1e} nats a token, of the rounded weights {by_weights:.1e}")
    assert by_weights / 2 <= moved <= 8 * by_weights


@pytest.mark.parametrize("name", NAMES)
def test_the_ids_are_ours(name, make_model, make_checkpoint, make_gguf):
    lines = [text for text in TEXTS if text] * 8
    tokenizer = train(iter(lines), vocabulary_size=500, pre_tokenizer=name, min_frequency=2)
    model = make_model(vocabulary_size=tokenizer.get_vocab_size() + 7)
    file = make_gguf(make_checkpoint(model, tokenizer, name), type="F16").path
    ids, _ = answers(file, texts=TEXTS)
    tokenizer.encode_special_tokens = True
    for text, found in zip(TEXTS, ids, strict=True):
        assert found == tokenizer.encode(text, add_special_tokens=False).ids, text


def test_a_file_is_compared_with_the_certificate_of_its_release(
    make_family, make_checkpoint, make_gguf, run_stage, read_input
):
    checkpoint = make_checkpoint(make_family("llama", context=128))
    made = run_stage(Export, {}, {"checkpoint": [checkpoint]})
    folder = read_input(made, "release").local_path("certificate.json").parent
    full = check_gguf(folder, make_gguf(checkpoint, type="F32").path, PYTHON)
    assert (full.type, full.texts) == ("F32", 6)
    assert full.logit_difference <= 2e-4
    small = check_gguf(folder, make_gguf(checkpoint, type="Q8_0").path, PYTHON)
    assert small.type == "Q8_0"
    assert small.logit_difference > full.logit_difference
    other = make_checkpoint(make_family("llama one head of keys", context=128))
    with pytest.raises(CorruptArtifact, match="logits of llama"):
        check_gguf(folder, make_gguf(other, type="F32").path, PYTHON)
    lines = ["other words make other merges, and so other tokens of a text"] * 9
    own = train(iter(lines), vocabulary_size=400, pre_tokenizer="gpt-2", min_frequency=2)
    model = make_family("llama", vocabulary_size=max(400, own.get_vocab_size()))
    cut = make_gguf(make_checkpoint(model, own, "gpt-2"), type="F32").path
    with pytest.raises(CorruptArtifact, match="into other tokens, first 'The quick"):
        check_gguf(folder, cut, PYTHON)
    broken = cut.with_name("broken.gguf")
    broken.write_bytes(cut.read_bytes()[:4000])
    with pytest.raises(InputError, match=r"llama\.cpp cannot run it"):
        check_gguf(folder, broken, PYTHON)
