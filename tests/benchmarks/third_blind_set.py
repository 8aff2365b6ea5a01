"""A third labelled set for redaction, written by an author who had not seen the rules.

The author read no rule, no test of a rule, no page about them and no text of the earlier sets.
Templates are in `third_blind/KIND.txt`; this file fills them. Seed 7001 is the final one; a figure
of another seed of the same templates is no independent figure.

Labelling policy, decided before any rule ran:

- A label is what must not reach a reader of the corpus: a value that reaches or locates a person,
  or that opens something. Business contacts count (a reader can not tell a shop from its owner).
  Names, handles (`@user`, `@user@instance`) and postal addresses are no kind of this set.
- The span is the value alone: no quotes, no scheme (`mailto:`, `tel:`), no word before it
  (`Tel.`, `Bearer`), no port, no zone. Telephones hold country code, `(0)`, brackets and
  extension. A connection string is labelled at its password; a private key from BEGIN to the end
  of its END line; a web token with its three parts; a Slack webhook as a whole URL, because the
  URL is the key.
- A token cut over lines is one span from its first to its last character, with what lies between.
- `anna (at) firma (dot) de` is an address: everyone can read it.
- Key ids that scanners of the providers report (AWS `AKIA…`, Twilio `AC…` and `SK…`) are
  labelled, as are secrets of a test mode. Keys that services publish on purpose (Stripe `pk_…`,
  site keys of reCAPTCHA, DSNs of Sentry, ids of Google Analytics), public keys, certificates and
  fingerprints are not.
- What a standard reserves for nobody is not labelled: example.com and `.example`, `.test`,
  `.invalid`, `.localhost` (RFC 2606, 6761); addresses of private, shared, loopback, link-local
  and documentation networks. No label either for placeholders (`xxxx`, `<token>`, `YOUR_KEY`,
  `changeme`, masks with stars), references to a secret (`${DB_PASSWORD}`, `os.environ[...]`,
  templates), and words that are everyone's default (`postgres:postgres`, `guest:guest`,
  `user:password`, `scott:tiger`).
- A number is labelled if the text presents it as a telephone, card or account and its check
  digits are right. Identifiers that pass Luhn by design or by chance (IMEI, SIRET, ICCID) are not
  cards.
- Not in the set, because careful people differ: published test cards of payment services, the
  token on jwt.io and other examples of a standard, public resolvers (8.8.8.8), hashes of
  passwords, encrypted values in configuration files, networks in CIDR form, fictional 555-01xx
  telephones.

A text with labels holds labels of its own kind; of the others, only e-mail, telephone and address
may occur with them. A text without labels holds none of any kind.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.benchmarks.redaction_cases import Case
from tests.benchmarks.third_blind_fillers import FILLERS, OF_PERSON
from tests.benchmarks.third_blind_people import (
    Person,
    make_card,
    make_email,
    make_iban,
    make_ipv4,
    make_ipv6,
    make_person,
    make_phone,
)
from tests.benchmarks.third_blind_secrets import (
    PROVIDERS,
    Make,
    make_app_secret,
    make_basic,
    make_bearer,
    make_cut,
    make_human_password,
    make_jwt,
    make_machine_password,
    make_password,
    make_private_key,
    make_provider,
    make_wrapped,
)

SEED = 7001
COUNT = 200
TEXTS = Path(__file__).parent / "third_blind"

PERSONAL = ("email", "phone", "ip", "card", "iban")
SECRETS = ("jwt", "private_key", "provider_key", "connection", "password", "bearer", "broken_token")
KINDS = PERSONAL + SECRETS

VALUES: dict[str, tuple[str, Make]] = {
    "phone": ("phone", make_phone),
    "ip": ("ip", make_ipv4),
    "ip6": ("ip", make_ipv6),
    "card": ("card", make_card),
    "iban": ("iban", make_iban),
    "jwt": ("jwt", make_jwt),
    "private_key": ("private_key", make_private_key),
    "key": ("provider_key", make_provider),
    "db_password": ("connection", lambda rng, form: make_password(rng, form or "url")),
    "password": ("password", make_password),
    "human": ("password", make_human_password),
    "machine": ("password", make_machine_password),
    "app_secret": ("password", make_app_secret),
    "bearer": ("bearer", make_bearer),
    "basic": ("bearer", make_basic),
    "cut": ("broken_token", make_cut),
    "wrapped": ("broken_token", make_wrapped),
    **{name: ("provider_key", make) for name, make in PROVIDERS.items()},
}
"""Slots whose value is labelled: its kind, and what draws it."""

_SLOT = re.compile(r"⟦([^⟦⟧#]+?)(?:#(\d+))?⟧")


@dataclass(frozen=True)
class Label:
    start: int
    end: int
    kind: str
    value: str


@dataclass(frozen=True)
class Example:
    """A text; its labels, of all kinds, in their order; `kind` is what it was written for."""

    kind: str
    text: str
    labels: tuple[Label, ...]
    template: int

    def spans(self, kind: str = "") -> tuple[tuple[int, int], ...]:
        """Return the places of the labels of a kind, or of its own."""
        return tuple((a.start, a.end) for a in self.labels if a.kind == (kind or self.kind))


@dataclass(frozen=True)
class Template:
    """A text with slots, and the kind of document it is from: `en`, `py`, `log`, `none`, …"""

    document: str
    text: str


@cache
def read_templates(name: str) -> dict[str, list[Template]]:
    """Read the sections of a file: `%%%% NAME` begins one, `%% DOCUMENT` a template of it."""
    sections: dict[str, list[Template]] = {}
    text = (TEXTS / f"{name}.txt").read_text(encoding="utf-8")
    for section in re.split(r"^%%%% ", text, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        blocks = re.split(r"^%% ?", body, flags=re.MULTILINE)[1:]
        pairs = (block.partition("\n") for block in blocks)
        sections[title.strip()] = [
            Template(kind.strip(), rest.rstrip("\n")) for kind, _, rest in pairs
        ]
    return sections


class Writer:
    """Fills the slots of one text and notes where labelled values stand.

    `⟦name⟧` or `⟦name:argument⟧` is a slot, `⟦a|b⟧` a choice. Slots of a person with the same
    number, `⟦name#1⟧ <⟦email#1⟧>`, are of one person; others with a number repeat their value.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.people: dict[str, Person] = {}
        self.values: dict[str, str] = {}
        self.parts: list[str] = []
        self.size = 0
        self.labels: list[Label] = []

    def write(self, template: str) -> None:
        last = 0
        for match in _SLOT.finditer(template):
            self._add(template[last : match.start()])
            self._fill(match[1], match[2] or "")
            last = match.end()
        self._add(template[last:])

    def _add(self, text: str, kind: str = "") -> None:
        if kind:
            self.labels.append(Label(self.size, self.size + len(text), kind, text))
        self.parts.append(text)
        self.size += len(text)

    def _fill(self, slot: str, number: str) -> None:
        if "|" in slot:
            self._add(self.rng.choice(slot.split("|")))
            return
        name, _, argument = slot.partition(":")
        if name in OF_PERSON:
            self._add(OF_PERSON[name](self._person(argument, number)))
        elif name == "email":
            person = self._person(argument, number)
            self._add(self._once(slot, number, lambda: make_email(self.rng, person)), "email")
        elif name == "spelled_email":  # an address for people only
            person = self._person(argument, number)
            at, dot = self.rng.choice([(" (at) ", "."), (" [at] ", " [dot] "), (" AT ", " DOT ")])
            local, _, domain = make_email(self.rng, person).partition("@")
            self._add(local + at + domain.replace(".", dot), "email")
        elif name in VALUES:
            kind, make = VALUES[name]
            self._add(self._once(slot, number, lambda: make(self.rng, argument)), kind)
        else:
            self._add(self._once(slot, number, lambda: FILLERS[name](self.rng, argument)))

    def _person(self, locale: str, number: str) -> Person:
        if not number:
            return make_person(self.rng, locale)
        if number not in self.people:
            self.people[number] = make_person(self.rng, locale)
        return self.people[number]

    def _once(self, slot: str, number: str, make: Callable[[], str]) -> str:
        if not number:
            return make()
        return self.values.setdefault(f"{slot}#{number}", make())


@cache
def read_neighbours() -> dict[str, list[str]]:
    """Read the lines that may stand around a template, by kind of document."""
    text = (TEXTS / "surroundings.txt").read_text(encoding="utf-8")
    sections = re.split(r"^%%%% ", text, flags=re.MULTILINE)[1:]
    return {title: lines for title, *lines in map(str.splitlines, sections)}


PROSE = ("en", "de", "fr", "es", "it", "nl", "pl", "pt", "ru", "tr", "ja", "zh")


def write_example(kind: str, template: Template, number: int, rng: random.Random) -> Example:
    """Fill a template; put lines of its kind of document and often a page around it."""
    pool = read_neighbours().get(template.document, [])
    lines = rng.sample(pool, rng.randint(0, min(len(pool), 5)))
    at = rng.randint(0, len(lines))
    text = "\n".join([*lines[:at], template.text, *lines[at:]])
    if rng.random() < 0.4:
        frames = read_templates("frames")["page" if template.document in PROSE else "code"]
        text = rng.choice(frames).text.replace("@@", text, 1)
    writer = Writer(rng)
    writer.write(text)
    return Example(kind, "".join(writer.parts), tuple(writer.labels), number)


def make_examples(
    kind: str, *, positive: bool, seed: int = SEED, count: int = COUNT
) -> list[Example]:
    """Return `count` different texts of a kind: every template in turn, in a drawn order."""
    side = "positive" if positive else "negative"
    rng = random.Random(f"{seed} {kind} {side}")
    templates = read_templates(kind)[side]
    examples: dict[str, Example] = {}
    while len(examples) < count:
        for at in rng.sample(range(len(templates)), len(templates)):
            example = write_example(kind, templates[at], at, rng)
            examples.setdefault(example.text, example)
    return list(examples.values())[:count]


def make_cases(kind: str, seed: int = SEED, count: int = COUNT) -> list[Case]:
    """Return the texts of a kind in the form of the other sets: with labels, then without."""
    return [
        Case(kind, example.text, example.spans())
        for positive in (True, False)
        for example in make_examples(kind, positive=positive, seed=seed, count=count)
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the counts and the digest of the set, or the texts of a kind with their labels."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--show", choices=KINDS, help="print the texts of this kind")
    parser.add_argument("--count", type=int, default=COUNT)
    options = parser.parse_args(arguments)
    digest = hashlib.sha256()
    for kind in [options.show] if options.show else KINDS:
        sides = [
            make_examples(kind, positive=positive, seed=options.seed, count=options.count)
            for positive in (True, False)
        ]
        digest.update(repr(sides).encode())
        if options.show:
            for example in [*sides[0], *sides[1]]:
                print(f"{'=' * 20} {example.kind} {example.template}\n{example.text}")
                for label in example.labels:
                    print(f"  -> {label.kind} {label.start}:{label.end} {label.value!r}")
        templates = {side: len(texts) for side, texts in read_templates(kind).items()}
        labels = sum(len(example.spans()) for example in sides[0])
        lines = sum(example.text.count("\n") + 1 for side in sides for example in side)
        print(
            f"{kind:<13}{len(sides[0]):>5} with labels ({labels} labels, {templates['positive']} "
            f"templates), {len(sides[1])} without ({templates['negative']} templates), "
            f"{lines / sum(map(len, sides)):.1f} lines a text"
        )
    print(f"seed {options.seed}: sha256 of texts and labels {digest.hexdigest()[:16]}")


if __name__ == "__main__":
    main()
