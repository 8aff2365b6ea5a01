"""The eighteenth blind set of labelled texts for redaction, seeds from 51001 on.

Three writers, who knew neither the rules nor the earlier sets, wrote four kinds each: 150 templates
and more of each kind and sign, the whole width that they know, with the weights in which a crawl
holds them (met all the time 1, usual .5, seldom .2).
"""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.blind_set import BlindSet
from tests.benchmarks.eighteenth_blind.keys import MAKERS as KEYS
from tests.benchmarks.eighteenth_blind.personal import MAKERS as PERSONAL
from tests.benchmarks.eighteenth_blind.secrets import MAKERS as SECRETS

SET = BlindSet(
    "eighteenth",
    51_001,
    Path(__file__).with_name("texts"),
    {**PERSONAL, **KEYS, **SECRETS},
)
