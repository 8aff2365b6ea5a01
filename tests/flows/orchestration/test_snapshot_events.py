"""A snapshot that `ingot snapshot watch` takes starts the recipes that wait for it."""

from __future__ import annotations

import json

import pytest

from artifacts_schema.errors import UsageError


def take(ui, name):
    """Take `crawl-NAME` with the command line."""
    folder = ui.folder / "crawls" / name
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text(f"{name}\n")
    return ui.ingot(
        "snapshot", "watch", str(folder.parent), "--series", "crawl", "--once",
        "--settle", "0.01", "--store", str(ui.folder / "store"),
    )  # fmt: skip


def runs_of_toys(ui):
    body = {"deployments": {"name": {"any_": ["toys"]}}}
    return {one["id"]: one for one in ui.post("/flow_runs/filter", body)}


@pytest.mark.full
def test_an_event_starts_the_recipe_and_the_schedule_is_listed_and_removed(ui):
    recipe, store = str(ui.folder / "toys.yaml"), str(ui.folder / "store")
    words = ("--on-snapshot", "crawl-*", "--through", "numbers", "--store", store)
    for _ in range(2):  # The same twice is one.
        done = ui.ingot("schedule", recipe, *words)
        assert done.returncode == 0, done.stderr
    assert "toys runs at each snapshot 'crawl-*'" in done.stdout
    listed = json.loads(ui.ingot("schedule", "--list", "--json").stdout)
    assert listed == [{"recipe": "toys", "on_snapshot": "crawl-*"}]

    before = set(runs_of_toys(ui))
    done = take(ui, "2024-30")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("snapshots/crawl-2024-30 ")
    assert "no event" not in done.stderr
    (run,) = ui.until(lambda: runs_of_toys(ui).keys() - before)
    ended = ui.end_of(run)
    assert ended["state"]["type"] == "COMPLETED"
    assert ended["parameters"]["through"] == "numbers"

    again = ui.ingot(
        "snapshot", "watch", str(ui.folder / "crawls"), "--series", "crawl", "--once",
        "--settle", "0.01", "--store", store,
    )  # fmt: skip
    assert (again.returncode, again.stdout) == (0, ""), "what was taken is not taken again"
    removed = ui.ingot("schedule", recipe, "--remove")
    assert "removed toys at snapshots 'crawl-*'" in removed.stdout
    assert json.loads(ui.ingot("schedule", "--list", "--json").stdout) == []


def test_a_payload_lacks_nothing_or_is_refused(given):
    from flows.orchestration.snapshot_events import SnapshotTaken

    manifest, _ = given("snapshot", {"snapshot.json": {"name": "crawl-1", "files": []}})
    with pytest.raises(UsageError, match="no event about crawl-1: wrong files, bytes"):
        SnapshotTaken.about("store", "crawl-1", manifest)
    counted = manifest.model_copy(update={"counts": {"files": 2, "bytes": 10}})
    payload = SnapshotTaken.about("store", "crawl-1", counted)
    assert (payload.files, payload.bytes, payload.key) == (2, 10, manifest.key)


def test_stores_have_resource_ids_of_their_own():
    from flows.orchestration.snapshot_events import resource_id

    one, two = resource_id("/a", "crawl-1"), resource_id("/b", "crawl-1")
    assert one != two
    assert one.endswith(".crawl-1")


def test_without_a_server_a_snapshot_is_taken_and_it_is_said(tmp_path):
    from click.testing import CliRunner

    from flows.cli.main import main

    (tmp_path / "crawls/2024-30").mkdir(parents=True)
    (tmp_path / "crawls/2024-30/a.txt").write_text("text\n")
    words = ["snapshot", "watch", str(tmp_path / "crawls"), "--once", "--settle", "0"]
    done = CliRunner(env={"INGOT_HOME": str(tmp_path / "home"), "PREFECT_API_URL": None}).invoke(
        main, [*words, "--store", str(tmp_path / "store")]
    )
    assert done.exit_code == 0, done.output
    assert "snapshots/2024-30 " in done.output
    assert "no event about 2024-30: no Prefect server answers" in done.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name a folder or a bucket, or --crawls"),
        (("x", "--crawls"), "name a folder or a bucket, or --crawls"),
        (("--crawls",), "say how much of each"),
    ],
)
def test_wrong_words(words, message):
    from click.testing import CliRunner

    from flows.cli.main import main

    done = CliRunner().invoke(main, ["snapshot", "watch", *words])
    assert done.exit_code == 2
    assert message in done.output
