"""The fourth blind set: labelled texts, by a writer who knew neither the rules nor other sets.

What counts, by kind:

- email: an address that mail reaches, of a person or an organisation, also with `[at]`; no login of
  a host, identifier of a message, version of a package, handle, or address at a reserved domain.
- phone: a number that somebody can dial, with a plus or beside words about a phone; no number for
  fiction (555-01xx, 07700 900xxx), mask, order number, date, ISBN, coordinate or emergency call.
- ip: a routable address of version 4 or 6; no private, local, reserved or multicast one, mask,
  version, identifier of an object, section, time or hardware address.
- card: a number of a network's length and first digits with a right check digit; no published test
  number, masked number, or number whose check digit is wrong.
- iban: an account number of a country's length with right check digits; no example of the registry
  or of documentation, masked or wrong number, BIC, VAT number or ISIN.
- jwt: a signed JSON web token of three parts; no part by itself, cut or masked token, name with
  dots, or base64 of another thing.
- private_key: the secret part of a key pair (the body between its marks); no public key,
  certificate, signature, mark without a body, fingerprint, path or ciphertext meant to be shared.
- provider_key: a key in the form of its service that grants access, AWS's key ID included; no
  public identifier, mask, published example, pattern, hash or reference to a variable.
- connection: the password alone in an address or string that opens a connection; no placeholder,
  word such as `password`, default such as `guest`, reference, mask, or string without a password.
- password: the value of a password or secret of an application, or one told in prose; no
  placeholder, reference, type, label of a form, file name, rule about passwords or checksum.
- bearer: the credentials after an `Authorization` scheme, or an access token with its name; no
  challenge, placeholder, reference, published example, type of token or identifier of a request.
- broken_token: a token of a service or a JSON web token that line breaks part, labelled from its
  first character to its last; no broken hash, image, certificate, public key or placeholder.

Values are drawn when a text is made and stand nowhere in the repository. Seeds from 9001 on.
"""

from __future__ import annotations

import random

from tests.benchmarks.fourth_blind.personal import PERSONAL
from tests.benchmarks.fourth_blind.surroundings import surround
from tests.benchmarks.fourth_blind.templates import Place, fill, load
from tests.benchmarks.fourth_blind.tokens import TOKENS
from tests.benchmarks.fourth_blind.words import WORDS
from tests.benchmarks.redaction_cases import Case

KINDS = (
    *("email", "phone", "ip", "card", "iban", "jwt", "private_key", "provider_key", "connection"),
    *("password", "bearer", "broken_token"),
)

MAKERS = {**WORDS, **PERSONAL, **TOKENS}
"""Every maker that a slot can name; no two share a name."""

__all__ = ["KINDS", "make_cases"]


def make_cases(kind: str, seed: int, count: int = 200) -> list[Case]:
    """So many positive texts of a kind, then so many hard negatives; every template is used.

    Raises ValueError for a kind that the set does not have.
    """
    if kind not in KINDS:
        raise ValueError(f"no kind of the fourth blind set: {kind}; it has {', '.join(KINDS)}")
    rng = random.Random(f"fourth {kind} {seed}")
    cases = []
    for positive in (True, False):
        templates = [template for template in load(kind) if template.positive == positive]
        order: list[int] = []
        while len(order) < count:
            order += rng.sample(range(len(templates)), len(templates))
        for index in order[:count]:
            template = templates[index]
            text, places = fill(template.text, MAKERS, rng)
            text, moved = surround(text, template.place, rng)
            values: tuple[Place, ...] = tuple((a + moved, b + moved) for a, b in places)
            cases.append(Case(kind, text, values))
    return cases
