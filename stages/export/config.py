"""Settings of `export` and `export_dataset`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

from pydantic import Field

from artifacts_schema.config import Config
from artifacts_schema.errors import UsageError

Form = Literal["int8", "int4"]
LIBRARIES = {"int8": "torchao", "int4": "auto_round"}
"""The module that makes a form, and that `transformers` loads it by."""


class ExportConfig(Config):
    """What the release calls itself, and how its weights are stored."""

    name: str = Field(
        default="ingot-model",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$",
        description="Name of the model, as a repository may be called.",
    )
    description: str | None = Field(
        default=None,
        description="What the model is, in a sentence or two, for the card; by default whether "
        "Ingot trained it, and whether from scratch.",
    )
    license: str | None = Field(
        default=None, description="Identifier of the licence on the Hub, e.g. apache-2.0."
    )
    languages: tuple[str, ...] = Field(
        default=(), description="ISO 639-1 codes of the languages of the training text."
    )
    dtype: Literal["keep", "float32", "bfloat16", "float16"] = Field(
        default="keep",
        description="Type of the weights. `keep`: as the checkpoint stores each; that is float32 "
        "after training, and the published type of a model that was only imported.",
    )
    quantise: Form | None = Field(
        default=None,
        description="Store the matrices of the layers in eight bits (torchao) or four (GPTQ's "
        "layout, by auto-round); the rest has `dtype`. int4 needs calibration tokens and float16.",
    )
    int4_group: Literal[32, 64, 128] = Field(
        default=32,
        description="Inputs of a row that share a scale in int4: 4.6, 4.3 or 4.2 bits a number.",
    )
    int4_steps: int = Field(
        default=200,
        ge=0,
        description="Steps by which auto-round tunes the rounding of a layer; 0 rounds to nearest.",
    )
    max_shard_bytes: int = Field(
        default=5_000_000_000,
        ge=1,
        description="Bytes of tensors in one file of weights; a larger tensor has a file of its "
        "own.",
    )


def check_library(form: Form) -> None:
    """UsageError if the package that makes the form is missing."""
    if find_spec(LIBRARIES[form]) is None:
        raise UsageError(
            f"{form} needs {LIBRARIES[form].replace('_', '-')}",
            where="export.quantise",
            hint="pip install 'ingot[quantise]'",
        )


class DatasetConfig(Config):
    """What a published data set calls itself, and which documents it holds."""

    name: str = Field(
        default="ingot-corpus",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$",
        description="Name of the data set, as a repository may be called.",
    )
    description: str | None = Field(
        default=None, description="What it is, in a sentence or two, for the card."
    )
    license: str | None = Field(
        default=None,
        description="Identifier of the licence of the collection on the Hub, e.g. odc-by; that of "
        "a document is its page's.",
    )
    languages: tuple[str, ...] = Field(
        default=(), description="ISO 639-1 codes of the languages of the text."
    )
    shard_bytes: int = Field(
        default=256_000_000,
        ge=1,
        description="Bytes of text in one file, before compression; a row group of 8,192 documents "
        "that has more is a file of its own.",
    )
    licences: tuple[str, ...] = Field(
        default=(),
        description="Publish documents alone whose page names one of these; by default all.",
    )
    opted_out: Literal["leave_out", "keep"] = Field(
        default="leave_out",
        description="What becomes of documents whose page is marked against use for AI.",
    )
