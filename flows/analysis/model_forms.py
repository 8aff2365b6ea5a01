"""The forms in which a checkpoint was released, as decoders that hold their numbers in float32.

What a form costs here is what its numbers cost. A program that runs it may round the states between
the matrices too, as llama.cpp does for each type but F32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store
from stages.engine.inputs import Input
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.files import WEIGHTS_FILE, build, read_config, read_model
from stages.model.huggingface.families import published_weights
from stages.model.tensor_files import open_tensors


@dataclass(frozen=True)
class ModelForm:
    """A checkpoint, a release or a GGUF file; `read` makes the decoder."""

    ref: str
    form: str
    """float32, bfloat16, int8, Q4_0, …: the type of most weights."""
    bytes: int
    """Of the files that hold the weights; a GGUF file holds the vocabulary too."""
    read: Callable[[], Decoder]


def open_checkpoint(store: Store, ref: str) -> tuple[Input, ModelForm]:
    """The checkpoint that forms are compared with. UsageError for another kind."""
    checkpoint = _load(store, ref, ("checkpoint",))[1]
    form = ModelForm(ref, "checkpoint", _weight_bytes(checkpoint), lambda: read_model(checkpoint))
    return checkpoint, form


def open_form(store: Store, ref: str, checkpoint: Input) -> ModelForm:
    """A release or a GGUF file of `checkpoint`. UsageError for one of another checkpoint."""
    manifest, made = _load(store, ref, ("release", "gguf"))
    source = _checkpoint_of(store, manifest)
    if source is None or source.digest != checkpoint.digest:
        name = "one that is not known" if source is None else f"{source.stage} {short(source.key)}"
        raise UsageError(
            f"is made of another checkpoint, {name}",
            where=ref,
            hint=f"name a form of {checkpoint.stage} {short(checkpoint.key)}",
        )
    config = read_config(checkpoint)
    if made.kind == "gguf":
        [file] = [name for name in made.paths() if name.endswith(".gguf")]
        form = file.removesuffix(".gguf").rsplit("-", 1)[1]
        return ModelForm(ref, form, _weight_bytes(made), lambda: read_gguf(made, file, config))
    described = made.read_json("config.json")
    form = _form_of(made) or described["dtype"]
    return ModelForm(ref, form, _weight_bytes(made), lambda: read_release(made, config))


def _load(store: Store, ref: str, kinds: tuple[str, ...]) -> tuple[Manifest, Input]:
    manifest, output = store.resolve(ref)
    if output is None:
        fitting = [name for name, one in manifest.outputs.items() if one.kind in kinds]
        output = fitting[0] if len(fitting) == 1 else None
    if output is None or manifest.output(output).kind not in kinds:
        raise UsageError(f"is no {' or '.join(kinds)}", where=ref)
    return manifest, Input.from_manifest(store, manifest, output)


def _checkpoint_of(store: Store, manifest: Manifest) -> InputRef | None:
    """The checkpoint that a form was made of; of a GGUF file through the release."""
    for reference in manifest.inputs.get("checkpoint", ()):
        return reference
    for reference in manifest.inputs.get("release", ()):
        parent = store.manifest(*reference.name)
        return None if parent is None else _checkpoint_of(store, parent)
    return None


def _weight_bytes(made: Input) -> int:
    return sum(one.bytes for one in made.files if one.path.endswith((".safetensors", ".gguf")))


def _form_of(release: Input) -> str | None:
    """int8 or int4, where its certificate says so."""
    certificate = release.read_json("certificate.json") if release.has("certificate.json") else {}
    form: str | None = certificate.get("form")
    return form


def read_release(release: Input, config: ModelConfig) -> Decoder:
    """The decoder of a release, quantised matrices as the numbers that they hold."""
    from stages.export.quantised import dequantise

    where = f"release {release.key[:12]}/{WEIGHTS_FILE}"
    with open_tensors(release, WEIGHTS_FILE) as tensors:
        plain: dict[str, Any] = {}
        for weight in published_weights(config):
            parts = {
                name: tensors[name] if name in tensors else dequantise(tensors, name)
                for name in weight.published
            }
            plain[weight.name] = weight.adopt(parts, where=where)
        return build(config, plain, where=where)


def read_gguf(made: Input, file: str, config: ModelConfig) -> Decoder:
    """The decoder of a GGUF file that `export_gguf` wrote, its blocks as the numbers they hold.

    Where the file has an output projection beside a tied embedding matrix, the two may be of
    different types, so the decoder is one that is not tied.
    """
    import gguf

    from stages.export_gguf.architecture import tensors_of
    from stages.export_gguf.tensors import unpair_rotary_rows

    reader = gguf.GGUFReader(made.local_path(file))
    stored = {one.name: one for one in reader.tensors}
    if config.tied_embeddings and "output.weight" in stored:
        config = config.model_copy(update={"tied_embeddings": False})
    published: dict[str, torch.Tensor] = {}
    for one in tensors_of(config):
        tensor = stored[one.name]
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        if one.rows_of_heads is not None:
            values = unpair_rotary_rows(values, one.rows_of_heads)
        published[one.published] = torch.from_numpy(values.copy())
    where = f"gguf {made.key[:12]}/{file}"
    weights: Mapping[str, torch.Tensor] = {
        weight.name: weight.adopt(published, where=where) for weight in published_weights(config)
    }
    return build(config, weights, where=where)
