"""The thirteenth blind set of labelled texts for redaction, seeds from 36001 on.

Its writer knew neither the rules of `stages.signals` nor the texts and makers of the earlier sets.

How the forms were chosen: by what a crawl of pages, documentation, forums, issue threads and
repositories holds, as its writer knows it. A usual form has several templates or a weight of one,
a rare form has one template of small weight. No text is a copy; people, firms, names and values
are drawn in the shapes that standards and services document. About a third is not English.

A label is the value alone: a password without its name, a token without `Bearer`, a private key
between its BEGIN and END lines (or its base64 where it has no lines), the pieces of a broken token.

In no text, because the label can be disputed: numbers kept for fiction as values, public resolvers
and whole public networks, handles with a domain, encrypted private keys, password hashes, keys of a
service's test mode, addresses that carry a secret in their path.
"""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.blind_set import BlindSet, Maker
from tests.benchmarks.thirteenth_blind.keys import KEY_MAKERS
from tests.benchmarks.thirteenth_blind.names import NAME_MAKERS, name_other, name_secret
from tests.benchmarks.thirteenth_blind.personal import PERSONAL_MAKERS
from tests.benchmarks.thirteenth_blind.tokens import TOKEN_MAKERS
from tests.benchmarks.thirteenth_blind.words import FILLERS

MAKERS: dict[str, Maker] = {
    **FILLERS,
    **PERSONAL_MAKERS,
    **KEY_MAKERS,
    **TOKEN_MAKERS,
    **NAME_MAKERS,
}

SET = BlindSet(
    "thirteenth",
    Path(__file__).with_name("texts"),
    MAKERS,
    name_secret,
    name_other,
    carrier_chance=0.6,
)
