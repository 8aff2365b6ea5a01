from __future__ import annotations

from typing import Any, get_args

import pytest

from artifacts_schema.errors import UsageError
from stages.dedup.config import DedupConfig, DedupExecution, PassagesConfig
from stages.dedup.presets import PRESETS, PresetName, Settings, candidate_probability
from stages.dedup.shingling import shingler

PUBLISHED = {
    # unit, n, normalise, hash, bands, rows, seed: datatrove's examples/fineweb.py; RedPajama-V2's
    # minhash.py at similarity 0.8; Curator's FuzzyDeduplicationWorkflow; Marin's fuzzy_minhash.py
    # (286 hashes in 26 bands); RefinedWeb's appendix G.3.1.
    "ingot": ("word", 5, "fold", "ingot", 14, 8, 1),
    "thorough": ("word", 5, "fold", "ingot", 20, 6, 1),
    "fineweb": ("word", 5, "datatrove", "sha1", 14, 8, 1),
    "redpajama-v2": ("word", 13, "redpajama", "ingot", 9, 13, 42),
    "curator": ("character", 24, "none", "ingot", 20, 13, 42),
    "marin": ("character", 5, "marin", "ingot", 26, 11, 42),
    "refinedweb": ("word", 5, "fold", "ingot", 450, 20, 1),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_presets_are_the_published_settings(name: Any) -> None:
    assert DedupConfig(preset=name).settings() == Settings(*PUBLISHED[name], most=8192)


def test_every_preset_has_a_name_a_source_and_shingles() -> None:
    assert set(PRESETS) == set(get_args(PresetName)) == set(PUBLISHED)
    for name, preset in PRESETS.items():
        assert preset.source, name
        assert preset.fidelity.endswith("."), name
        assert preset.bands * preset.rows <= preset.hashes, name
        assert callable(shingler(DedupConfig(preset=name).settings()))


def test_thorough_finds_what_has_one_partner_at_the_usual_threshold() -> None:
    """1 - (1 - 0.8^6)^20, and 1 - (1 - 0.8^8)^14."""
    chances = [
        candidate_probability(0.8, setting.bands, setting.rows)
        for setting in (PRESETS["thorough"], PRESETS["ingot"])
    ]
    assert chances == [pytest.approx(0.99771, abs=1e-5), pytest.approx(0.92355, abs=1e-5)]


def test_the_default_is_fineweb_s_shape_and_says_nothing_in_a_key() -> None:
    assert DedupConfig().settings() == DedupConfig(preset="ingot").settings()
    assert DedupConfig(preset="ingot", passages=PassagesConfig()).identity() == {}
    said = DedupConfig(preset="marin", rows=13, bands=20, passages=PassagesConfig(lines=True))
    assert said.identity() == {
        "preset": "marin",
        "bands": 20,
        "rows": 13,
        "passages": {"lines": True},
    }


@pytest.mark.parametrize(
    ("threshold", "expected"), [(0.7, (14, 9)), (0.8, (9, 13)), (0.9, (5, 25)), (1.0, (1, 128))]
)
def test_a_threshold_gives_redpajama_s_other_bands(
    threshold: float, expected: tuple[int, int]
) -> None:
    settings = DedupConfig(preset="redpajama-v2", threshold=threshold).settings()
    assert (settings.bands, settings.rows) == expected
    assert settings.ngram == 13


def test_fields_beside_a_preset_depart_from_it() -> None:
    config = DedupConfig(
        preset="curator", ngram=13, seed=0, threshold=0.7, hashes=256, bytes_per_document=800
    )
    assert config.settings() == Settings("character", 13, "none", "ingot", 25, 10, 0, most=100)
    bands = DedupConfig(preset="fineweb", hash="xxh64", bands=20, rows=5, unit="word").settings()
    assert bands == Settings("word", 5, "datatrove", "xxh64", 20, 5, 1, most=8192)
    own = DedupConfig(preset="fineweb", hash="ingot", normalise="fold").settings()
    assert own == DedupConfig().settings()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"bands": 9}, r"`bands` without `rows`: give both"),
        ({"rows": 9}, r"`rows` without `bands`: give both"),
        ({"threshold": 0.8, "bands": 9, "rows": 13}, "give it or them, not both"),
        ({"hashes": 128}, "give it too"),
        ({"bands": 400, "rows": 400}, "at most"),
        ({"hash": "sha1"}, "not with fold and word"),
        ({"preset": "fineweb", "unit": "character"}, "not with datatrove and character"),
        ({"normalise": "datatrove"}, "goes with `hash: sha1` or `xxh64`"),
        ({"preset": "fineweb", "hash": "ingot"}, "goes with `hash: sha1` or `xxh64`"),
        ({"preset": "fineweb", "seed": 2**32}, r"less than 2\^32"),
        ({"bytes_per_document": 511}, "bytes_per_document: input should be greater"),
        ({"passages": {"substrings": 49}}, "passages.substrings: input should be greater"),
        ({"treshold": 0.8}, "did you mean 'threshold'"),
        ({"preset": "finweb"}, "'fineweb'"),
        ({"floor": 0}, "floor: input should be greater than 0"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_by_name(
    values: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        DedupConfig.parse(values, where="dedup")


def test_the_largest_seeds_are_taken() -> None:
    from stages.dedup.minhash import MinHash

    assert MinHash(DedupConfig(seed=2**64 - 1).settings()).bands == 14
    assert MinHash(DedupConfig(preset="fineweb", seed=2**32 - 1).settings()).rows == 8


def test_memory_is_a_size() -> None:
    assert DedupExecution().memory == "2GiB"
    with pytest.raises(UsageError, match=r"memory: '2 potatoes' is no size: .* as 2GiB"):
        DedupExecution.parse({"memory": "2 potatoes"}, where="dedup")
