"""Names of the losses of pairs, and which settings each reads. Nothing heavy is imported."""

from __future__ import annotations

from typing import Literal

LossName = Literal[
    "sigmoid",
    "cdpo",
    "robust",
    "hinge",
    "ipo_sum",
    "ipo_mean",
    "sigmoid_mean",
    "apo_zero",
    "apo_down",
    "bco_pair",
    "kto",
    "simpo",
    "orpo",
    "cpo",
]

WITHOUT_REFERENCE = ("simpo", "orpo", "cpo")
WITH_CROSS_ENTROPY = ("orpo", "cpo")
"""Losses to which their papers add the mean cross-entropy of chosen answers."""
READ_BY = {
    "gamma": ("simpo",),
    "label_smoothing": ("cdpo", "robust"),
    "desirable_weight": ("kto",),
    "undesirable_weight": ("kto",),
}
"""Which losses read a field; all read beta."""
