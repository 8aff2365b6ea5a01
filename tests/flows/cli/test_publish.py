"""`ingot publish`: the plan, one commit at the end, a cut that goes on, and what is refused."""

from __future__ import annotations

import json

import pytest
from huggingface_hub import constants
from publishing_hub import PublishingHub

from artifacts_schema.store.gc import collect, plan_gc
from flows.analysis.deletion import forget_documents
from flows.interchange.publication import front_matter, git_hash
from stages.export.dataset import ExportDataset

TOKEN = "hf_hunter2hunter2"
CARD = b"---\nlicense: apache-2.0\nlanguage:\n- en\ntags:\n- ingot\n---\n\n# A model\n"
RELEASE = {
    "model.safetensors": b"w" * 5000,
    "config.json": b'{"model_type": "llama"}',
    "README.md": CARD,
}


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A Hub that takes files by LFS; the token is in the environment."""
    server = PublishingHub(TOKEN)
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    yield server
    server.close()


@pytest.fixture
def release(given):
    """A release of these files, as the reference that the command takes."""

    def make(files=RELEASE):
        manifest, output = given("release", files)
        return f"{manifest.key[:12]}:{output}"

    return make


@pytest.fixture
def publish(ingot, hub):
    """`publish(ref, *options)` to `hub:org/model`; the click result, which never has the token."""

    def call(ref, *options, to="hub:org/model"):
        result = ingot("publish", ref, "--to", to, *options)
        assert TOKEN not in result.output
        assert result.exception is None or TOKEN not in str(result.exception)
        return result

    return call


def test_the_plan_is_printed_and_nothing_is_touched(publish, hub, release):
    result = publish(release())
    assert result.exit_code == 0
    assert "org/model, a new private repository" in result.output
    assert "3 of 3 files to send, 5.1 kB; licence apache-2.0" in result.output
    assert "nothing was changed; --yes publishes it" in result.output
    assert (hub.changes, hub.repositories) == (0, {})


def test_a_release_becomes_one_commit_of_a_private_repository(publish, hub, release, ingot, store):
    ref = release()
    result = publish(ref, "--yes")
    assert result.exit_code == 0, result.output
    repository = hub.repositories["models/org/model"]
    assert repository.private
    assert {n: d for n, d in repository.files.items() if n != ".gitattributes"} == RELEASE
    assert len(repository.commits) == 2  # The Hub's own first one, and ours.
    named = store.ref("published/org/model")
    assert named.key.startswith(ref[:12])
    again = publish(ref, "--yes")
    assert again.exit_code == 0
    assert "the repository holds exactly this" in again.output
    assert len(repository.commits) == 2


def test_a_public_one_is_made_only_where_it_is_to_be(publish, hub, release):
    plan = publish(release(), "--public")
    assert "a new PUBLIC repository" in plan.output
    assert "everybody can read it" in plan.output
    publish(release(), "--public", "--yes")
    assert not hub.repositories["models/org/model"].private


def test_a_cut_upload_goes_on_and_nobody_sees_half_of_it(publish, hub, release):
    files = {**RELEASE, "a.safetensors": b"a" * 2000, "b.safetensors": b"b" * 9000}
    ref = release(files)
    hub.cut_after = 6000
    result = publish(ref, "--yes")
    assert result.exit_code != 0
    assert "the same command goes on; what was sent is not sent again" in result.output
    repository = hub.repositories["models/org/model"]
    assert list(repository.files) == [".gitattributes"]
    before = list(hub.sent)
    assert len(before) == 2
    hub.cut_after = None
    assert publish(ref, "--yes").exit_code == 0
    assert len(hub.sent) == len(before) + 1
    assert {n: d for n, d in repository.files.items() if n != ".gitattributes"} == files


def test_a_second_version_sends_what_changed_and_removes_what_is_gone(publish, hub, release):
    publish(release({**RELEASE, "old.json": b"{}"}), "--yes")
    changed = {**RELEASE, "config.json": b'{"model_type": "qwen3"}'}
    ref = release(changed)
    plan = json.loads(publish(ref, "--json").output)
    states = {path: state for path, _, state in plan["files"]}
    assert states == {
        "README.md": "same", "config.json": "changed", "model.safetensors": "same",
    }  # fmt: skip
    assert plan["removed"] == ["old.json"]
    sent = len(hub.sent)
    assert publish(ref, "--yes").exit_code == 0
    repository = hub.repositories["models/org/model"]
    assert {n: d for n, d in repository.files.items() if n != ".gitattributes"} == changed
    assert len(hub.sent) == sent


def test_a_repository_that_is_newer_is_replaced_only_by_its_name(publish, hub, release):
    publish(release(), "--yes")
    repository = hub.repositories["models/org/model"]
    repository.files["theirs.json"] = b"{}"
    head = repository.commit("by somebody else")
    ref = release({**RELEASE, "config.json": b"{}"})
    result = publish(ref, "--yes")
    assert result.exit_code == 2
    assert f"the repository is at {head[:12]}" in result.output
    assert "theirs.json" in repository.files
    assert publish(ref, "--yes", "--onto", "f" * 12).exit_code == 2
    assert publish(ref, "--yes", "--onto", head[:12]).exit_code == 0
    assert "theirs.json" not in repository.files


def test_files_that_the_hub_leaves_out_are_missed_and_sent_by_the_same_command(
    publish, hub, release
):
    """huggingface_hub leaves out of a commit what a `.gitignore` of the repository names."""
    publish(release(), "--yes")
    repository = hub.repositories["models/org/model"]
    repository.files[".gitignore"] = b"config.json\n"
    head = repository.commit("by somebody else")
    ref = release({**RELEASE, "config.json": b'{"model_type": "qwen3"}'})
    cut = publish(ref, "--yes", "--onto", head[:12])
    assert cut.exit_code == 1
    assert "without 1 of its files: config.json" in cut.output
    assert publish(ref, "--yes").exit_code == 0
    assert repository.files["config.json"] == b'{"model_type": "qwen3"}'
    assert ".gitignore" not in repository.files


def test_a_commit_that_comes_between_plan_and_commit_is_not_lost(publish, hub, release):
    publish(release(), "--yes")
    repository = hub.repositories["models/org/model"]

    def theirs():
        hub.before_commit = lambda: None
        repository.files["theirs.json"] = b"{}"
        repository.commit("by somebody else")

    hub.before_commit = theirs
    result = publish(release({**RELEASE, "config.json": b"{}"}), "--yes")
    assert result.exit_code != 0
    assert "the repository has changed (412)" in result.output
    assert repository.files["theirs.json"] == b"{}"


@pytest.mark.parametrize(
    ("card", "options", "told"),
    [
        (b"# A model\n", (), "the card states no licence"),
        (b"# A model\n", ("--license", "mit"), "the card says nothing"),
        (b"---\nlicense: cc-by-nd-4.0\n---\n", (), "does not let what was made of a work"),
        (CARD, ("--license", "mit"), "the card says apache-2.0"),
    ],
)
def test_a_licence_that_is_missing_or_forbids_it_is_refused(
    publish, hub, release, card, options, told
):
    result = publish(release({**RELEASE, "README.md": card}), "--yes", *options)
    assert result.exit_code == 2
    assert told in result.output
    assert hub.changes == 0


def test_gaps_of_a_card_are_counted(publish, release):
    card = CARD + b"Provider: to be filled in by the provider\n"
    result = publish(release({**RELEASE, "README.md": card}))
    assert "1 place of the card is to be filled in by the provider" in result.output


def test_files_that_are_not_what_the_manifest_says_are_not_published(publish, hub, release, store):
    ref = release()
    manifest, output = store.resolve(ref)
    if not store.backend.local:
        pytest.skip("a bucket's files are compared when they are copied")
    path = store.backend.local_path(f"{store.payload(manifest, output)}/model.safetensors")
    path.chmod(0o600)
    path.write_bytes(b"x" * 5000)
    result = publish(ref, "--yes")
    assert result.exit_code != 0
    assert "model.safetensors" in result.output
    assert hub.changes == 0


def test_a_corpus_with_documents_that_were_forgotten_since_is_refused(
    publish, hub, given, run_stage, store
):
    rows = [
        {
            "doc_id": f"{n:032x}", "source": "web", "snapshot": "crawl", "text": "text " * 30,
            "metadata": "{}", "origin_file": "a", "origin_offset": n, "origin_length": 1,
        }
        for n in range(3)
    ]  # fmt: skip
    documents = given("documents", {"00000.parquet": rows})
    config = {"name": "corpus", "license": "odc-by"}
    made = run_stage(ExportDataset, config, {"documents": [documents]})
    ref = f"{made.key[:12]}:dataset"
    assert publish(ref, to="hub:org/corpus").exit_code == 0
    forget_documents(store, [rows[1]["doc_id"]], ref="mine", reason="asked")
    result = publish(ref, "--yes", to="hub:org/corpus")
    assert result.exit_code == 2
    assert "1 of its documents were to be forgotten" in result.output
    assert hub.changes == 0


def test_tokens_and_gguf_files_get_a_card(publish, hub, given):
    files = {"m.gguf": b"GGUF" * 400, "Modelfile": b"FROM m.gguf\n", "ingot.json": {}}
    manifest, _ = given("gguf", files)
    ref = f"{manifest.key[:12]}:gguf"
    assert publish(ref, "--yes").exit_code == 2
    assert publish(ref, "--yes", "--license", "mit").exit_code == 0
    card = hub.repositories["models/org/model"].files["README.md"]
    assert front_matter(card)["license"] == "mit"


def test_a_card_that_the_certificate_covers_is_not_replaced(publish, release, tmp_path):
    (tmp_path / "card.md").write_bytes(CARD)
    result = publish(release(), "--card", tmp_path / "card.md")
    assert result.exit_code == 2
    assert "certificate covers" in result.output


def test_a_file_of_the_provider_goes_beside_it(publish, hub, release, tmp_path):
    (tmp_path / "training-data.md").write_text("Provider: us\n")
    (tmp_path / "config.json").write_text("{}")
    assert publish(release(), "--add", tmp_path / "config.json").exit_code == 2
    done = publish(release(), "--yes", "--add", tmp_path / "training-data.md")
    assert done.exit_code == 0
    files = hub.repositories["models/org/model"].files
    assert files["training-data.md"] == b"Provider: us\n"


def test_a_wrong_token_and_a_server_that_fails_are_one_line(publish, hub, release, monkeypatch):
    hub.answers["/commit/"] = 500
    result = publish(release(), "--yes")
    assert "the Hub answered 500" in result.output
    assert list(hub.repositories["models/org/model"].files) == [".gitattributes"]
    hub.answers.clear()
    assert publish(release(), "--yes").exit_code == 0
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    result = publish(release({**RELEASE, "config.json": b"{}"}), "--yes")
    assert result.exit_code == 1
    assert "Traceback" not in result.output


def test_a_hub_that_is_not_there_is_one_line(publish, release, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    result = publish(release())
    assert result.exit_code == 1
    assert "http://127.0.0.1:9 is not reached" in result.output
    assert "bug in Ingot" not in result.output


def test_a_token_file_that_others_can_read_is_refused(publish, hub, release, tmp_path, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    path.chmod(0o644)
    assert "others can read it" in publish(release(), "--token-file", path).output
    path.chmod(0o600)
    assert publish(release(), "--yes", "--token-file", path).exit_code == 0


def test_what_was_published_is_not_collected(publish, hub, release, store):
    ref = release()
    publish(ref, "--yes")
    collect(store, plan_gc(store, min_age_seconds=0))
    assert store.resolve("published/org/model")[0].key.startswith(ref[:12])


@pytest.mark.parametrize("to", ["org/model", "hub:org", "hub:org/a/b", "hub:../x/y", "s3://b/c"])
def test_what_is_no_repository_is_refused(publish, release, to):
    assert publish(release(), to=to).exit_code == 2


def test_what_cannot_be_published_is_named(publish, given):
    manifest, _ = given("tokenizer", {"tokenizer.json": {}})
    result = publish(f"{manifest.key[:12]}:tokenizer")
    assert result.exit_code == 2
    assert "release or gguf or dataset or token_dataset" in result.output


def test_small_files_are_compared_by_the_hash_of_git():
    assert git_hash(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"
