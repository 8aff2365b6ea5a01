"""The twelfth blind set of labelled texts for redaction, seeds from 33001 on.

Its writer knew neither the rules of `stages.signals` nor the texts and makers of the earlier sets.
What counts as a value of each kind is stated by the sixth set (sixth_blind/__init__.py).

How the forms were chosen: searches by neutral words (club contact, staff directory, client address
in a log, connection string, Authorization header, key conversion, temporary password, ...) in
documentation, pages and issue threads, beside what settings files, containers, playbooks, notes and
chat exports hold. A usual form has several templates, a rare one has one. Hard negatives are the
look-alikes beside the values. No text is a copy; people, firms, names and values are drawn in the
shapes that services and tools document.

In no text, because the label can be disputed: numbers kept for fiction and tests, public test
cards, documentation addresses, public resolvers and networks, handles with a domain, encrypted
private keys, password hashes.
"""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.blind_set import BlindSet, Maker
from tests.benchmarks.twelfth_blind.keys import KEY_MAKERS
from tests.benchmarks.twelfth_blind.names import NAME_MAKERS, name_other, name_secret
from tests.benchmarks.twelfth_blind.personal import PERSONAL_MAKERS
from tests.benchmarks.twelfth_blind.tokens import TOKEN_MAKERS
from tests.benchmarks.twelfth_blind.words import FILLERS

MAKERS: dict[str, Maker] = {
    **FILLERS,
    **PERSONAL_MAKERS,
    **KEY_MAKERS,
    **TOKEN_MAKERS,
    **NAME_MAKERS,
}

SET = BlindSet(
    "twelfth",
    Path(__file__).with_name("texts"),
    MAKERS,
    name_secret,
    name_other,
    carrier_chance=0.6,
)
