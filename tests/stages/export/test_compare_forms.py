"""`ingot compare-forms`: the numbers of each form, and what they cost beside the checkpoint."""

import json
import math

import pytest
import torch
from click.testing import CliRunner
from transformers import AutoConfig, AutoModelForCausalLM

from artifacts_schema.store import Store
from flows.analysis.model_forms import open_checkpoint, open_form
from flows.cli.main import main
from stages.export.stage import Export
from stages.export_gguf.stage import ExportGguf
from stages.model.decoder import Decoder
from stages.model.files import model_files
from stages.model.huggingface.families import to_config
from stages.pack.stage import Pack
from stages.tokenizer.training import transformers_config

pytest.importorskip("torchao", reason="needs torchao: pip install 'ingot[quantise]'")
pytest.importorskip("gguf", reason="needs gguf: pip install 'ingot[gguf]'")

TEXTS = [f"Keys are values, number {n}. " * (1 + n % 3) for n in range(40)]
FAMILIES = {
    "llama": {},
    "llama not tied": {"tied_embeddings": False},
    "qwen3": {"qk_norm": "head", "head_width": 128, "norm_epsilon": 1e-6},
}


@pytest.fixture
def make_checkpoint(given, make_model, tokenizer):
    def make(**changes):
        return given(
            "checkpoint",
            {
                **model_files(make_model(context=128, **changes)),
                "tokenizer.json": tokenizer.to_str().encode(),
                "tokenizer_config.json": transformers_config("llama-bpe"),
                "state.json": {"stage": "pretrain", "training_step": 12, "tokens": 345},
            },
        )

    return make


@pytest.fixture
def held_out(given, make_documents, run_stage, tokenizer):
    """Half of the texts, of two sources."""
    sources = ["even", "odd"] * 20
    rows = [{"text": text, "source": one} for text, one in zip(TEXTS, sources, strict=True)]
    made = given(
        "tokenizer",
        {
            "tokenizer.json": tokenizer.to_str().encode(),
            "tokenizer_config.json": transformers_config("llama-bpe"),
            "training.json": {"vocabulary_size": 400, "padded_vocabulary_size": 400},
        },
    )
    inputs = {"documents": [make_documents([rows], snapshot="made")], "tokenizer": [made]}
    return run_stage(Pack, {"sequence_length": 64, "held_out_share": 0.5}, inputs)


@pytest.fixture
def benchmarks(given):
    item = {"form": "multiple_choice", "metadata": "{}", "benchmark": "quiz"}
    choices = ["Paris", "Rome", "a dictionary of values"]
    rows = [
        {**item, "item_id": str(n), "prompt": f"{n}: the", "choices": choices, "answer": n % 3}
        for n in range(12)
    ]
    return given("benchmarks", {"00000.parquet": rows})


@pytest.fixture
def compare(store):
    def run(*words):
        return CliRunner().invoke(main, ["compare-forms", *words, "--store", store.url])

    return run


@pytest.mark.usefixtures("loaded_here")
def test_a_form_costs_what_transformers_measures_on_the_same_tokens(
    run_stage, read_input, store, make_checkpoint, held_out, benchmarks, compare
):
    """Bits per byte of all held-out text, of the folders as `transformers` loads them."""
    checkpoint = make_checkpoint()
    made = [
        run_stage(Export, config, {"checkpoint": [checkpoint]})
        for config in ({}, {"dtype": "bfloat16"}, {"quantise": "int8"})
    ]
    for one, ref in zip(made, ("plain", "rounded", "whole"), strict=True):
        store.set_ref(ref, one.stage, one.key)
    store.set_ref("base", checkpoint[0].stage, checkpoint[0].key)
    store.set_ref("text", held_out.stage, held_out.key)
    store.set_ref("items", benchmarks[0].stage, benchmarks[0].key)
    words = ["--held-out", "text:held_out", "--benchmarks", "items", "--json"]
    result = compare("base", "plain", "rounded", "whole", *words)
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert [one["form"] for one in printed["forms"]] == ["float32", "bfloat16", "int8"]
    shards = read_input(held_out, "held_out")
    from stages.training.token_shards import TokenShards

    tokens = TokenShards([shards])
    sizes = tokens.token_bytes()

    def measure(folder):
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        nats = byte_count = 0.0
        for source, name in enumerate(tokens.sources):
            for number in range(tokens.sequences[name]):
                batch = tokens.batch(torch.tensor([source]).numpy(), torch.tensor([number]).numpy())
                # Each document alone, as the decoder sees it.
                row, targets = batch.tokens_BL[0], batch.targets_BL[0]
                documents = batch.documents_BL[0]
                for document in sorted(set(documents[documents >= 0].tolist())):
                    places = (documents == document).nonzero()[0]
                    ids = torch.tensor(row[places].astype("int64"))[None]
                    with torch.no_grad():
                        log_p = model(ids).logits[0].double().log_softmax(-1)
                    for place, target in enumerate(targets[places].tolist()):
                        if target >= 0 and sizes[target] > 0:
                            nats -= float(log_p[place, target])
                            byte_count += int(sizes[target])
        return nats / math.log(2) / byte_count

    folders = [read_input(one, "release").local_path("config.json").parent for one in made]
    values = [measure(folder) for folder in folders]
    for value, printed_form in zip(values, printed["forms"], strict=True):
        [text] = [d for d in printed_form["differences"] if d["benchmark"] == "held_out"]
        assert text["paired"]["b"] == pytest.approx(value, abs=1e-5)
        assert text["paired"]["value"] == pytest.approx(value - values[0], abs=1e-5)
        assert {d["benchmark"] for d in printed_form["differences"]} == {
            "held_out", "held_out/even", "held_out/odd", "quiz",
        }  # fmt: skip
    assert printed["forms"][0]["bytes"] == pytest.approx(printed["bytes"], rel=0.01)
    assert all(d["paired"]["value"] == 0 for d in printed["forms"][0]["differences"])


@pytest.mark.parametrize("kind", ["F32", "Q8_0", "Q4_0"])
@pytest.mark.parametrize("name", FAMILIES)
def test_numbers_of_a_gguf_file_are_those_that_transformers_reads(
    name, kind, run_stage, read_input, store, make_checkpoint
):
    checkpoint = make_checkpoint(**FAMILIES[name])
    made = run_stage(ExportGguf, {"type": kind}, {"checkpoint": [checkpoint]})
    opened = Store.open(store.url)
    source, _ = open_checkpoint(opened, checkpoint[0].key[:16])
    form = open_form(opened, made.key[:16], source)
    assert form.form == kind
    model = form.read()
    assert isinstance(model, Decoder)
    output = read_input(made, "gguf")
    [file] = [path for path in output.paths() if path.endswith(".gguf")]
    path = output.local_path(file)
    assert form.bytes == path.stat().st_size
    described = to_config(model.config, bos=0, eos=1, pad=2)
    config = AutoConfig.for_model(described.pop("model_type"), **described)
    theirs = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=file, config=config, dtype=torch.float32
    ).eval()
    tokens = torch.randint(0, 400, (1, 40), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        a, b = theirs(tokens).logits, model(tokens)
    assert (a - b).abs().max() <= 1e-5 * b.abs().max()


def test_an_output_projection_of_another_type_is_read_beside_the_tied_matrix(
    run_stage, store, make_checkpoint
):
    """llama.cpp's OLMo 2 has it twice; in a Q4_0 file one is Q8_0."""
    checkpoint = make_checkpoint(qk_norm="width", norm="output", tied_embeddings=True)
    made = run_stage(ExportGguf, {"type": "Q4_0"}, {"checkpoint": [checkpoint]})
    source, base = open_checkpoint(store, checkpoint[0].key[:16])
    model = open_form(store, made.key[:16], source).read()
    weight = base.read().embedding.weight
    assert not model.config.tied_embeddings
    embedding, head = (
        float((one - weight).detach().abs().max())
        for one in (model.embedding.weight, model.head.weight)
    )
    assert 0 < head < embedding / 8


@pytest.mark.usefixtures("loaded_here")
def test_what_cannot_be_compared_is_named(run_stage, store, make_checkpoint, held_out, compare):
    one, other = make_checkpoint(), make_checkpoint(layers=1)
    made = run_stage(Export, {}, {"checkpoint": [other]})
    base, form = one[0].key[:16], made.key[:16]
    text = f"{held_out.key[:16]}:held_out"
    for words, named in (
        ((base, form, "--held-out", text), "another checkpoint"),
        ((other[0].key[:16], form), "nothing to measure"),
        ((other[0].key[:16], form, "--held-out", base), "is no token_shards"),
        ((form, form, "--held-out", text), "is no checkpoint"),
        ((base, base, "--held-out", text), "is no release or gguf"),
        ((other[0].key[:16], form, "--held-out", text, "--metric", "fame"), "no such metric"),
    ):
        result = compare(*words)
        assert result.exit_code == 2, result.output
        assert named in result.output


@pytest.mark.usefixtures("loaded_here")
def test_a_gguf_file_of_a_release_is_one_of_its_checkpoint(
    run_stage, store, make_checkpoint, held_out, compare
):
    checkpoint = make_checkpoint()
    release = run_stage(Export, {}, {"checkpoint": [checkpoint]})
    made = run_stage(ExportGguf, {"type": "Q8_0"}, {"release": [(release, "release")]})
    text = f"{held_out.key[:16]}:held_out"
    result = compare(checkpoint[0].key[:16], made.key[:16], "--held-out", text)
    assert result.exit_code == 0, result.output
    assert "Q8_0" in result.output
    assert "bits_per_byte" in result.output
