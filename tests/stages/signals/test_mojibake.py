"""Repairs of mojibake: what ftfy makes of a stretch, and nothing in clean text of any language."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import ftfy
import pytest
from ftfy.badness import is_bad
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stages.filter.edits import apply_edits
from stages.signals.mojibake import LONGEST_STRETCH, find_mojibake


def repaired(text: str) -> str:
    return apply_edits(text, find_mojibake([text])[0])


SENTENCES = {
    "fr": "Voilà l’été où tout était prêt à être noté « ici »",
    "de": "Die Größe der Tür überraschte „alle“ Gäste – schön",
    "es": "El niño comió mañana, ¿qué pasó?",
    "pt": "Não há solução à vista; ação já",
    "cs": "Příliš žluťoučký kůň úpěl ďábelské ódy",
    "pl": "Zażółć gęślą jaźń",
    "tr": "Işık ağaçların üstünde, şöyle böyle",
    "ru": "Съешь ещё этих мягких французских булок",
    "el": "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία",
    "ja": "日本語の文章です",
    "ar": "هذا نص باللغة العربية",
    "hi": "यह हिन्दी में एक वाक्य है",
    "emoji": "so happy 😀 — really…",
}


@pytest.mark.parametrize("language", SENTENCES)
@pytest.mark.parametrize("wrong", ["latin-1", "sloppy-windows-1252"])
def test_utf8_read_in_a_western_set_is_read_again(language: str, wrong: str) -> None:
    sentence = SENTENCES[language]
    garbled = sentence.encode().decode(wrong)
    assert garbled != sentence
    assert repaired(f"clean line\n{garbled}\nclean, too") == f"clean line\n{sentence}\nclean, too"


@pytest.mark.parametrize(
    ("language", "wrong"),
    [
        ("ru", "sloppy-windows-1251"),
        ("el", "sloppy-windows-1253"),
        ("pl", "sloppy-windows-1250"),
        ("tr", "sloppy-windows-1254"),
        ("fr", "macroman"),
        ("de", "cp437"),
    ],
)
def test_other_sets_are_undone_as_far_as_ftfy_does(language: str, wrong: str) -> None:
    garbled = SENTENCES[language].encode().decode(wrong)
    assert repaired(garbled) == ftfy.fix_encoding(garbled) == SENTENCES[language]


def test_mojibake_upon_mojibake_and_control_codes() -> None:
    twice = "café".encode().decode("latin-1").encode().decode("latin-1")
    assert repaired(f"le {twice} noir") == "le café noir"
    assert repaired("it\x92s") == "it’s"
    assert repaired("When I firstÂ saw it") == "When I first\xa0saw it"


def test_spans_cover_what_differs_alone() -> None:
    text = "naÃ¯ve and cafÃ© are right, so is Größe\nélan vital"
    (spans,) = find_mojibake([text])
    assert [(text[s.start : s.end], s.replacement) for s in spans] == [("Ã¯", "ï"), ("Ã©", "é")]
    assert all(span.label == "mojibake" for span in spans)


GARBLE = st.text(alphabet="Ãâ€™©Â éà»ñŒ\x85\x92 a\nъёВ😀–√†\ud800", max_size=30)


@given(st.lists(st.text(max_size=20) | GARBLE, max_size=4))
@example(["Ã©", "", "\n", "Ã©\nÃ©", "a"])
@example(["😀\nÃ©\n", "x\nÃ©"])
@settings(deadline=None, max_examples=300)
def test_applied_the_view_is_ftfy_on_every_line_it_touches(texts: list[str]) -> None:
    for text, spans in zip(texts, find_mojibake(texts), strict=True):
        assert all(0 <= s.start < s.end <= len(text) for s in spans)
        assert all(a.end <= b.start for a, b in pairwise(spans))
        assert spans == find_mojibake([text])[0]
        after = apply_edits(text, spans)
        touched = {text.count("\n", 0, span.start) for span in spans}
        lines = text.split("\n")
        wanted = [
            ftfy.fix_encoding(line) if number in touched else line
            for number, line in enumerate(lines)
        ]
        assert after == "\n".join(wanted)


def test_the_first_look_misses_no_line_of_utf8_read_wrongly() -> None:
    """Of sentences in 13 languages and 8 sets, whatever ftfy repairs is repaired."""
    sets = ["latin-1", *(f"sloppy-windows-{n}" for n in (1250, 1251, 1252, 1253, 1254, 1257))]
    seen = 0
    for wrong in [*sets, "macroman", "cp437", "iso-8859-2"]:
        for sentence in SENTENCES.values():
            garbled = sentence.encode().decode(wrong, "replace")
            if ftfy.fix_encoding(garbled) == sentence and is_bad(garbled):
                assert repaired(garbled) == sentence, (wrong, garbled)
                seen += 1
    assert seen > 60


def test_a_long_line_is_repaired_in_pieces() -> None:
    clean = "der schöne Morgen über dem Fluss " * 1000
    garbled = clean.encode().decode("latin-1")
    assert len(garbled) > 5 * LONGEST_STRETCH
    assert repaired(garbled) == clean
    assert repaired("x" * 3 * LONGEST_STRETCH + " cafÃ©").endswith("x café")


def read(folder: Path, name: str) -> list[dict[str, str]]:
    import zstandard

    with zstandard.open(folder / "text" / f"{name}.jsonl.zst", "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize(
    "name", ["de", "fr", "es", "ru", "zh", "ja", "hi", "ar", "langid-tatoeba", "wikitext2-valid"]
)
def test_clean_text_has_no_span(shared_data: Path, name: str) -> None:
    """Whole files; the sentences of `langid-tatoeba` are in 113 languages."""
    texts = [row["text"] for row in read(shared_data, name)]
    assert [span for spans in find_mojibake(texts) for span in spans] == []


def test_true_mojibake_in_published_sets_is_found(shared_data: Path) -> None:
    """XQuAD keeps some in Turkish and Vietnamese; three versions of the UDHR have C1 quotes."""
    rows = read(shared_data, "parallel-xquad")
    found = {
        (row["lang"], row["text"][span.start : span.end], span.replacement)
        for row, spans in zip(rows, find_mojibake([row["text"] for row in rows]), strict=True)
        for span in spans
    }
    assert {lang for lang, _, _ in found} == {"tr", "vi"}
    assert ("tr", "Â°", "°") in found
    assert ("vi", "â€“", "–") in found
    rows = read(shared_data, "udhr")
    with_spans = zip(rows, find_mojibake([row["text"] for row in rows]), strict=True)
    assert {row["id"] for row, spans in with_spans if spans} == {
        "udhr-kea",
        "udhr-kng_AO",
        "udhr-sco",
    }
