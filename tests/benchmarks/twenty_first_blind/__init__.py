"""The twenty-first blind set of labelled texts for redaction, of passwords alone, seeds from 60001.

One further writer, who knew neither the rules nor the earlier sets, wrote more than 200 templates
of each sign, the whole width of tools and languages, with the weights in which a crawl holds them
(met all the time 1, usual .5, seldom .2).
"""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.blind_set import BlindSet
from tests.benchmarks.twenty_first_blind.passwords import MAKERS

SET = BlindSet(
    "twenty-first",
    60_001,
    Path(__file__).with_name("texts"),
    MAKERS,
    kinds=("password",),
)
