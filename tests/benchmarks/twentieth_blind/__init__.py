"""The twentieth blind set of labelled texts for redaction, seeds from 57001 on.

Four writers, who knew neither the rules nor the earlier sets, wrote two to four kinds each: 150
templates and more of each kind and sign, the whole width that they know, with the weights in which
a crawl holds them (met all the time 1, usual .5, seldom .2).
"""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.blind_set import BlindSet
from tests.benchmarks.twentieth_blind.keys import MAKERS as KEYS
from tests.benchmarks.twentieth_blind.logins import MAKERS as LOGINS
from tests.benchmarks.twentieth_blind.personal import MAKERS as PERSONAL
from tests.benchmarks.twentieth_blind.tokens import MAKERS as TOKENS

SET = BlindSet(
    "twentieth",
    57_001,
    Path(__file__).with_name("texts"),
    {**PERSONAL, **KEYS, **LOGINS, **TOKENS},
)
