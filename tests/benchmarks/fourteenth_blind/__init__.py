"""The fourteenth blind set of labelled texts for redaction, seeds from 39001 on.

Its writer knew neither the rules of `stages.signals` nor the texts and makers of the earlier sets.

The texts stand for what a crawl of pages, documentation, forums, issue threads, notebooks and
repositories holds: a usual form has several templates or full weight, a rare one little. A label is
the value alone: the address, the number, the password of a connection string, the token without
`Bearer`, the lines of a key between its BEGIN and END lines, every piece of a broken token.

In no text, because the label can be disputed: handles with a domain, addresses of service accounts,
public resolvers, networks of public addresses, encrypted private keys, password hashes, keys of
test modes, default passwords of products.
"""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.blind_set import BlindSet, Maker
from tests.benchmarks.fourteenth_blind.keys import KEY_MAKERS
from tests.benchmarks.fourteenth_blind.names import NAME_MAKERS, name_other, name_secret
from tests.benchmarks.fourteenth_blind.personal import PERSONAL_MAKERS
from tests.benchmarks.fourteenth_blind.tokens import TOKEN_MAKERS
from tests.benchmarks.fourteenth_blind.words import FILLERS

MAKERS: dict[str, Maker] = {
    **FILLERS,
    **PERSONAL_MAKERS,
    **KEY_MAKERS,
    **TOKEN_MAKERS,
    **NAME_MAKERS,
}

SET = BlindSet(
    "fourteenth",
    Path(__file__).with_name("texts"),
    MAKERS,
    name_secret,
    name_other,
    carrier_chance=0.6,
)
