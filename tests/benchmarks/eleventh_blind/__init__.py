"""The eleventh blind set of labelled texts for redaction, seeds from 30001 on.

Its writer knew neither the rules of `stages.signals` nor the texts and makers of the earlier sets.
What counts as a value of each kind is stated by the sixth set (sixth_blind/__init__.py).

How the forms were chosen: about 60 searches by neutral words (contact page, invoice, access log,
environment file, Authorization header, connection string, key conversion, password mail, ...) in
documentation, forums, issue threads, pages and code were read. A form that came back often has
several templates with other words and surroundings, a rare one has one, so a draw over all
templates has about the proportions that were met. Hard negatives are what stood beside the values.
Nobody searched for credentials: the forms of their positives are those that services and tools
document, where placeholders stand. No text is a copy; people, firms, names and values are drawn.

In no text, because the label can be disputed: numbers kept for fiction and tests, public test cards
and IBANs, documentation addresses of RFC 5737 and 3849, public resolvers, addresses written with
"at", AWS access key ids, encrypted private keys, bare UUIDs as keys, password hashes, default
logins, tokens without a signature.
"""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.blind_set import BlindSet, Maker
from tests.benchmarks.eleventh_blind.keys import KEY_MAKERS
from tests.benchmarks.eleventh_blind.names import NAME_MAKERS, name_other, name_secret
from tests.benchmarks.eleventh_blind.personal import PERSONAL_MAKERS
from tests.benchmarks.eleventh_blind.tokens import TOKEN_MAKERS
from tests.benchmarks.eleventh_blind.words import FILLERS

MAKERS: dict[str, Maker] = {
    **FILLERS,
    **PERSONAL_MAKERS,
    **KEY_MAKERS,
    **TOKEN_MAKERS,
    **NAME_MAKERS,
}

SET = BlindSet(
    "eleventh",
    Path(__file__).with_name("texts"),
    MAKERS,
    name_secret,
    name_other,
    carrier_chance=0.6,
)
