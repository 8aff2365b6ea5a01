"""What `ingot verify` finds of what somebody changed in a store, and what nobody can find.

The first table edits manifests and payload and nothing else. The second is an editor who writes a
new checksum into the manifest as well: then only the key, a digest, the stage or another artifact
can contradict. docs/how-to/verify.md quotes both tables.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent.parent))
import ingot_test_stages as fakes
from conftest import RECIPE, run_inline

from artifacts_schema.identity import artifact_key, canonical_sha256, files_digest
from artifacts_schema.store import Store
from flows.analysis.deletion import extend_list
from flows.cli.main import main
from flows.recipe.execute import execute
from flows.recipe.pipeline import Pipeline, Request
from stages.engine import Milestone, Stage, protocol
from stages.engine.runner import run_stage
from stages.engine.spec import StageSpec


class Counting(Stage):
    """Writes a checkpoint, and one on its way."""

    name, version, reproducible = "toy_counting", 1, "bytes"
    outputs = {"checkpoint": "checkpoint"}

    def run(self, context):
        with context.interim(Milestone(1, "1K"), ["checkpoint"], history=[], number=1) as it:
            it.write_json("checkpoint", "state.json", {"number": 1})
        context.write_json("checkpoint", "state.json", {"number": 2})


STAGES = (fakes.Lines, fakes.Measure, fakes.Choose, fakes.Tokens, Counting)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A store with snapshots, documents, a decision, tokens, a checkpoint and a list."""
    folder = tmp_path_factory.mktemp("tampering")
    for name, text in {"a/one.txt": "alpha\nbeta\n\npi\n", "b/two.txt": "delta e\nmu\n"}.items():
        path = folder / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "demo.yaml").write_text(RECIPE)
    with pytest.MonkeyPatch.context() as patch:
        for stage in STAGES:
            patch.setitem(protocol._registered, stage.name, stage)
        request = Request(str(folder / "demo.yaml"), str(folder / "store"))
        execute(Pipeline.open(request), dispatch=run_inline)
        store = Store.open(str(folder / "store"))
        run_stage(store, StageSpec.make(Counting, {}, {}))
        extend_list(store, "exclusions", {"0" * 32: "a request"})
    return folder / "store"


@pytest.fixture
def place(original, tmp_path, monkeypatch):
    """A copy of that store, to be changed."""
    for stage in STAGES:
        monkeypatch.setitem(protocol._registered, stage.name, stage)
    shutil.copytree(original, tmp_path / "store")
    return tmp_path / "store"


def problems(place):
    """What `ingot verify` reports."""
    result = CliRunner().invoke(main, ["verify", "--json", "--store", str(place)])
    found = json.loads(result.stdout)["problems"]
    assert (result.exit_code == 1) == bool(found)
    return found


def manifest_file(place, stage, *, interim=False):
    """A stage's first manifest, of a run or of what that committed on its way."""
    paths = sorted((place / "artifacts" / stage).glob("*.json"))
    return next(p for p in paths if bool(json.loads(p.read_text())["interim_of"]) == interim)


def seal(value):
    """The checksum that an editor computes, as docs/design.md says."""
    left_out = ("telemetry", "attempt", "checksum")
    value["checksum"] = canonical_sha256({k: v for k, v in value.items() if k not in left_out})


def relist(value, output):
    """The digest of an output whose file list was edited."""
    files = value["outputs"][output]["files"]
    digest = files_digest((f["path"], f["bytes"], f["sha256"]) for f in files)
    value["outputs"][output]["digest"] = digest


def swap(value):
    given = value["inputs"]["documents"]
    given[0], given[1] = given[1], given[0]


def file_of(value, output="documents"):
    return value["outputs"][output]["files"][0]


def leave_out(value, output, count=1):
    del value["outputs"][output]["files"][:count]
    relist(value, output)


def other_key(value):
    """Another artifact of the same stage in place of an input."""
    given = value["inputs"]["documents"]
    given[0]["key"] = given[1]["key"]


# Each edit of a manifest: stage, change, and who finds it although the checksum is written anew.
EDITS = {
    "stage": ("choose", lambda v: v.update(stage="measure"), "place"),
    "version": ("choose", lambda v: v.update(version=2), "key"),
    "key": ("choose", lambda v: v.update(key="0" * 64), "key"),
    "store schema": ("choose", lambda v: v.update(schema_version=1), "schema"),
    "reproducible": ("choose", lambda v: v.update(reproducible="numerics"), "stage"),
    "config, a value that is not the default": (
        "choose",
        lambda v: v["config"]["least"].update(characters=5),
        "identity",
    ),
    "config, a default": ("choose", lambda v: v["config"].update(note="good"), "stage"),
    "identity": ("choose", lambda v: v["identity"]["least"].update(characters=5), "key"),
    "identity and config alike": (
        "choose",
        lambda v: (
            v["identity"]["least"].update(characters=5),
            v["config"]["least"].update(characters=5),
        ),
        "key",
    ),
    "identity, a field left out": ("choose", lambda v: v["identity"].clear(), "key"),
    "digest of an input": (
        "choose",
        lambda v: v["inputs"]["documents"][0].update(digest="0" * 64),
        "key",
    ),
    "artifact of an input, another that stands": ("choose", other_key, "input"),
    "output of an input": (
        "choose",
        lambda v: v["inputs"]["documents"][0].update(output="rejected"),
        "input",
    ),
    "kind of an input": (
        "choose",
        lambda v: v["inputs"]["documents"][0].update(kind="signals"),
        "input",
    ),
    "artifact of an input, one that is gone": (
        "choose",
        lambda v: v["inputs"]["documents"][0].update(key="0" * 64),
        None,
    ),
    "an input left out": ("choose", lambda v: v["inputs"]["documents"].pop(), "key"),
    "two inputs swapped": ("choose", swap, "key"),
    "a role renamed": (
        "choose",
        lambda v: v["inputs"].update(pages=v["inputs"].pop("signals")),
        "key",
    ),
    "an output left out": ("choose", lambda v: v["outputs"].pop("ledger"), "stage"),
    "an output renamed": (
        "choose",
        lambda v: v["outputs"].update(kept=v["outputs"].pop("documents")),
        "payload",
    ),
    "kind of an output": ("choose", lambda v: v["outputs"]["ledger"].update(kind="views"), "stage"),
    "version of a kind, a later one": (
        "choose",
        lambda v: v["outputs"]["ledger"].update(kind_version=99),
        "kind",
    ),
    "digest of an output": (
        "choose",
        lambda v: v["outputs"]["documents"].update(digest="0" * 64),
        "file list",
    ),
    "a file left out": (
        "choose",
        lambda v: v["outputs"]["documents"]["files"].pop(),
        "file list",
    ),
    "a file left out and the digest, of an output that was read": (
        "choose",
        lambda v: leave_out(v, "documents"),
        "reader",
    ),
    "a file left out and the digest, of an output that nothing read": (
        "choose",
        lambda v: leave_out(v, "ledger"),
        None,
    ),
    "path of a file": ("choose", lambda v: file_of(v).update(path="1.parquet"), "file list"),
    "size of a file": ("choose", lambda v: file_of(v).update(bytes=1), "file list"),
    "sha256 of a file": ("choose", lambda v: file_of(v).update(sha256="0" * 64), "file list"),
    "rows of a file": ("choose", lambda v: file_of(v).update(rows=10**6), "payload"),
    "attempt": ("choose", lambda v: v.update(attempt="0" * 12), "payload"),
    "digest of the code": ("choose", lambda v: v["code"].update(digest="0" * 64), None),
    "version of a library": ("choose", lambda v: v["code"]["libraries"].update(numpy="0"), None),
    "layout": ("choose", lambda v: v["layout"].update(ranks=8), None),
    "counts": ("choose", lambda v: v["counts"].update(documents=10**6), None),
    "counts of a snapshot": ("snapshot", lambda v: v["counts"].update(files=10**6), "payload"),
    "samples": ("choose", lambda v: v["samples"].update(short=["none"]), None),
    "conservation, one number": (
        "choose",
        lambda v: v["conservation"].update(records_in=10**6),
        "sum",
    ),
    "conservation, so that it adds up": (
        "choose",
        lambda v: v["conservation"].update(
            records_in=v["conservation"]["records_in"] + 1, out=v["conservation"]["out"] + 1
        ),
        None,
    ),
    "conservation left out": ("choose", lambda v: v.update(conservation=None), "stage"),
    "a checkpoint in the list of its run": (
        "toy_counting",
        lambda v: v["interims"][0]["outputs"].update(checkpoint="0" * 64),
        "checkpoint",
    ),
    "label of a checkpoint in the list of its run": (
        "toy_counting",
        lambda v: v["interims"][0].update(label="9K"),
        "checkpoint",
    ),
    "training step of a checkpoint": (
        "interim",
        lambda v: v["interim_of"].update(at=7),
        "key",
    ),
    "run of a checkpoint": ("interim", lambda v: v["interim_of"].update(run="0" * 64), "key"),
    "label of a checkpoint": ("interim", lambda v: v["interim_of"].update(label="9K"), "run"),
    "name of a snapshot": ("snapshot", lambda v: v["config"].update(name="other"), "payload"),
    "an unknown field": ("choose", lambda v: v.update(approved=True), "shape"),
    "a value of another type": ("choose", lambda v: v.update(version="one"), "shape"),
}


def edited(place, name, *, sealed):
    """Make one edit of the table; returns the manifest's file."""
    stage, change, _ = EDITS[name]
    interim = stage == "interim"
    path = manifest_file(place, "toy_counting" if interim else stage, interim=interim)
    value = json.loads(path.read_text())
    change(value)
    if sealed:
        seal(value)
    path.write_text(json.dumps(value, indent=1))
    return path


def test_what_nobody_changed_is_whole(place):
    assert problems(place) == []


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_manifest_is_found(place, name):
    path = edited(place, name, sealed=False)
    found = problems(place)
    assert path.stem in {problem["key"] for problem in found}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_manifest_with_a_new_checksum_is_found_where_something_contradicts(place, name):
    edited(place, name, sealed=True)
    assert bool(problems(place)) == (EDITS[name][2] is not None)


def payload_files(place, stage, output):
    """Payload files of the first artifact of a stage, sorted."""
    value = json.loads(manifest_file(place, stage).read_text())
    folder = place / "data" / stage / value["key"] / value["attempt"] / output
    return sorted(path for path in folder.rglob("*") if path.is_file())


def flip(path):
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def exchange(path, other):
    spare = path.with_name("spare")
    path.rename(spare)
    other.rename(path)
    spare.rename(other)


def relink(path):
    """A link to a file of the same size and other bytes."""
    other = path.with_name("other")
    other.write_bytes(bytes(path.stat().st_size))
    path.unlink()
    path.symlink_to(other)


FIRST = ("choose", "documents")
PAYLOAD = {
    "a flipped bit": (*FIRST, flip),
    "a byte less": (*FIRST, lambda path: path.write_bytes(path.read_bytes()[:-1])),
    "a byte more": (*FIRST, lambda path: path.write_bytes(path.read_bytes() + b"0")),
    "zeros of the same size": (*FIRST, lambda path: path.write_bytes(bytes(path.stat().st_size))),
    "an empty file": (*FIRST, lambda path: path.write_bytes(b"")),
    "a removed file": (*FIRST, lambda path: path.unlink()),
    "a renamed file": (*FIRST, lambda path: path.rename(path.with_name("1.parquet"))),
    "a folder in place of a file": (*FIRST, lambda path: (path.unlink(), path.mkdir())),
    "a link to other bytes": (*FIRST, relink),
    "a removed output": (*FIRST, lambda path: shutil.rmtree(path.parent)),
    "a removed payload": (*FIRST, lambda path: shutil.rmtree(path.parents[1])),
    "an edited snapshot": ("snapshot", "snapshot", flip),
    "an edited list of documents": ("forget", "exclusions", flip),
    "a flipped bit in a checkpoint": ("toy_counting", "checkpoint", flip),
}


@pytest.mark.parametrize("name", PAYLOAD)
def test_changed_payload_is_found(place, name):
    stage, output, change = PAYLOAD[name]
    change(payload_files(place, stage, output)[0])
    assert {problem["stage"] for problem in problems(place)} == {stage}


def test_two_files_in_each_others_place_are_found(place):
    (one,) = payload_files(place, "choose", "documents")
    (two,) = payload_files(place, "lines", "documents")
    exchange(one, two)
    assert {problem["stage"] for problem in problems(place)} == {"choose", "lines"}


MANIFESTS = {
    "an empty manifest": lambda path, other: path.write_bytes(b""),
    "a cut manifest": lambda path, other: path.write_bytes(path.read_bytes()[:-20]),
    "a list in place of a manifest": lambda path, other: path.write_text("[]"),
    "a manifest nested without end": lambda path, other: path.write_text("[" * 100_000),
    "another artifact's manifest": lambda path, other: path.write_bytes(other.read_bytes()),
    "a manifest under another key": lambda path, other: path.rename(
        path.with_name("0" * 64 + ".json")
    ),
    "no checksum": lambda path, other: path.write_text(
        json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != "checksum"})
    ),
    "another checksum": lambda path, other: path.write_text(
        json.dumps({**json.loads(path.read_text()), "checksum": "0" * 64})
    ),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_changed_manifest_file_is_found(place, name):
    MANIFESTS[name](manifest_file(place, "choose"), manifest_file(place, "measure"))
    assert {problem["stage"] for problem in problems(place)} == {"choose"}


def replace_payload(place, stage, output, raw):
    """Other bytes in the first file of an output, and every digest of the manifest to fit."""
    path = payload_files(place, stage, output)[0]
    path.write_bytes(raw)
    manifest = manifest_file(place, stage)
    value = json.loads(manifest.read_text())
    file = value["outputs"][output]["files"][0]
    file.update(bytes=len(raw), sha256=hashlib.sha256(raw).hexdigest())
    relist(value, output)
    seal(value)
    manifest.write_text(json.dumps(value))


def test_replaced_payload_with_all_digests_is_found_where_something_read_or_named_it(place):
    raw = payload_files(place, "choose", "documents")[0].read_bytes()
    replace_payload(place, "lines", "documents", raw)
    assert "holds other bytes" in json.dumps(problems(place))


def test_a_replaced_snapshot_with_all_digests_is_found_by_its_identity(place):
    raw = payload_files(place, "snapshot", "snapshot")[0].read_bytes().replace(b"one", b"two")
    replace_payload(place, "snapshot", "snapshot", raw)
    told = [problem["what"] for problem in problems(place) if problem["stage"] == "snapshot"]
    assert told == ["its identity is not that of what it holds"]


def test_replaced_payload_with_all_digests_that_nothing_read_cannot_be_found(place):
    raw = payload_files(place, "choose", "ledger")[0].read_bytes()
    replace_payload(place, "toy_counting", "checkpoint", b'{"number": 3}')
    assert problems(place) == []
    replace_payload(place, "choose", "ledger", raw)
    assert problems(place) == []


def test_a_forged_artifact_with_a_key_of_its_own_cannot_be_found(place):
    """Nothing in a store says who made an artifact: that needs signatures."""
    path = manifest_file(place, "choose")
    value = json.loads(path.read_text())
    value["identity"]["least"]["characters"] = value["config"]["least"]["characters"] = 5
    digests = {role: [one["digest"] for one in given] for role, given in value["inputs"].items()}
    key = artifact_key("choose", 1, value["identity"], digests)
    shutil.copytree(place / "data/choose" / value["key"], place / "data/choose" / key)
    value["key"] = key
    seal(value)
    path.with_name(f"{key}.json").write_text(json.dumps(value))
    assert problems(place) == []


def test_telemetry_is_in_no_digest(place):
    path = manifest_file(place, "choose")
    value = json.loads(path.read_text())
    value["telemetry"]["seconds"] = 0.001
    path.write_text(json.dumps(value))
    assert problems(place) == []


def test_the_page_says_the_same():
    """docs/how-to/verify.md: every kind, and whether it is found with a new checksum."""
    page = Path(__file__).parents[3] / "docs/how-to/verify.md"
    rows = [line.strip("|").split("|") for line in page.read_text().splitlines() if line[:1] == "|"]
    cells = {row[0].strip(): row[-1].strip() for row in rows}
    for name, (_, _, who) in EDITS.items():
        assert cells[name].partition(":")[0] == ("found" if who else "not found"), name
    for name in (*PAYLOAD, *MANIFESTS):
        assert name in cells
    assert len(EDITS) + len(PAYLOAD) + len(MANIFESTS) > 60
