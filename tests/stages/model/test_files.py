import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from artifacts_schema.errors import CorruptArtifact
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.files import model_files, read_model


@dataclass
class Folder:
    """A checkpoint in a folder, with the members of an engine `Input` that `files` uses."""

    root: Path
    key: str = "0123456789abcdef"
    kind: str = "checkpoint"

    def read_json(self, path):
        return json.loads((self.root / path).read_bytes())

    def read_bytes(self, path):
        return (self.root / path).read_bytes()

    def has(self, path):
        return (self.root / path).exists()

    def local_path(self, path):
        return self.root / path


def tiny(**changes) -> Decoder:
    values = {"vocabulary_size": 50, "width": 16, "layers": 2, "heads": 2, "kv_heads": 1}
    return Decoder(ModelConfig(**{**values, **changes}), seed=7)


def stored(folder: Path, files: dict[str, bytes]) -> Folder:
    for name, raw in files.items():
        (folder / name).write_bytes(raw)
    return Folder(folder)


@pytest.mark.parametrize("tied", [True, False])
def test_a_model_comes_back_with_equal_weights(tmp_path, tied):
    model = tiny(tied_embeddings=tied)
    again = read_model(stored(tmp_path, model_files(model)))
    assert again.config == model.config
    for (name, one), (other, two) in zip(
        model.state_dict().items(), again.state_dict().items(), strict=True
    ):
        assert name == other
        assert two.dtype == torch.float32
        assert torch.equal(one, two)


def test_equal_models_are_equal_bytes():
    assert model_files(tiny()) == model_files(tiny())


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"layers": 1}, r"'blocks.1.attention.key.weight' is unknown.* and 6 more"),
        ({"layers": 3}, r"'blocks.2.attention_norm.weight' is missing"),
        ({"width": 32}, r"'blocks.0.attention.key.weight' is \[8, 16\], expected \[16, 32\]"),
        ({"tied_embeddings": False}, "'head.weight' is missing"),
    ],
)
def test_weights_of_another_architecture_are_named(tmp_path, change, complaint):
    files = model_files(tiny())
    config = {**json.loads(files["model.json"]), **change}
    files["model.json"] = json.dumps(config).encode()
    with pytest.raises(CorruptArtifact, match=complaint):
        read_model(stored(tmp_path, files))


@pytest.mark.parametrize(
    ("name", "raw", "complaint"),
    [
        ("model.json", b'{"vocabulary_size": 50, "widht": 16}', "did you mean 'width'"),
        ("model.json", b'["llama"]', "expected an object, found list"),
        ("model.safetensors", b"\x80\x04K\x01.", "not a safetensors file"),
    ],
)
def test_files_that_are_not_a_model_are_refused(tmp_path, name, raw, complaint):
    with pytest.raises(CorruptArtifact, match=complaint):
        read_model(stored(tmp_path, {**model_files(tiny()), name: raw}))


def test_cut_weights_are_refused(tmp_path):
    files = model_files(tiny())
    files["model.safetensors"] = files["model.safetensors"][:-10]
    with pytest.raises(CorruptArtifact, match="not a safetensors file"):
        read_model(stored(tmp_path, files))
