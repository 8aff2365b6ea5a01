"""`ingot presets`: what published rules ask, and how they disagree on a corpus."""

from __future__ import annotations

import json

from stages.filter.presets import PRESETS


def test_presets_are_listed_with_rules_bounds_and_sources(ingot):
    told = ingot("presets").stdout
    for name, rules in PRESETS.items():
        assert f"{name}: {len(rules)} rule" in told
        for rule in rules:
            assert f"  {rule.name} " in told
    assert "arXiv 2112.11446" in told
    listed = json.loads(ingot("presets", "--only", "fineweb@code", "--json").stdout)["presets"]
    assert [preset["preset"] for preset in listed] == ["fineweb@code"]
    short = next(r for r in listed[0]["rules"] if r["rule"] == "fineweb_short_lines")
    assert (short["signal"], short["minimum"], short["maximum"]) == ("short_line_share", None, 0.67)
    assert "no rule preset 'fineweb'" in ingot("presets", "--only", "fineweb").stderr


def test_presets_of_a_corpus_say_how_they_disagree(ingot, corpus):
    """Of 8 documents, Gopher drops a, b, g (few words), FineWeb all but e, f (ended lines)."""
    both = ("--only", "gopher_quality@datatrove", "--only", "fineweb@code")
    told = json.loads(ingot("presets", "demo/filter", *both, "--json").stdout)
    assert told["documents"] == 8
    assert {p["preset"]: p["kept"] for p in told["presets"]} == {
        "gopher_quality@datatrove": 5, "fineweb@code": 2,
    }  # fmt: skip
    assert told["only"]["fineweb@code"]["gopher_quality@datatrove"] == 3
    assert told["only"]["gopher_quality@datatrove"]["fineweb@code"] == 0
    shown = ingot("presets", "demo/filter").stdout
    assert "not applied, since signals are missing:" in shown
    assert "  garbled: replacement_character_share" in shown


def test_a_preset_says_that_its_authors_split_words_otherwise(ingot, corpus):
    assert "note outside English, words are not split as" in ingot("presets").stdout
    asked = ("--only", "fineweb-2")
    assert "words are not split as" in ingot("presets", "demo/filter", *asked).stdout
    (listed,) = json.loads(ingot("presets", *asked, "--json").stdout)["presets"]
    assert "jieba" in listed["note"]
