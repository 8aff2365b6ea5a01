"""The certificate of a release: what it names, what it finds, and that it runs nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file, save_file

from artifacts_schema.errors import CorruptArtifact, InputError
from flows.cli.main import main
from stages.export.certificate import CERTIFICATE, repeat_check
from stages.export.gguf_check import check_gguf
from stages.export.stage import Export
from stages.export.verify import PROBE_TEXTS


@pytest.fixture
def folder(run_stage, read_input, chat_checkpoint, loaded_here, tmp_path):
    """A release, copied out of the store."""
    made = run_stage(Export, {}, {"checkpoint": [chat_checkpoint]})
    release = read_input(made, "release")
    copy = tmp_path / "release"
    copy.mkdir()
    for name in release.paths():
        shutil.copyfile(release.local_path(name), copy / name)
    return copy


def change(folder, edit):
    """Edit the certificate."""
    path = folder / CERTIFICATE
    content = json.loads(path.read_bytes())
    edit(content)
    path.write_text(json.dumps(content))


def recertify(folder, name):
    """Let the certificate name the bytes that a file has now, as somebody with bad intent would."""
    from stages.export.certificate import file_facts

    change(folder, lambda content: content["files"].update({name: file_facts(folder / name)}))


def test_a_copy_is_found_whole_and_alike(folder, model, tokenizer):
    result = repeat_check(folder)
    certificate = json.loads((folder / CERTIFICATE).read_bytes())
    named = {path.name for path in folder.iterdir()} - {CERTIFICATE}
    assert set(certificate["files"]) == named
    assert result.files == len(named)
    assert result.logit_difference <= 1e-4
    assert result.uncertified == []
    assert certificate["texts"] == list(PROBE_TEXTS)
    assert certificate["ids"][0] == tokenizer.encode(PROBE_TEXTS[0], add_special_tokens=False).ids
    # The certified logits are those of Ingot's decoder, the largest of each place first.
    with torch.no_grad():
        logits = model(torch.tensor([certificate["tokens"]]))[0]
    best = logits.topk(8)
    assert torch.equal(best.indices, torch.tensor(certificate["top_ids"]))
    assert torch.allclose(best.values, torch.tensor(certificate["top_logits"]), atol=1e-6)
    # And the tokens that it goes on with are the likeliest, one after the other.
    row = certificate["tokens"][: len(certificate["tokens"]) - 8]
    for token in certificate["written"]:
        with torch.no_grad():
            assert token == int(model(torch.tensor([row]))[0, -1].argmax())
        row.append(token)


def test_each_file_that_differs_is_named_and_nothing_is_loaded(folder, monkeypatch):
    (folder / "README.md").write_text("another card")
    (folder / "generation_config.json").unlink()
    data = bytearray((folder / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (folder / "model.safetensors").write_bytes(data)

    def run(*arguments):
        pytest.fail("it was loaded")

    monkeypatch.setattr("stages.export.certificate.run_script", run)
    with pytest.raises(CorruptArtifact) as caught:
        repeat_check(folder)
    message = str(caught.value)
    assert "3 of 8 files" in message
    assert "README.md: 12 bytes, certified" in message
    assert "generation_config.json: missing" in message
    assert "model.safetensors: sha256" in message
    assert "tokenizer.json" not in message


def test_other_weights_are_found_by_what_they_compute(folder):
    weights = load_file(folder / "model.safetensors")
    name = "model.layers.1.mlp.up_proj.weight"
    weights[name] = weights[name] * 1.5
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    recertify(folder, "model.safetensors")
    with pytest.raises(CorruptArtifact, match=r"by transformers .* logits differ by"):
        repeat_check(folder)


def test_another_tokenizer_or_template_is_found(folder):
    described = json.loads((folder / "tokenizer.json").read_bytes())
    described["model"]["ignore_merges"] = False
    described["model"]["merges"] = described["model"]["merges"][:5]
    (folder / "tokenizer.json").write_text(json.dumps(described))
    recertify(folder, "tokenizer.json")
    template = (folder / "chat_template.jinja").read_text()
    (folder / "chat_template.jinja").write_text(template + "{# more #}")
    recertify(folder, "chat_template.jinja")
    with pytest.raises(CorruptArtifact, match="token ids differ; the chat differs"):
        repeat_check(folder)


CODE = "import pathlib\npathlib.Path({!r}).write_text('it ran')\n"


def test_code_in_the_folder_is_not_run(folder, tmp_path):
    mark = tmp_path / "mark"
    for name in ("modeling_evil.py", "stages.py", "sitecustomize.py", "torch.py"):
        (folder / name).write_text(CODE.format(str(mark)))
    config = json.loads((folder / "config.json").read_bytes())
    config["auto_map"] = {"AutoModelForCausalLM": "modeling_evil.Evil"}
    (folder / "config.json").write_text(json.dumps(config))
    recertify(folder, "config.json")
    result = repeat_check(folder)
    assert result.uncertified == ["modeling_evil.py", "sitecustomize.py", "stages.py", "torch.py"]
    assert not mark.exists()


def forged(edit):
    return pytest.param(edit, id=edit.__name__)


def code(content):
    content["files"]["modeling.py"] = {"bytes": 1, "sha256": "0"}


def path_outside(content):
    content["files"]["../secret.json"] = {"bytes": 1, "sha256": "0"}


def pickle(content):
    content["files"]["pytorch_model.bin"] = {"bytes": 1, "sha256": "0"}


def foreign_template(content):
    content["chat_template"] = "{% for x in range(10**9) %}{% endfor %}"


def loose(content):
    content["tolerance"] = 10.0


def later_format(content):
    content["certificate_format"] = 2


def no_logits(content):
    content["top_logits"] = []


def no_tokenizer(content):
    del content["files"]["tokenizer.json"]


@pytest.mark.parametrize(
    "edit",
    [
        *(forged(code), forged(path_outside), forged(pickle), forged(foreign_template)),
        *(forged(loose), forged(later_format), forged(no_logits), forged(no_tokenizer)),
    ],
)
def test_a_forged_certificate_is_refused_before_anything_is_loaded(folder, edit, monkeypatch):
    monkeypatch.setattr("stages.export.certificate.run_script", lambda *_: pytest.fail("loaded"))
    change(folder, edit)
    with pytest.raises(InputError, match="is no certificate"):
        repeat_check(folder)


def test_a_folder_without_one_is_told_apart(tmp_path):
    with pytest.raises(InputError, match=r"has no certificate\.json"):
        repeat_check(tmp_path)
    (tmp_path / CERTIFICATE).write_bytes(b"\xff{")
    with pytest.raises(InputError, match="is no certificate"):
        repeat_check(tmp_path)


@pytest.mark.skipif(find_spec("llama_cpp") is not None, reason="llama-cpp-python is here")
def test_a_gguf_file_needs_a_python_that_has_llama_cpp(folder):
    file = folder / "config.json"
    with pytest.raises(InputError, match=r"cannot run it: .*llama_cpp") as caught:
        check_gguf(folder, file, sys.executable)
    assert caught.value.hint == "--python names a Python that has llama-cpp-python"
    with pytest.raises(InputError, match="cannot run /no/python: No such file"):
        check_gguf(folder, file, "/no/python")


PYTHON_4 = os.environ.get("INGOT_PEERS_TRANSFORMERS_4")


@pytest.mark.full
@pytest.mark.skipif(PYTHON_4 is None, reason="INGOT_PEERS_TRANSFORMERS_4 names no Python")
def test_transformers_4_finds_it_alike(folder):
    result = repeat_check(folder, PYTHON_4)
    assert result.transformers.startswith("4.57.")
    assert result.logit_difference <= 1e-4


def test_the_command_repeats_it_in_a_fresh_process(folder, monkeypatch):
    monkeypatch.undo()  # The script runs in a process of its own.
    shown = subprocess.run(
        [sys.executable, "-m", "ingot_entry", "verify-release", str(folder), "--json"],
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 0, shown.stderr
    result = json.loads(shown.stdout)
    assert result["logit_difference"] <= 1e-4
    assert result["files"] == 8
    (folder / "README.md").write_text("another card")
    failed = CliRunner().invoke(main, ["verify-release", str(folder)])
    assert failed.exit_code != 0
    assert "README.md: 12 bytes" in failed.output
