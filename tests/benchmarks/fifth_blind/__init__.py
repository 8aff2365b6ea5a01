"""The fifth blind set: labelled texts of redaction by a writer who knew no rule and no other set.

Seeds from 12001 on draw from it (splits.py). Texts look like what a web crawl and public code
hold: forums, mailing lists, configuration, logs, dumps, chats, code in some twenty languages,
contact pages in more than twelve human languages. Labels are made with the texts, before any rule
runs.

What counts as a value, and what does not. Where reasonable engineers differ, the set has no text.

- email: an address at which somebody or an organisation reads mail; not reserved domains (RFC
  2606), Message-IDs, logins of ssh and prompts, handles, packages with a version, user parts of
  URLs.
- phone: a number of a person or an organisation that can be dialled, without its extension; not
  the numbers kept for fiction (555-01xx), emergency numbers, masks, and numbers of orders, books,
  places.
- ip: a public unicast address; not private, loopback, link-local, multicast and documentation
  ranges (RFC 1918, 5737, 3849), netmasks, versions, sections, OIDs, MAC addresses, times.
- card: a payment card number with a network's prefix and a valid check digit (ISO/IEC 7812); not
  the test numbers that processors publish, masked numbers, wrong check digits, IMEIs, ISBNs, ids.
- iban: an account number with a country's structure and valid check digits (ISO 13616); not the
  examples of the registry, wrong check digits, masks, tax numbers, creditor ids and references,
  LEIs.
- jwt: a signed JSON web token of three parts; not a shortened one, a part by itself, the examples
  of RFC 7519 and jwt.io, other base 64 that begins with `eyJ`.
- private_key: the body of a private key, of PEM mostly (the label leaves out the header and
  footer lines, a span may have them); not public keys, certificates, signatures, parameters,
  empty frames.
- provider_key: a key, a token or the path of a webhook that a service issued and that is kept
  secret; not publishable keys and site keys, ids, digests, placeholders, references, masked keys,
  prefixes.
- connection: the password in a connection string or in the user part of a URL; not strings
  without a password, or with a placeholder, variable or mask in its place.
- password: a password of a person or a program, or a secret that an application signs or encrypts
  with; not a placeholder, reference, variable, encrypted value, text of a form, or a setting
  about passwords. Hashes of passwords and default passwords (`postgres:postgres`) are in no text.
- bearer: the credentials after the scheme of an Authorization header, or an opaque access token
  named as one; not placeholders, variables, masks, challenges, the examples of RFC 6750 and 7617,
  trace ids.
- broken_token: a token of one of the kinds above that is broken over lines, from its first sign
  to its last with the breaks; not digests, images, signatures, public keys, sequences, or prose
  over lines.
"""

from __future__ import annotations

import random

from tests.benchmarks.fifth_blind.credentials import CREDENTIAL_MAKERS
from tests.benchmarks.fifth_blind.fillers import FILLERS, new_scene
from tests.benchmarks.fifth_blind.names import name_other, name_secret
from tests.benchmarks.fifth_blind.personal import PERSONAL_MAKERS
from tests.benchmarks.fifth_blind.templates import Maker, Template, fill, load, slots_of, surround
from tests.benchmarks.redaction_cases import Case

KINDS = (
    *("email", "phone", "ip", "card", "iban", "jwt", "private_key", "provider_key", "connection"),
    *("password", "bearer", "broken_token"),
)
CARRIED = frozenset({"jwt", "provider_key", "password"})
"""Kinds that fill the shared carriers too."""

MAKERS: dict[str, Maker] = {**FILLERS, **PERSONAL_MAKERS, **CREDENTIAL_MAKERS}

__all__ = ["CARRIED", "KINDS", "MAKERS", "make_cases", "templates_of"]


def templates_of(kind: str, positive: bool) -> list[Template]:
    """Templates of a kind's positives or hard negatives, the carriers included."""
    templates = [part for part in load(kind) if (part.sign == "+") == positive]
    return templates + list(load("carriers")) if kind in CARRIED else templates


def make_cases(kind: str, seed: int, count: int = 200) -> list[Case]:
    """So many positives of a kind, then so many hard negatives, all different.

    Each ordinary template is used before any is used again. Raises ValueError for an unknown kind.
    """
    if kind not in KINDS:
        raise ValueError(f"no kind of the fifth blind set: {kind}; it has {', '.join(KINDS)}")
    rng = random.Random(f"fifth {kind} {seed}")
    cases: dict[str, Case] = {}
    for positive in (True, False):
        templates = templates_of(kind, positive)
        order = rng.sample(templates, len(templates))
        wanted = len(cases) + count
        while len(cases) < wanted:
            if order:
                template = order.pop()
            else:
                template = rng.choices(templates, [part.weight for part in templates])[0]
            case = _make_case(kind, template, positive, rng)
            cases.setdefault(case.text, case)
    return list(cases.values())


def _make_case(kind: str, template: Template, positive: bool, rng: random.Random) -> Case:
    scene = new_scene(rng)
    if "value" in slots_of(template.text):
        (name_secret if positive else name_other)(kind, scene)
    text, places = fill(template.text, MAKERS, scene, labelled=positive)
    text, places = surround(text, places, template.register, MAKERS, scene)
    return Case(kind, text, tuple(places))
