"""`ingot collect` on what the tiny recipe trained: sampled, killed, judged, and learnt from."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time

import httpx
import pytest
from click.testing import CliRunner

from flows.cli.main import main
from flows.collecting.collection import ANSWERS, JUDGEMENTS, Collection
from stages.engine import Input

PROMPTS = 40
OPTIONS = ("--answers", "3", "--max-tokens", "12", "--temperature", "2", "--seed", "5")


@pytest.fixture
def store(copy, tmp_path):
    """A copy of the store, with a snapshot of prompts in several shapes."""
    folder = tmp_path / "prompts"
    folder.mkdir()
    rows = [{"prompt": f"What is {number}?"} for number in range(PROMPTS - 3)]
    rows.insert(5, {"prompt": "What is 3?"})  # Again.
    rows.insert(9, {"text": "no prompt"})
    rows += [
        {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]},
        {"instruction": "Add.", "input": "1 and 2"},
        {"question": "word " * 100},  # Beyond the context.
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "questions.jsonl").write_text(lines)
    run(copy.folder, "snapshot", "add", "questions", str(folder))
    return copy.folder


def run(store, *arguments, code=0):
    result = CliRunner().invoke(main, [*arguments, "--store", str(store)])
    assert result.exit_code == code, result.output
    return result


def sample(store, folder, *options, code=0, ref="tiny/dpo"):
    arguments = ["collect", ref, "snapshots/questions", "--into", str(folder), "--device", "cpu"]
    return run(store, *arguments, *OPTIONS, "--only-sample", *options, code=code)


def start(store, *arguments):
    command = [sys.executable, "-m", "ingot_entry", "collect", *arguments, "--store", str(store)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.fixture
def serve(store, tmp_path):
    """`serve(folder)` → the process of a page over a collection, and a client that has its key."""
    processes = []

    def begin(folder):
        process = start(
            store, "--into", str(folder), "--port", "0", "--key-file", str(tmp_path / "key")
        )
        processes.append(process)
        line = process.stdout.readline()
        url = re.search(r"http://\S+/", line)
        assert url, line
        secret = (tmp_path / "key").read_text().strip()
        headers = {"Authorization": f"Bearer {secret}"}
        return process, httpx.Client(base_url=url[0], headers=headers, timeout=30)

    yield begin
    for process in processes:
        process.kill()
        process.wait()


def test_answers_are_the_same_after_a_kill_and_under_other_settings_refused(store, tmp_path):
    result = sample(store, tmp_path / "whole")
    assert "duplicate_prompt 1, missing_field 1" in result.stderr
    assert "too_long 1" in result.stderr
    whole = (tmp_path / "whole" / ANSWERS).read_bytes()
    assert whole.count(b"\n") == PROMPTS
    killed = tmp_path / "killed"
    process = start(
        store, "tiny/dpo", "snapshots/questions", "--into", str(killed), "--device", "cpu",
        *OPTIONS, "--only-sample",
    )  # fmt: skip
    while not (killed / ANSWERS).exists() or not (killed / ANSWERS).stat().st_size:
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.wait()
    partial = (killed / ANSWERS).read_bytes()
    assert whole.startswith(partial)
    assert len(partial) < len(whole), "it was killed too late"
    (killed / ANSWERS).write_bytes(partial + whole[len(partial) :][:700])  # Cut in a line.
    sample(store, killed)
    assert (killed / ANSWERS).read_bytes() == whole
    error = sample(store, killed, "--seed", "6", code=2).stderr
    assert "was begun with other settings: seed 5, now 6" in error
    other = sample(store, tmp_path / "other", "--seed", "6")
    assert other.exit_code == 0
    assert (tmp_path / "other" / ANSWERS).read_bytes() != whole


def test_what_was_acknowledged_survives_a_kill_and_becomes_pairs_that_are_learnt(
    store, tmp_path, serve
):
    folder = tmp_path / "helpful"
    sample(store, folder)
    questions = Collection.open(folder).questions
    process, client = serve(folder)
    kept = []
    for number in range(len(questions)):
        if number == 7:
            process.kill()
            process.wait()
            path = folder / JUDGEMENTS
            path.write_bytes(path.read_bytes() + b'{"id": "cut')
            process, client = serve(folder)
        body = {"who": "Ada", "window": "a" * 32}
        question = client.post("/next", json=body).json()["question"]
        # The longest is the best: an order that does not depend on the page's.
        lengths = [len(one["text"]) for one in question["answers"]]
        ranks = [1 + sum(other > one for other in lengths) for one in lengths]
        body |= {"id": f"{number:032x}", "prompt": question["prompt"]}
        body |= {"verdict": "ranked", "ranks": ranks}
        assert client.post("/judgements", json=body).is_success
        kept.append(question["prompt"])
    assert kept == list(questions), "none was lost, none came twice"
    status = json.loads(run(store, "collect", "--into", str(folder), "--status", "--json").stdout)
    assert status["judged"] == len(questions)
    assert status["people"] == {"Ada": {"ranked": len(questions)}}
    printed = run(store, "collect", "--into", str(folder), "--finish").stdout
    pairs = int(re.search(r"snapshots/helpful \w+: (\d+) pairs", printed)[1])
    assert pairs > 20
    assert run(store, "collect", "--into", str(folder), "--finish").stdout == printed

    run(store, "stage", "preferences", "--input", "snapshot=snapshots/helpful", "--as", "h/pairs")
    rows = table(store, "h/pairs", "preferences")
    assert len(rows) == pairs
    for row in rows:
        chosen, rejected = (row[side][0]["content"] for side in ("chosen", "rejected"))
        assert len(chosen) > len(rejected)
        metadata = json.loads(row["metadata"])
        assert metadata["who"] == ["Ada"]
        assert (metadata["model"], metadata["seed"]) == ("tiny/dpo", 5)
        assert metadata["checkpoint"].startswith("dpo/")
    for stage in ("preference", "reward"):
        run(
            store, "stage", stage, "--input", "checkpoint=tiny/sft", "--input",
            "preferences=h/pairs", "--set", "pairs_per_batch=4", "--set", "precision=fp32",
        )  # fmt: skip


def table(store, ref, output):
    from artifacts_schema.store import Store

    opened = Store.open(str(store))
    manifest, _ = opened.resolve(ref)
    shards = Input.from_manifest(opened, manifest, output).shards()
    return [row for shard in shards for row in shard.read().to_pylist()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tiny/sft", "snapshots/questions"], "holds other files"),
        (["tiny/pretrain", "snapshots/questions"], "was never tuned on conversations"),
        (["tiny/sft", "tiny/sft"], "is no snapshot but sft"),
        (["tiny/sft"], "name a model and a snapshot of prompts, or neither"),
        ([], "is no collection"),
        (["--finish"], "is no collection"),
        (["--finish", "--status"], "exclude each other"),
    ],
)
def test_what_cannot_be_is_one_line(store, tmp_path, arguments, message):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("x")
    key = str(tmp_path / "key")
    command = ["collect", *arguments, "--into", str(tmp_path / "full"), "--key-file", key]
    result = run(store, *command, "--port", "0", code=2)
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
