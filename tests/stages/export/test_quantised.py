"""Releases in int8 and int4: the numbers, beside those of torchao and auto-round, and the refusals.

The stage commits only what `transformers` loads with the numbers that the form is read back to.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from artifacts_schema.errors import CorruptArtifact, IngotError, InputError, Stopped, UsageError
from flows.cli.main import main
from stages.engine.context import Context
from stages.engine.page import Artifact
from stages.export import config as export_config
from stages.export import int4
from stages.export.certificate import CERTIFICATE, file_facts, repeat_check
from stages.export.gguf_check import check_gguf
from stages.export.page import verified
from stages.export.quantised import dequantise
from stages.export.stage import Export
from stages.export_gguf.stage import ExportGguf
from stages.model.files import model_files
from stages.model.huggingface.families import from_config
from stages.pack.stage import Pack
from stages.tokenizer.training import transformers_config

pytest.importorskip("torchao", reason="needs torchao: pip install 'ingot[quantise]'")
needs_auto_round = pytest.mark.skipif(
    find_spec("auto_round") is None, reason="needs auto-round: pip install 'ingot[quantise]'"
)
WIDE = {"width": 64, "heads": 2, "kv_heads": 1, "mlp_width": 96, "context": 128}
"""Sides of all matrices are multiples of 32, as int4 has it."""
INT4 = {"quantise": "int4", "dtype": "float16", "int4_steps": 1}
FAMILIES = {
    "llama": {"tied_embeddings": False},
    "llama tied": {"tied_embeddings": True},
    "qwen3": {"qk_norm": "head", "norm_epsilon": 1e-6},
    "olmo2": {"qk_norm": "width", "norm": "output", "tied_embeddings": False},
    "smollm3": {"nope_every": 4, "layers": 5, "tied_embeddings": True},
}


@pytest.fixture
def make_checkpoint(given, make_model, tokenizer):
    """`make_checkpoint(width=64, …)` → a committed checkpoint of such a model."""

    def make(**changes):
        return given(
            "checkpoint",
            {
                **model_files(make_model(**changes)),
                "tokenizer.json": tokenizer.to_str().encode(),
                "tokenizer_config.json": transformers_config("llama-bpe"),
                "state.json": {"stage": "pretrain", "training_step": 12, "tokens": 345},
            },
        )

    return make


@pytest.fixture
def calibration(given, make_documents, run_stage, tokenizer):
    """Packed text, in sequences of 32 tokens."""
    texts = [f"Keys are values, number {n}. " * (1 + n % 3) for n in range(40)]
    rows = [{"text": text, "source": "web"} for text in texts]
    trained = {"vocabulary_size": 400, "padded_vocabulary_size": 400}
    made = given(
        "tokenizer",
        {
            "tokenizer.json": tokenizer.to_str().encode(),
            "tokenizer_config.json": transformers_config("llama-bpe"),
            "training.json": trained,
        },
    )
    inputs = {"documents": [make_documents([rows], snapshot="made")], "tokenizer": [made]}
    return run_stage(Pack, {"sequence_length": 32}, inputs), "train"


@pytest.fixture
def export(run_stage, read_input, tmp_path):
    """`export(checkpoint, calibration=None, **config)` → the manifest, and a copy of the folder."""

    def make(checkpoint, calibration=None, **config):
        inputs = {"checkpoint": [checkpoint]}
        if calibration is not None:
            inputs["calibration"] = [calibration]
        made = run_stage(Export, config, inputs)
        release = read_input(made, "release")
        copy = tmp_path / made.key
        copy.mkdir()
        for name in release.paths():
            shutil.copyfile(release.local_path(name), copy / name)
        return made, copy

    return make


# int8 ---------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("loaded_here")
@pytest.mark.parametrize("dtype", ["keep", "bfloat16"])
@pytest.mark.parametrize("name", FAMILIES)
def test_int8_is_what_transformers_makes_of_the_plain_release(name, dtype, make_checkpoint, export):
    from torchao.quantization import Int8Tensor, Int8WeightOnlyConfig
    from transformers import TorchAoConfig

    checkpoint = make_checkpoint(**FAMILIES[name], context=128)
    _, plain = export(checkpoint, dtype=dtype)
    made, quantised = export(checkpoint, dtype=dtype, quantise="int8")
    config = TorchAoConfig(Int8WeightOnlyConfig())
    theirs = AutoModelForCausalLM.from_pretrained(plain, dtype="auto", quantization_config=config)
    ours = AutoModelForCausalLM.from_pretrained(quantised, dtype="auto")
    expected, loaded = theirs.state_dict(), ours.state_dict()
    assert expected.keys() == loaded.keys()
    whole = [name for name, one in loaded.items() if isinstance(one, Int8Tensor)]
    assert len(whole) == 7 * ours.config.num_hidden_layers
    for weight, tensor in loaded.items():
        other = expected[weight]
        assert tensor.dtype == other.dtype
        if weight in whole:
            assert torch.equal(tensor.qdata, other.qdata)
            assert torch.equal(tensor.scale, other.scale)
        else:
            assert torch.equal(tensor, other)
    assert made.counts["logit_difference"] <= 1e-4


@pytest.mark.usefixtures("loaded_here")
def test_int8_has_a_scale_a_row_and_whole_numbers_within_half_a_step(
    make_checkpoint, make_model, export
):
    """Of the formula: scale = largest magnitude / 127.5, number = round(weight / scale)."""
    _, folder = export(make_checkpoint(context=128), quantise="int8")
    stored = load_file(folder / "model.safetensors")
    weight = make_model(context=128).state_dict()["blocks.0.mlp.down.weight"].double()
    stem = "model.layers.0.mlp.down_proj._weight"
    scale = weight.abs().amax(1, keepdim=True) / 127.5
    assert torch.allclose(stored[f"{stem}_scale"].double(), scale, rtol=1e-6)
    numbers = (weight / scale).round().clamp(-128, 127)
    assert (stored[f"{stem}_qdata"].double() - numbers).abs().max() <= 1  # At a half, either.
    read = dequantise(stored, "model.layers.0.mlp.down_proj.weight").double()
    # The largest number of a row, 127.5 steps, is stored as 127 or -128.
    assert ((read - weight).abs() <= scale * 0.5001).all()


def test_an_int8_release_loads_in_a_fresh_process_and_its_files_are_no_code(
    make_checkpoint, export
):
    """By the stage's own process, isolated; then by another, as a person would load it."""
    made, folder = export(make_checkpoint(context=128), quantise="int8", max_shard_bytes=20_000)
    assert made.counts["logit_difference"] <= 1e-4
    assert made.counts["weight_files"] > 2
    suffixes = {path.suffix for path in folder.iterdir()}
    assert suffixes <= {".safetensors", ".json", ".jinja", ".md"}
    program = (
        "import sys, torch; from transformers import AutoModelForCausalLM as M\n"
        f"m = M.from_pretrained({str(folder)!r}, local_files_only=True, use_safetensors=True)\n"
        "print(type(m.model.layers[1].mlp.up_proj.weight).__name__,"
        " bool({'stages', 'flows', 'artifacts_schema'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["Int8Tensor", "False"], done.stderr


@pytest.mark.usefixtures("loaded_here")
def test_an_int8_release_is_half_of_one_in_bfloat16(make_checkpoint, export):
    checkpoint = make_checkpoint(width=256, mlp_width=512, context=128)
    sizes = [
        export(checkpoint, dtype="bfloat16", **form)[0].counts["weight_bytes"]
        for form in ({}, {"quantise": "int8"})
    ]
    embedding, norms, layers = 400 * 256 * 2, 5 * 256 * 2, 2
    matrices = layers * (2 * 256 * 256 + 2 * 128 * 256 + 3 * 256 * 512)
    rows = layers * (2 * 256 + 2 * 128 + 2 * 512 + 256)
    assert sizes[0] == embedding + norms + 2 * matrices
    # A scale and a zero point for each row.
    assert sizes[1] == embedding + norms + matrices + 5 * rows


# int4 ---------------------------------------------------------------------------------------------


@needs_auto_round
def test_int4_numbers_are_those_that_auto_round_computes_with(
    make_checkpoint, make_model, calibration, export
):
    """Its own layer, given the unit vectors, returns its matrix; beside that, unpacked by hand.

    GPTQ packs eight numbers of a column, the first in the lowest bits. Tuning rounds up or down, so
    that a number is at most a step away from the weight.
    """
    made, folder = export(make_checkpoint(**WIDE), calibration, **INT4)
    assert made.counts["logit_difference"] <= 1e-4
    stored = load_file(folder / "model.safetensors")
    assert stored["model.layers.1.mlp.down_proj.scales"].shape == (3, 64)  # Groups of 32.
    assert "model.layers.1.mlp.down_proj.weight" not in stored
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
    for name in ("model.layers.0.self_attn.k_proj", "model.layers.1.mlp.down_proj"):
        layer = torch.nn.Module.float(model.get_submodule(name))
        unit = torch.eye(stored[f"{name}.qweight"].shape[0] * 8)
        assert torch.equal(layer(unit).T, dequantise(stored, f"{name}.weight"))
    stem = "model.layers.0.self_attn.q_proj"
    packed, zeros = (stored[f"{stem}.{part}"].numpy() for part in ("qweight", "qzeros"))
    scales = stored[f"{stem}.scales"].float().numpy()
    weight = make_model(**WIDE).state_dict()["blocks.0.attention.query.weight"].numpy()
    read = dequantise(stored, f"{stem}.weight").numpy()
    for out in range(0, 64, 7):
        for place in range(64):
            number = int(packed[place // 8, out]) >> 4 * (place % 8) & 15
            zero = (int(zeros[place // 32, out // 8]) >> 4 * (out % 8) & 15) + 1
            assert read[out, place] == np.float32((number - zero) * scales[place // 32, out])
    step = np.repeat(np.abs(scales.T), 32, axis=1)
    assert (np.abs(read - weight) <= 1.01 * step).all()


@pytest.mark.full
@needs_auto_round
def test_int4_that_is_stopped_leaves_no_process_and_goes_on_to_the_same_bytes(
    make_checkpoint, calibration, export, store, monkeypatch
):
    checkpoint = make_checkpoint(**WIDE)
    started = []
    begin = subprocess.Popen

    def remember(*arguments, **options):
        started.append(begin(*arguments, **options))
        return started[-1]

    with monkeypatch.context() as patch:
        patch.setattr(int4.subprocess, "Popen", remember)
        patch.setattr(
            Context,
            "check_stop",
            lambda self: (_ for _ in ()).throw(Stopped()) if started else None,
        )
        with pytest.raises(BaseException) as caught:
            export(checkpoint, calibration, **INT4)
        assert isinstance(caught.value, Stopped) or "stopped" in str(caught.value).lower()
    assert [process.poll() is not None for process in started] == [True]
    made, folder = export(checkpoint, calibration, **INT4)
    first = file_facts(folder / "model.safetensors")
    shutil.rmtree(folder)
    from artifacts_schema.store.gc import remove_artifact

    remove_artifact(store, made)
    _, folder = export(checkpoint, calibration, **INT4)
    assert file_facts(folder / "model.safetensors") == first


def test_the_tuning_process_ends_with_the_stage():
    """Its standard input ends when the stage is killed."""
    program = (
        "import runpy, threading, time\n"
        f"script = runpy.run_path({str(int4.SCRIPT)!r}, run_name='script')\n"
        "threading.Thread(target=script['end_with_input'], daemon=True).start()\n"
        "time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-I", "-c", program], stdin=subprocess.PIPE)
    process.stdin.close()
    assert process.wait(30) == 1


def test_a_failure_of_auto_round_is_one_line(tmp_path, monkeypatch):
    script = tmp_path / "script.py"
    script.write_text("print('Loading')\nraise ValueError('no such scheme')")
    monkeypatch.setattr(int4, "SCRIPT", script)
    tokens = torch.zeros((2, 8), dtype=torch.long)
    with pytest.raises(IngotError, match="auto-round failed: ValueError: no such scheme") as caught:
        int4.tune_int4(tmp_path, tokens, tmp_path / "made", group=32, steps=1, check=lambda: None)
    assert "\n" not in str(caught.value)


# Certificate --------------------------------------------------------------------------------------


@pytest.fixture
def folder(make_checkpoint, export, loaded_here):
    """An int8 release."""
    return export(make_checkpoint(context=128), quantise="int8")[1]


def edit_certificate(folder, **changes):
    path = folder / CERTIFICATE
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **changes}))


def test_verify_release_names_the_form(folder):
    result = CliRunner().invoke(main, ["verify-release", str(folder)])
    assert result.exit_code == 0
    assert "int8" in result.output


def test_another_scale_is_seen_though_somebody_certified_the_file(folder):
    path = folder / "model.safetensors"
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    tensors = load_file(path)
    tensors["model.layers.0.mlp.up_proj._weight_scale"] *= 1.5
    save_file(tensors, path, metadata)
    files = json.loads((folder / CERTIFICATE).read_bytes())["files"]
    edit_certificate(folder, files={**files, path.name: file_facts(path)})
    with pytest.raises(CorruptArtifact, match="logits differ"):
        repeat_check(folder)


def test_a_form_that_no_release_has_is_no_certificate(folder):
    edit_certificate(folder, form="int3")
    with pytest.raises(InputError, match="int3"):
        repeat_check(folder)


def test_a_quantised_release_certifies_no_gguf_file_and_makes_none(
    folder, make_checkpoint, run_stage
):
    with pytest.raises(InputError, match="int8"):
        check_gguf(folder, folder / "config.json")
    made = run_stage(Export, {"quantise": "int8"}, {"checkpoint": [make_checkpoint(context=128)]})
    with pytest.raises(InputError, match="quantization_config"):
        run_stage(ExportGguf, {}, {"release": [(made, "release")]})
    with pytest.raises(InputError, match="quantization"):
        from_config(json.loads((folder / "config.json").read_bytes()), where="config.json")


@pytest.mark.usefixtures("loaded_here")
def test_a_report_names_the_form(make_checkpoint, export, store):
    made, _ = export(make_checkpoint(context=128), quantise="int8")
    rows = verified(Artifact(store, made)).rows
    assert ("matrices of layers", "int8") in [tuple(row) for row in rows]


def test_the_card_says_what_loads_it(folder):
    card = (folder / "README.md").read_text()
    assert "pip install torchao" in card
    assert "int8 (matrices of layers) and float32" in card


# Refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "calibrated", "named"),
    [
        ({"quantise": "int4", "dtype": "float16"}, False, "calibration"),
        ({"quantise": "int8"}, True, "int4 alone"),
        ({}, True, "int4 alone"),
        ({"quantise": "int4"}, True, "float16"),
    ],
)
def test_a_form_without_what_it_needs_is_refused(
    config, calibrated, named, make_checkpoint, calibration, export
):
    with pytest.raises(UsageError, match=named):
        export(make_checkpoint(**WIDE), calibration if calibrated else None, **config)


def test_a_missing_library_is_named_with_the_extra(make_checkpoint, export, monkeypatch):
    monkeypatch.setattr(export_config, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="torchao") as caught:
        export(make_checkpoint(context=128), quantise="int8")
    assert "ingot[quantise]" in caught.value.hint


def test_a_matrix_that_groups_do_not_divide_is_named(make_checkpoint, calibration, export):
    with pytest.raises(UsageError, match=r"k_proj.*\[16, 32\]"):
        export(make_checkpoint(context=128), calibration, **INT4)
    with pytest.raises(UsageError, match="inputs that 64 divides"):
        export(make_checkpoint(**WIDE), calibration, **INT4, int4_group=64)


def test_calibration_tokens_of_another_tokenizer_are_refused(tokenizer, calibration, read_input):
    shards = read_input(calibration[0], "train")
    with pytest.raises(InputError, match="vocabulary of"):
        int4.calibration_tokens([shards], 128, 401)
    tokens = int4.calibration_tokens([shards], 20, tokenizer.get_vocab_size())
    assert tokens.shape[1] == 20
    assert tokens.dtype == torch.int64


def test_models_whose_matrices_are_published_in_parts_are_refused(make_checkpoint, export):
    experts = {"experts": 4, "chosen": 2, "width": 16, "shared": 1, "first": 0}
    with pytest.raises(InputError, match="not quantised"):
        export(make_checkpoint(experts=experts, context=128), quantise="int8")
