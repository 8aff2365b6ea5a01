"""The fifteenth blind set of labelled texts for redaction, seeds from 42001 on.

Three writers, who knew neither the rules nor the earlier sets, wrote four kinds each. It is broad:
140 templates and more of each kind and sign, each another situation, so that no form weighs more
than one text or two of 200.
"""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.blind_set import BlindSet
from tests.benchmarks.fifteenth_blind.keys import MAKERS as KEYS
from tests.benchmarks.fifteenth_blind.personal import MAKERS as PERSONAL
from tests.benchmarks.fifteenth_blind.secrets import MAKERS as SECRETS

SET = BlindSet(
    "fifteenth",
    42_001,
    Path(__file__).with_name("texts"),
    {**PERSONAL, **KEYS, **SECRETS},
    in_turn=True,
)
