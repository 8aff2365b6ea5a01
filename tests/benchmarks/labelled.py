"""Personal data and languages told against labels, beside public tools.

    python -m tests.benchmarks.labelled [--data ../shared/data] [--peers PYTHON]

`--peers` is the Python of an environment with presidio-analyzer, py3langid and
lingua-language-detector; without it the figures stand alone. Intervals are Wilson's at 95 %; that
of a macro average is the middle 95 % of 200 seeded draws of as many texts with replacement.

A value counts as found if a span of its type overlaps it, and a span as right if it overlaps a
value of its type. Our rules for phone numbers were written with these texts in sight, so their
figures say what the rules reach here, not what they would elsewhere. A language counts if both the
labels and the identifier have it, and a text then counts if the identifier names its language.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.scoring.uncertainty import wilson
from stages.signals.models import identify_languages
from stages.signals.personal_data import find_personal_data

DATA = Path("../shared/data")
PERSONAL, TATOEBA = "pii/presidio-synthetic", "text/langid-tatoeba"
DECLARATION, PARAGRAPH = "text/udhr", 200
LONG = {"en-classics": "en", **{name: name for name in ("ar", "de", "es", "fr", "hi", "ja", "zh")}}
"""Files of long texts, and their language."""

TYPES = {
    "EMAIL_ADDRESS": "email",
    "PHONE_NUMBER": "phone",
    "IBAN_CODE": "iban",
    "CREDIT_CARD": "card",
    "IP_ADDRESS": "ip_address",
}
"""Types of Presidio's data, and our labels."""

_CODES = """
    afr:af amh:am ara:ar arz:arz ast:ast aze:az bel:be ben:bn bos:bs bre:br bul:bg cat:ca cbk:cbk
    ceb:ceb ces:cs cmn:zh cor:kw cym:cy dan:da deu:de dsb:dsb ell:el eng:en epo:eo est:et eus:eu
    fin:fi fra:fr fry:fy gla:gd gle:ga glg:gl gsw:als heb:he hin:hi hrv:hr hsb:hsb hun:hu hye:hy
    ido:io ile:ie ina:ia ind:id isl:is ita:it jav:jv jpn:ja kat:ka kaz:kk khm:km kor:ko kur:ku
    lat:la lit:lt lvs:lv mal:ml mar:mr mhr:mhr mkd:mk mon:mn nds:nds nld:nl nno:nn nob:no oci:oc
    pam:pam pes:fa pms:pms pol:pl por:pt ron:ro rus:ru slk:sk slv:sl spa:es sqi:sq srp:sr swe:sv
    swh:sw tam:ta tat:tt tel:te tgl:tl tha:th tuk:tk tur:tr uig:ug ukr:uk urd:ur uzb:uz vie:vi
    war:war wuu:wuu yid:yi yue:yue zsm:ms
"""
CODES = dict(pair.split(":") for pair in _CODES.split())
"""ISO 639-3 of each label of lid.176, which are codes of Wikipedias (`als`: Alemannic)."""

SAME = {"nb": "no", "uzs": "uz"}
"""Codes of peers for what lid.176 calls otherwise."""

Spans = list[tuple[int, int, str]]


class Agreement(NamedTuple):
    """Values there are, spans found, values found, spans right, spans with a value's borders."""

    values: int
    spans: int
    found: int
    right: int
    exact: int

    @property
    def precision(self) -> float:
        return self.right / self.spans if self.spans else 1.0

    @property
    def recall(self) -> float:
        return self.found / self.values if self.values else 1.0

    @property
    def f1(self) -> float:
        return 2 * self.precision * self.recall / ((self.precision + self.recall) or 1.0)


class Named(NamedTuple):
    """Texts whose language was named right, and the macro average of F1 with its interval."""

    texts: int
    right: int
    languages: int
    macro_f1: float
    low: float
    high: float

    @property
    def accuracy(self) -> float:
        return self.right / self.texts


def rows_of(data: Path, name: str) -> list[dict[str, Any]]:
    """The rows of one of the shared files."""
    import zstandard

    with zstandard.open(data / f"{name}.jsonl.zst", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def our_spans(texts: Sequence[str]) -> list[Spans]:
    """What the signals stage finds, by the names of Presidio's types."""
    names = {label: name for name, label in TYPES.items()}
    return [
        [(span.start, span.end, names[span.label]) for span in find_personal_data(text)]
        for text in texts
    ]


def agreement(rows: Sequence[Mapping[str, Any]], answers: Sequence[Spans], kind: str) -> Agreement:
    """How the answers agree with the labels of one type."""
    counts = np.zeros(5, dtype=np.int64)
    for row, answer in zip(rows, answers, strict=True):
        values = {(s["start"], s["end"]) for s in row["spans"] if s["type"] == kind}
        spans = {(start, end) for start, end, name in answer if name == kind}
        found = sum(_overlaps(value, spans) for value in values)
        right = sum(_overlaps(span, values) for span in spans)
        counts += (len(values), len(spans), found, right, len(values & spans))
    return Agreement(*map(int, counts))


def _overlaps(one: tuple[int, int], others: Collection[tuple[int, int]]) -> bool:
    return any(one[0] < end and start < one[1] for start, end in others)


def named(truth: Sequence[str], answers: Sequence[str | None], known: Collection[str]) -> Named:
    """How answers agree with the true languages, on texts whose language is `known`."""
    pairs = [(t, a) for t, a in zip(truth, answers, strict=True) if t in known]
    names = sorted({true for true, _ in pairs})
    place = {name: index for index, name in enumerate(names)}
    true = np.array([place[t] for t, _ in pairs])
    answer = np.array([place.get(a or "", len(names)) for _, a in pairs])
    draws = np.random.default_rng(0).integers(0, len(pairs), (200, len(pairs)))
    drawn = sorted(_macro_f1(true[draw], answer[draw], len(names)) for draw in draws)
    right = int((true == answer).sum())
    macro = _macro_f1(true, answer, len(names))
    return Named(len(pairs), right, len(names), macro, drawn[4], drawn[-5])


def _macro_f1(true: NDArray[np.int64], answer: NDArray[np.int64], languages: int) -> float:
    right = np.bincount(true[true == answer], minlength=languages)
    told = np.bincount(answer, minlength=languages + 1)[:languages]
    there = np.bincount(true, minlength=languages)
    return float((2 * right / np.maximum(told + there, 1)).mean())


def our_languages(texts: Sequence[str], data: Path, characters: int) -> list[str | None]:
    """What the signals stage says by lid.176."""
    return identify_languages(texts, data / "models" / "lid.176.ftz", characters)[0]


def asked(python: str, peer: str, texts: Sequence[str]) -> list[Any]:
    """The answers of a public tool in an environment of its own."""
    program = Path(__file__).with_name("labelled_peers.py")
    done = subprocess.run(
        [python, str(program), peer],
        input="".join(json.dumps(text) + "\n" for text in texts),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # Presidio tries to load a list of suffixes, and goes on.
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def report_personal(data: Path, peers: str | None) -> None:
    """Print precision, recall and F1 by type."""
    rows = rows_of(data, PERSONAL)
    texts = [row["text"] for row in rows]
    answers = {"ours": our_spans(texts)}
    if peers:
        given = asked(peers, "presidio", texts)
        answers["Presidio"] = [[tuple(span) for span in spans] for spans in given]
    print(f"personal data in {len(rows)} texts of {PERSONAL}")
    for kind in TYPES:
        for name, found in answers.items():
            got = agreement(rows, found, kind)
            print(
                f"  {kind:14s} {name:9s} {got.values:3d} values"
                f"  precision {_interval(got.right, got.spans)}"
                f"  recall {_interval(got.found, got.values)}"
                f"  F1 {got.f1:.3f}  borders exact {got.exact}"
            )


def sentences(data: Path) -> tuple[list[str], list[str]]:
    """Sentences of Tatoeba and the label of lid.176 for the language of each."""
    rows = rows_of(data, TATOEBA)
    return [row["text"] for row in rows], [CODES.get(row["lang"], row["lang"]) for row in rows]


def paragraphs(data: Path) -> tuple[list[str], list[str]]:
    """The same for paragraphs of the Declaration of Human Rights: documents rather than words."""
    pairs = [
        (line, CODES.get(row["lang"], row["lang"]))
        for row in rows_of(data, DECLARATION)
        for line in row["text"].splitlines()
        if len(line) >= PARAGRAPH
    ]
    return [text for text, _ in pairs], [language for _, language in pairs]


def report_languages(data: Path, peers: str | None) -> None:
    """Print accuracy and macro F1, on what ours and a peer know; then the cut of long texts."""
    for name, (texts, truth) in {
        f"sentences of {TATOEBA}": sentences(data),
        f"paragraphs of {DECLARATION}": paragraphs(data),
    }.items():
        ours = our_languages(texts, data, 1000)
        print(f"languages of {len(texts)} {name}")
        _print_named("lid.176", "all it knows", named(truth, ours, set(CODES.values())))
        for peer in ("py3langid", "lingua") if peers else ():
            given = asked(str(peers), peer, texts)
            theirs = [SAME.get(code, code) for code in given]
            both = set(CODES.values()) & set(theirs)
            _print_named("lid.176", f"{peer}'s too", named(truth, ours, both))
            _print_named(peer, "the same", named(truth, theirs, both))
    print("long texts, right by 1,000 characters and by all")
    for file, language in LONG.items():
        long = [row["text"] for row in rows_of(data, f"text/{file}")]
        cut, uncut = (our_languages(long, data, size) for size in (1000, 10**9))
        print(
            f"  {file:12s} {len(long):4d} texts  {cut.count(language)}  {uncut.count(language)}"
            f"  the same for {sum(a == b for a, b in zip(cut, uncut, strict=True))}"
        )


def _print_named(name: str, which: str, got: Named) -> None:
    print(
        f"  {name:10s} {which:15s} {got.languages:3d} languages {got.texts:5d} texts"
        f"  accuracy {_interval(got.right, got.texts)}"
        f"  macro F1 {got.macro_f1:.3f} [{got.low:.3f}, {got.high:.3f}]"
    )


def _interval(right: int, of: int) -> str:
    low, high = wilson(right, of) if of else (0.0, 1.0)
    return f"{right / of if of else 1:.3f} [{low:.3f}, {high:.3f}]"


def main() -> None:
    """Print both reports."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--peers", help="Python of an environment that has the public tools")
    arguments = parser.parse_args()
    report_personal(arguments.data, arguments.peers)
    report_languages(arguments.data, arguments.peers)


if __name__ == "__main__":
    main()
