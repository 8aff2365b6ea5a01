"""The twenty-second blind set of labelled texts for redaction: passwords as pages hold them.

Three further writers, who knew neither the rules nor the earlier sets, looked up what public pages
and repositories write around passwords and wrote each form anew with other names and values: code
and consoles, English prose, texts in 28 other languages. Sources lie on the test side
(`splits.side` of the site or repository); development texts of the same making follow sources of
the other side. Forms come as the look-ups gave them, so every template has the same weight.
"""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.blind_set import BlindSet
from tests.benchmarks.twenty_second_blind import code, prose, tongues

SET = BlindSet(
    "twenty-second",
    63_001,
    Path(__file__).with_name("texts"),
    {**code.MAKERS, **prose.MAKERS, **tongues.MAKERS},
    kinds=("password",),
)
