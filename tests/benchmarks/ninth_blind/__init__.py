"""The ninth blind set of labelled texts for redaction, seeds from 24001 on.

Its writer knew neither the rules of `stages.signals` nor the texts and makers of the earlier sets.
The form of a template and what counts as a value of each kind are those of the sixth set
(sixth_blind/__init__.py). Each label is made together with its text. A value that an engineer could
call either way is in no text, as positive or as negative: the eighth set's list, and addresses of
the fediverse or XMPP, the token of jwt.io, bare UUIDs as keys.

The texts are README files, wiki pages, forum posts, chats, e-mails, tickets, invoices, CVs, legal
notices, logs, CSV, source code and configuration, in English and some twenty other languages.
"""

from __future__ import annotations

import random
from pathlib import Path

from tests.benchmarks.ninth_blind.credentials import CREDENTIAL_MAKERS
from tests.benchmarks.ninth_blind.keys import KEY_MAKERS
from tests.benchmarks.ninth_blind.names import NAME_MAKERS, name_other, name_secret
from tests.benchmarks.ninth_blind.personal import PERSONAL_MAKERS
from tests.benchmarks.ninth_blind.services import SERVICE_MAKERS
from tests.benchmarks.ninth_blind.words import FILLERS
from tests.benchmarks.redaction_cases import Case
from tests.benchmarks.sixth_blind.templates import (
    Maker,
    Scene,
    Template,
    fill,
    load,
    put_into_frame,
)

KINDS = (
    *("email", "phone", "ip", "card", "iban", "jwt", "private_key", "provider_key", "connection"),
    *("password", "bearer", "broken_token"),
)
CARRIED = frozenset({"jwt", "provider_key", "password"})
"""Kinds whose names and values fill the shared carriers too."""
TEXTS = Path(__file__).with_name("texts")

MAKERS: dict[str, Maker] = {
    **FILLERS,
    **PERSONAL_MAKERS,
    **KEY_MAKERS,
    **SERVICE_MAKERS,
    **CREDENTIAL_MAKERS,
    **NAME_MAKERS,
}

__all__ = ["CARRIED", "KINDS", "MAKERS", "TEXTS", "make_cases", "templates_of"]


def templates_of(kind: str, positive: bool) -> list[Template]:
    """Templates of a kind's positives or hard negatives, the carriers included."""
    templates = [part for part in load(kind, TEXTS) if (part.sign == "+") == positive]
    return templates + list(load("carriers", TEXTS)) if kind in CARRIED else templates


def make_cases(kind: str, seed: int, count: int = 200) -> list[Case]:
    """So many positives of a kind, then so many hard negatives, all different.

    Templates take turns in an order that is drawn for each round. Raises ValueError for an unknown
    kind.
    """
    if kind not in KINDS:
        raise ValueError(f"no kind of the ninth blind set: {kind}; it has {', '.join(KINDS)}")
    rng = random.Random(f"ninth {kind} {seed}")
    cases: dict[str, Case] = {}
    for positive in (True, False):
        templates, wanted = templates_of(kind, positive), len(cases) + count
        queue: list[Template] = []
        while len(cases) < wanted:
            queue = queue or rng.sample(templates, len(templates))
            case = _make_case(kind, queue.pop(), positive, rng)
            cases.setdefault(case.text, case)
    return list(cases.values())


def _make_case(kind: str, template: Template, positive: bool, rng: random.Random) -> Case:
    scene = Scene(rng)
    if template.sign == "*":
        (name_secret if positive else name_other)(kind, scene)
    text, places = fill(template.text, MAKERS, scene, labelled=positive)
    text, places = put_into_frame(text, places, template.register, MAKERS, scene, TEXTS)
    return Case(kind, text, tuple(places))
