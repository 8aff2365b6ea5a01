"""What is read from manifests: which checkpoint an evaluation measured, what was done to data."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from artifacts_schema.manifest import InputRef, Interim
from stages.export.provenance import Provenance, Treatment

POLICY = {"email": "redact", "phone": "drop", "card": "keep", "secret": "redact"}


def reference(name, kind):
    stage, _, key = name.partition("/")
    return InputRef(stage=stage, key=key, output=kind, kind=kind, digest=f"of {name}")


def made(name, kind, *, config=None, interims=(), **inputs):
    """A manifest `stage/key` of one output; inputs by role: (name, kind) pairs."""
    stage, _, key = name.partition("/")
    return SimpleNamespace(
        stage=stage,
        key=key,
        config=config or {},
        outputs={kind: SimpleNamespace(kind=kind)},
        inputs={role: tuple(reference(*one) for one in given) for role, given in inputs.items()},
        interims=interims,
    )


def filtered(name="filter/1", views=("personal_data", "secrets"), **inputs):
    given = {
        "documents": [("ingest/1", "documents")],
        "views": [("signals/1", "views")],
        **inputs,
    }
    return made(name, "documents", config={"personal_data": POLICY, "views": list(views)}, **given)


def pretrained(*packed):
    """pretrain/1 ← pack/1 ← `packed`."""
    pack = made("pack/1", "token_shards", documents=[(name, "documents") for name in packed])
    run = made(
        "pretrain/1", "checkpoint",
        train=[("pack/1", "token_shards")], held_out=[("pack/1", "token_shards")],
        interims=(Interim(at=5, label="5", key="early"),),
    )  # fmt: skip
    return [run, pack]


def provenance(*manifests, digest="of pretrain/1"):
    return Provenance(digest, manifests)


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        (["dpo/1"], "release"),
        (["pretrain/1"], "earlier"),
        (["pretrain/early"], "earlier"),
        (["pretrain/2"], "other"),
        (["dpo/1", "pretrain/1"], "earlier"),
        ([], "other"),
    ],
)
def test_an_evaluation_is_of_the_release_by_the_digest_that_it_measured(measured, expected):
    dpo = made("dpo/1", "checkpoint", checkpoint=[("pretrain/1", "checkpoint")])
    found = provenance(dpo, *pretrained(), digest="of dpo/1")
    assert found.relation([reference(name, "checkpoint") for name in measured]) == expected


def test_an_equal_checkpoint_under_another_key_is_the_release():
    same = reference("pretrain/2", "checkpoint").model_copy(update={"digest": "of pretrain/1"})
    assert provenance(*pretrained()).relation([same]) == "release"


def test_held_out_shards_are_no_training_data():
    (data,) = provenance(*pretrained("ingest/1")).training_data()
    assert (data.trained, data.data.stage) == (("pretrain", "1"), "pack")


def test_a_sort_is_redacted_only_where_its_view_was_given_and_applied():
    whole = Treatment.read(filtered())
    assert (whole.redacted, whole.dropped, whole.kept) == (
        ("email", "secret"),
        ("phone",),
        ("card",),
    )
    without = Treatment.read(filtered(views=("personal_data",)))
    assert (without.redacted, without.kept) == (("email",), ("card", "secret"))
    no_views = filtered()
    no_views.inputs.pop("views")
    assert Treatment.read(no_views).redacted == ()
    assert Treatment.read(made("ingest/1", "documents")) is None


def test_what_went_through_a_filter_is_covered_and_named():
    step = filtered(
        contamination=[("decontaminate/1", "contamination")],
        exclusions=[("forget/1", "exclusions"), ("forget/2", "exclusions")],
    )
    looked = made(
        "decontaminate/1", "contamination",
        documents=[("ingest/1", "documents")], benchmarks=[("benchmarks/1", "benchmarks")],
    )  # fmt: skip
    found = provenance(*pretrained("filter/1"), step, looked, made("ingest/1", "documents"))
    (data,) = found.training_data()
    assert (data.personal_data, data.decontaminated) == ("all", "all")
    assert [(one.source.key, one.covers) for one in data.forget_lists] == [
        ("1", "all"),
        ("2", "all"),
    ]
    assert [(one.source.key, one.covers) for one in data.benchmarks] == [("1", "all")]
    assert [one.step for one in data.treatments] == [("filter", "1")]
    plain = data.plain()
    assert plain["personal_data"]["by"][0]["redacted"] == ["email", "secret"]
    assert plain["decontaminated"]["benchmarks"][0]["stage"] == "benchmarks"


def test_a_source_that_went_past_the_filter_leaves_it_in_part():
    found = provenance(
        *pretrained("filter/1", "ingest/2"),
        filtered(contamination=[("decontaminate/1", "contamination")]),
        made("ingest/1", "documents"),
        made("ingest/2", "documents"),
    )
    (data,) = found.training_data()
    assert (data.personal_data, data.decontaminated) == ("part", "part")


def test_two_filters_side_by_side_each_claim_their_part_alone():
    """Filter 1 compares with benchmarks 1 and 3 and forgets a list; 2 with 2 and 3, no list."""
    steps = []
    for n in "12":
        forgets = {"exclusions": [("forget/1", "exclusions")]} if n == "1" else {}
        steps += [
            filtered(
                f"filter/{n}",
                documents=[(f"ingest/{n}", "documents")],
                contamination=[(f"decontaminate/{n}", "contamination")],
                **forgets,
            ),
            made(
                f"decontaminate/{n}", "contamination",
                documents=[(f"ingest/{n}", "documents")],
                benchmarks=[(f"benchmarks/{n}", "benchmarks"), ("benchmarks/3", "benchmarks")],
            ),
            made(f"ingest/{n}", "documents"),
        ]  # fmt: skip
    (data,) = provenance(*pretrained("filter/1", "filter/2"), *steps).training_data()
    assert (data.personal_data, data.decontaminated) == ("all", "all")
    covers = {one.source.key: one.covers for one in data.benchmarks}
    assert covers == {"1": "part", "2": "part", "3": "all"}
    assert [one.covers for one in data.forget_lists] == ["part"]
    assert [(one.step[1], one.covers) for one in data.treatments] == [("1", "part"), ("2", "part")]


def test_two_filters_in_a_row_both_claim_all():
    first = filtered("filter/1", exclusions=[("forget/1", "exclusions")])
    second = filtered(
        "filter/2",
        documents=[("filter/1", "documents")],
        exclusions=[("forget/2", "exclusions")],
    )
    (data,) = provenance(*pretrained("filter/2"), second, first).training_data()
    assert {one.source.key: one.covers for one in data.forget_lists} == {"1": "all", "2": "all"}
    assert [one.covers for one in data.treatments] == ["all", "all"]


def tuned(base, *above):
    """sft/1 of the checkpoint `base`, which has the manifests `above`."""
    run = made(
        "sft/1", "checkpoint",
        checkpoint=[(base, "checkpoint")],
        conversations=[("conversations/1", "conversations")],
    )  # fmt: skip
    return provenance(run, *above, made("conversations/1", "conversations"), digest="of sft/1")


def test_imported_weights_are_an_origin_whose_data_is_not_known():
    imported = made("import_model/1", "checkpoint", snapshot=[("snapshot/1", "snapshot")])
    (origin,) = tuned("import_model/1", imported).origins()
    assert (origin.checkpoint.stage, origin.recorded) == ("import_model", True)
    assert origin.plain()["digest"] == "of import_model/1"


def test_weights_that_were_collected_are_an_origin_that_is_not_recorded():
    (origin,) = tuned("pretrain/gone").origins()
    assert (origin.checkpoint.key, origin.recorded) == ("gone", False)


def test_weights_that_were_trained_here_from_the_start_have_no_origin():
    assert tuned("pretrain/1", *pretrained("ingest/1")).origins() == []


def test_what_was_collected_is_not_covered():
    (data,) = provenance(*pretrained("filter/gone")).training_data()
    assert (data.personal_data, data.decontaminated, data.treatments) == ("none", "none", ())


def test_each_training_stage_has_its_own_data():
    sft = made(
        "sft/1", "checkpoint",
        checkpoint=[("pretrain/1", "checkpoint")],
        conversations=[("conversations/1", "conversations")],
    )  # fmt: skip
    chat = made("conversations/1", "conversations", snapshot=[("snapshot/1", "snapshot")])
    found = provenance(sft, *pretrained("filter/1"), chat, filtered(), digest="of sft/1")
    assert [(one.trained[0], one.personal_data) for one in found.training_data()] == [
        ("sft", "none"),
        ("pretrain", "all"),
    ]
