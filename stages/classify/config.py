"""Settings of `classify`: which scores of a model are written, and what of a text it reads."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from stages.encoders.config import EncoderConfig


class ClassifyConfig(EncoderConfig):
    """What is scored, and how."""

    name: str = Field(
        pattern=r"^[a-z][a-z0-9_]*$",
        description="Its signals are `<name>.<label>`, with `_` for a `/` in a label.",
    )
    labels: tuple[str, ...] = Field(
        default=(),
        description="Labels whose scores are written, as the model's config names them; empty: "
        "all. Rules on them are checked when a plan is made only where they are named here.",
    )
    top_label: bool = Field(
        default=False,
        description="Whether the label with the highest score is written too, as signal `<name>`.",
    )
    activation: Literal["auto", "none", "sigmoid", "softmax"] = Field(
        default="auto",
        description="What makes scores of the model's outputs. `auto` is what the pipeline of "
        "transformers does by the model's `problem_type`: none for regression, sigmoid for several "
        "labels at once and for one label, else softmax.",
    )

    @model_validator(mode="after")
    def _labels_differ(self) -> Self:
        if len(set(self.labels)) < len(self.labels):
            raise ValueError(f"labels has one twice: {', '.join(self.labels)}")
        return self
