"""Matrices and tables that draw no random numbers when they are made."""

from __future__ import annotations

from torch import nn


class Linear(nn.Linear):
    """A matrix without bias; `Decoder.initialise` fills it, the global random state is not used."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, bias=False)

    def reset_parameters(self) -> None:
        """Nothing: see `Decoder.initialise`."""


class Embedding(nn.Embedding):
    """A table of token vectors; `Decoder.initialise` fills it."""

    def reset_parameters(self) -> None:
        """Nothing: see `Decoder.initialise`."""
