"""How texts of blind sets are drawn and labelled: counts, places, templates. No rule runs here."""

from __future__ import annotations

import ipaddress
import re
from functools import cache
from pathlib import Path

import pytest

from tests.benchmarks import redaction
from tests.benchmarks.blind_set import KINDS, BlindSet, Scene, load, slots_of, values_of
from tests.benchmarks.redaction import BLIND_SETS, blind_set, cases_of, kinds_of
from tests.benchmarks.redaction_cases import Case
from tests.benchmarks.splits import FIRST_BLIND_SEED

SETS = {one.first_seed: one for one in BLIND_SETS}

every_set = pytest.mark.parametrize("seed", SETS, ids=[one.ordinal for one in SETS.values()])
every_broad_set = pytest.mark.parametrize(
    "seed", [one.first_seed for one in BLIND_SETS if one.kinds == KINDS]
)
every_kind = pytest.mark.parametrize(
    ("seed", "kind"),
    [
        pytest.param(one.first_seed, kind, id=f"{one.ordinal}-{kind}")
        for one in BLIND_SETS
        for kind in one.kinds
    ],
)


@cache
def cases(seed: int, kind: str) -> tuple[Case, ...]:
    """The texts of a kind, positives first."""
    return tuple(SETS[seed].make_cases(kind, seed))


def all_values(seed: int, kind: str) -> list[str]:
    return [value for case in cases(seed, kind) for value in values_of(case)]


def test_seeds_of_sets_ascend() -> None:
    firsts = [one.first_seed for one in BLIND_SETS]
    assert firsts == sorted(set(firsts))


@every_set
def test_the_runner_draws_from_a_set_by_its_seed(seed: int) -> None:
    assert set(kinds_of(seed)) <= set(KINDS)
    assert blind_set(seed) is blind_set(seed + 1) is SETS[seed]


def test_a_seed_of_an_earlier_set_is_refused_with_the_commit_that_has_it() -> None:
    with pytest.raises(SystemExit, match="check out 943c76bd, or take 51001, "):
        cases_of("phone", FIRST_BLIND_SEED)
    assert cases_of("phone", FIRST_BLIND_SEED - 1)


def test_a_form_is_drawn_by_its_weight_or_as_often_as_every_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for sign, slot in (("+", "<<!n>>"), ("-", "<<n>>")):
        usual, rare = (f"=== {sign} any {w}\n{name} {slot}\n" for name, w in (("a", 1), ("b", 0.2)))
        with (tmp_path / "phone.txt").open("a") as file:
            file.write(usual + rare)

    def number(scene: Scene, argument: str) -> str:
        return str(scene.rng.randrange(10**9))

    small = BlindSet("small", 9000, tmp_path, {"n": number})
    monkeypatch.setattr(redaction, "BLIND_SETS", (small,))
    for each_form, least, most in ((False, 20, 50), (True, 100, 100)):
        drawn = redaction.cases_of("phone", 9000, each_form)[:200]
        assert least <= sum(case.text.startswith("b") for case in drawn) <= most


@every_kind
def test_a_kind_has_200_positives_and_200_hard_negatives_of_40_templates_each(
    seed: int, kind: str
) -> None:
    drawn = cases(seed, kind)
    assert len({case.text for case in drawn}) == 400
    assert [bool(case.values) for case in drawn] == [True] * 200 + [False] * 200
    for positive in (True, False):
        assert len({one.text for one in SETS[seed].templates_of(kind, positive)}) >= 40


@every_kind
def test_spans_lie_inside_the_text_apart_and_without_blanks_at_their_ends(
    seed: int, kind: str
) -> None:
    for case in cases(seed, kind):
        ends = [0, *(end for _, end in case.values)]
        assert all(end <= start for end, (start, _) in zip(ends, case.values, strict=False))
        assert ends[-1] <= len(case.text)
        assert all(value and value == value.strip() for value in values_of(case))
        assert not re.search(r"[\x02\x03]|<<!?\w+(:[^<>]*)?>>", case.text), case.text


@every_kind
def test_a_seed_gives_equal_bytes_and_another_seed_gives_others(seed: int, kind: str) -> None:
    one: BlindSet = SETS[seed]
    assert tuple(one.make_cases(kind, seed)) == cases(seed, kind)
    assert tuple(one.make_cases(kind, seed + 1)) != cases(seed, kind)


@every_kind
def test_templates_name_known_makers_and_label_positives_alone(seed: int, kind: str) -> None:
    for template in load(kind, SETS[seed].texts):
        slots = slots_of(template.text)
        assert {maker for maker, _ in slots} <= set(SETS[seed].makers), template.text
        assert any(marked for _, marked in slots) == (template.sign != "-"), template.text


@every_set
def test_an_unknown_kind_is_refused(seed: int) -> None:
    with pytest.raises(ValueError, match="no kind of the"):
        SETS[seed].make_cases("passport", seed)


@every_kind
def test_no_negative_holds_a_value_of_a_positive(seed: int, kind: str) -> None:
    # The first part of a web token may be its header, which published ones have as well.
    values = {one for one in all_values(seed, kind) if not re.fullmatch(r"eyJhbGciOi\w+\.?", one)}
    negatives = [case for case in cases(seed, kind) if not case.values]
    assert not [case for case in negatives for value in values if value in case.text]


@every_broad_set
def test_emails_are_outside_the_reserved_domains(seed: int) -> None:
    reserved = re.compile(r"(^|\.)(example\.\w+|example|test|invalid|localhost)$")
    for value in all_values(seed, "email"):
        local, _, host = value.rpartition("@")
        assert local or re.search(r"[^\w.+-]", value), value  # Hidden: `ann [at] firm [dot] org`.
        assert not reserved.search(host.lower())


@every_broad_set
def test_ip_positives_are_public_addresses_of_one_machine(seed: int) -> None:
    addresses = [ipaddress.ip_address(value) for value in all_values(seed, "ip")]
    assert {address.version for address in addresses} == {4, 6}
    assert all(address.is_global and not address.is_multicast for address in addresses)
