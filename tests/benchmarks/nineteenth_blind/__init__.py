"""The nineteenth blind set of labelled texts for redaction, seeds from 54001 on.

Three writers, who knew neither the rules nor the earlier sets, wrote four kinds each: 150 templates
and more of each kind and sign, the whole width that they know, with the weights in which a crawl
holds them (met all the time 1, usual .5, seldom .2).
"""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.blind_set import BlindSet
from tests.benchmarks.nineteenth_blind.keys import MAKERS as KEYS
from tests.benchmarks.nineteenth_blind.personal import MAKERS as PERSONAL
from tests.benchmarks.nineteenth_blind.secrets import MAKERS as SECRETS

SET = BlindSet(
    "nineteenth",
    54_001,
    Path(__file__).with_name("texts"),
    {**PERSONAL, **KEYS, **SECRETS},
)
