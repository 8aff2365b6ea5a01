"""`ingot doctor` on a real Slurm: all is well, and each thing that loses a night is named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import stages
from artifacts_schema.errors import UsageError
from flows.cli.main import main
from flows.recipe.dispatch import ProbeAnswer
from flows.recipe.doctor import compare, diagnose, probe_resources
from flows.recipe.profile import Profile, Resources, load_profile
from pools.decide import UNKNOWN, JobState
from pools.probe_job import ProbeJob, probe_request
from pools.slurm.doctor import count_gpus
from stages.engine.probe import PREFECT_API, check_prefect, describe_machine

SOURCE = Path(stages.__file__).parent.parent


@pytest.fixture(autouse=True)
def no_api(monkeypatch):
    """No server of Prefect that an earlier test of this process started."""
    monkeypatch.delenv(PREFECT_API, raising=False)


@pytest.fixture
def profile(tmp_path):
    """`profile(pool, *resources)`: a profile of a pool `cpu` with these settings."""

    def write(pool="partition: debug", *resources):
        path = tmp_path / "cluster.yaml"
        lines = "".join(f"  {line}\n" for line in resources or ("default: {cpus: 1, pool: cpu}",))
        path.write_text(f"pools:\n  cpu: {{type: slurm, {pool}}}\nresources:\n{lines}")
        return str(path)

    return write


@pytest.fixture
def ingot_doctor(store):
    """`ingot_doctor(profile, *options)` → the exit code, and the checks by name."""

    def run(profile, *options):
        arguments = ["doctor", "--profile", profile, "--store", store.url, "--json", *options]
        result = CliRunner().invoke(main, arguments)
        checks = json.loads(result.stdout)["checks"]
        assert not store.backend.folders("work"), "what the doctor made is removed"
        return result.exit_code, {check["name"]: check for check in checks}

    return run


def failures(checks):
    return {name: check["text"] for name, check in checks.items() if check["ok"] is False}


# On a real Slurm ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("installed_stages")
def test_all_is_well_on_a_real_slurm(ingot_doctor, profile, slurm):
    resources = ("default: {pool: cpu, cpus: 2, memory: [500 MB, 1 GB], time: 1 h}",)
    code, checks = ingot_doctor(profile("partition: debug", *resources))
    assert failures(checks) == {}
    assert code == 0
    wanted = ["commands", "queue", "partition", "stage default", "node", "store", "clock",
              "same Ingot", "versions", "resources"]  # fmt: skip
    assert [name for name in checks if name.startswith("cpu: ")] == [f"cpu: {w}" for w in wanted]
    assert "fsync" in checks["cpu: store"]["text"]
    assert not slurm.output("squeue", "-h").split()


def test_what_the_settings_lack_is_named_without_a_job(ingot_doctor, profile, slurm):
    resources = (
        "default: {pool: cpu, cpus: 1}",
        "pretrain: {pool: cpu, nodes: 2}",
        "signals: {pool: cpu, time: 2 h}",
        "dedup: {pool: cpu, memory: [1 GB, 500 GB]}",
        "filter: {pool: cpu, gpus: 3}",
    )
    before = slurm.output("scontrol", "show", "job", "-o").count("JobId=")
    code, checks = ingot_doctor(profile("partition: small", *resources), "--wait", "0")
    wrong = failures(checks)
    assert code == 1
    assert "2 nodes" in wrong.pop("cpu: stage pretrain")
    assert "00:05:00" in wrong.pop("cpu: stage signals")
    assert "at most 4 CPUs, 8.4 GB, 2 GPUs" in wrong.pop("cpu: stage dedup")
    assert "at most 4 CPUs, 8.4 GB, 2 GPUs" in wrong.pop("cpu: stage filter")
    assert wrong == {}
    assert slurm.output("scontrol", "show", "job", "-o").count("JobId=") == before


def test_a_partition_that_does_not_exist_or_is_down_is_named(ingot_doctor, profile, slurm):
    code, checks = ingot_doctor(profile("partition: nowhere"), "--wait", "0")
    assert code == 1
    assert failures(checks) == {"cpu: partition": "no partition 'nowhere'"}
    assert checks["cpu: partition"]["hint"] == "Slurm has debug, small, train"
    slurm.run("scontrol", "update", "partition=train", "state=down")
    try:
        _, checks = ingot_doctor(profile("partition: train"), "--wait", "0")
    finally:
        slurm.run("scontrol", "update", "partition=train", "state=up")
    assert failures(checks) == {"cpu: partition": "train is DOWN"}


def test_an_account_is_not_checked_where_accounting_is_off(ingot_doctor, profile, slurm):
    code, checks = ingot_doctor(profile("partition: debug, account: llm"), "--wait", "0")
    assert (code, checks["cpu: account"]["ok"]) == (0, None)


def test_a_job_that_does_not_start_is_named_with_slurms_reason(ingot_doctor, profile, slurm):
    pool = 'partition: debug, poll_seconds: 0.5, options: ["--hold"]'
    code, checks = ingot_doctor(profile(pool), "--wait", "2")
    assert code == 1
    assert "JobHeldUser" in failures(checks)["cpu: node"]
    assert not slurm.output("squeue", "-h").split()


@pytest.mark.full
@pytest.mark.usefixtures("installed_stages")
@pytest.mark.parametrize("what", ["gone", "another"])
def test_a_store_that_a_node_does_not_see_is_named(ingot_doctor, profile, slurm, store, what):
    """The slurmd of node n2 in a mount namespace of its own, where another folder covers it."""
    place = shutil.which("unshare") and Path(store.url)
    if not place:
        pytest.skip("needs unshare")
    mark = store.backend.read("ingot-store.json").decode()
    script = f"mount -t tmpfs none {place}"
    if what == "another":
        script += f"; printf '%s' '{mark}' > {place}/ingot-store.json"
    slurm.stop_node("n2")
    command = f"{script}; exec slurmd -N n2 -f {slurm.environment['SLURM_CONF']}"
    subprocess.run(["unshare", "-m", "sh", "-c", command], env=slurm.environment, check=True)
    slurm.wait_until_idle()
    try:
        pool = 'partition: debug, options: ["--nodelist=n2"]'
        if what == "another":  # Else Slurm cannot write the output, and starts nothing.
            folder = place.parent / "jobs"
            folder.mkdir()
            pool += f", folder: {folder}"
        code, checks = ingot_doctor(profile(pool), "--wait", "60")
    finally:
        slurm.stop_node("n2")
        slurm.start_node("n2")
        slurm.wait_until_idle()
    assert code == 1
    if what == "another":
        assert "another store" in failures(checks)["cpu: node"]
    else:
        assert "JobLaunchFailure" in failures(checks)["cpu: node"]
        assert store.url in checks["cpu: node"]["hint"]


@pytest.mark.full
@pytest.mark.usefixtures("installed_stages")
def test_another_ingot_on_the_node_is_named(ingot_doctor, profile, slurm, tmp_path):
    for name in ("stages", "artifacts_schema"):
        shutil.copytree(SOURCE / name, tmp_path / "other" / name)
    changed = tmp_path / "other" / "stages" / "dedup" / "stage.py"
    text = changed.read_text()
    assert 'name, version, reproducible = "dedup", ' in text
    changed.write_text(text.replace('reproducible = "dedup", ', 'reproducible = "dedup", 90 + '))
    path = f"{tmp_path / 'other'}:{os.environ['PYTHONPATH']}"
    pool = f'partition: debug, environment: {{PYTHONPATH: "{path}"}}'
    code, checks = ingot_doctor(profile(pool))
    assert code == 1
    assert "dedup: version 9" in failures(checks)["cpu: same Ingot"]


@pytest.mark.full
def test_a_python_that_does_not_exist_is_named(ingot_doctor, profile, slurm):
    code, checks = ingot_doctor(profile("partition: debug, python: /nowhere/python"))
    assert code == 1
    assert "/nowhere/python" in failures(checks)["cpu: node"]


# Without one -------------------------------------------------------------------------------------


def test_a_store_that_does_not_exist_is_not_made(tmp_path, profile, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    checks = {
        c.name: c for c in diagnose(load_profile(profile(), tmp_path), f"{tmp_path}/s", wait=9)
    }
    assert checks["store"].ok is False
    assert checks["cpu: node"].ok is None
    assert "no sbatch" in checks["cpu: commands"].text
    assert not (tmp_path / "s").exists()


def test_a_store_that_cannot_be_written_is_named(store, monkeypatch):
    def refuse(*arguments):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    (check,) = [c for c in diagnose(Profile(), store.url, wait=0) if c.name == "store"]
    assert check.ok is False
    assert "hard link" in check.text


def test_this_machine_is_checked_for_what_local_stages_are_to_have(store):
    profile = Profile(places={"pretrain": Resources(cpus=5000)})
    checks = {check.name: check for check in diagnose(profile, store.url, wait=0)}
    assert checks["local: machine"].ok is False
    assert "pretrain" in checks["local: machine"].text


def test_a_wrong_profile_is_exit_code_2(tmp_path, store):
    path = tmp_path / "wrong.yaml"
    path.write_text("pools:\n  cpu: {type: slurm, partitoin: debug}\n")
    arguments = ["doctor", "--profile", str(path), "--store", store.url]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    with pytest.raises(UsageError, match="partition"):
        list(diagnose(load_profile(str(path), tmp_path), store.url, wait=0))


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    from artifacts_schema.store import Store

    store = Store.open(str(tmp_path_factory.mktemp("store")))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(PREFECT_API, raising=False)  # A server that an earlier test started.
        return describe_machine(store, "ab")


def compared(here, there, asked=None, earliest=None, latest=None):
    answer = ProbeAnswer(there, earliest or there.time, latest or there.time, "7")
    return {c.name: c for c in compare(answer, here, asked or Resources(), "/store")}


def test_equal_machines_pass(here):
    assert all(check.ok for check in compared(here, here).values())


@pytest.mark.parametrize(
    ("shift", "ok", "words"),
    [(0, True, "within 10 s"), (8, True, "within"), (20, False, "10 s ahead"),
     (-4, True, "within"), (-30, False, "30 s behind")],
)  # fmt: skip
def test_clocks_are_judged_by_the_times_between_which_they_were_read(here, shift, ok, words):
    """Read between 0 and 10 s of ours: a clock that shows 20 is 10 s ahead at least."""
    there = replace(here, time=1000.0 + shift)
    check = compared(here, there, earliest=1000.0, latest=1010.0)["clock"]
    assert check.ok is ok
    assert words in check.text


def test_other_programs_and_libraries_are_named(here):
    stage, own = next(iter(here.stages.items()))
    other = replace(here, stages={**here.stages, stage: "version 99, code 000000000000"})
    check = compared(here, other)["same Ingot"]
    assert (check.ok, check.text) == (
        False, f"{stage}: version 99, code 000000000000, here {own}",
    )  # fmt: skip
    assert compared(here, replace(here, engine="0" * 64))["same Ingot"].ok is False
    pyarrow = here.libraries["pyarrow"]
    older = replace(here, libraries={**here.libraries, "pyarrow": "1.0"})
    assert compared(here, older)["versions"].text == f"pyarrow 1.0 (here {pyarrow})"


def test_torch_for_gpus_is_the_same_version(here):
    torch = here.libraries["torch"].partition("+")[0]
    there = replace(here, libraries={**here.libraries, "torch": f"{torch}+cu128"})
    assert compared(here, there)["versions"].ok


def test_a_node_that_gives_less_than_was_asked_for_is_named(here):
    asked = Resources(cpus=2, gpus=1, memory="2 GB")
    there = replace(here, cores=1, gpus=0, memory=10**9)
    check = compared(here, there, asked)["resources"]
    assert check.ok is False
    assert (
        check.text
        == "cores 1 (asked for 2), GPUs 0 (asked for 1), memory 1.0 GB (asked for 2.0 GB)"
    )
    assert compared(here, replace(here, cores=2, gpus=1, memory=2 * 10**9), asked)["resources"].ok


def test_a_probe_asks_for_little_of_what_the_stages_ask_for():
    places = {
        "default": Resources(pool="gpu", cpus=16, memory="32 GB", time="4 h"),
        "pretrain": Resources(pool="gpu", nodes=4, cpus=64, gpus=8, memory="500 GB", time="2 min"),
    }
    asked = probe_resources("gpu", places)
    assert asked == Resources(pool="gpu", cpus=2, gpus=1, memory="2 GB", time="2 min")
    assert probe_resources("cpu", {}) == Resources(pool="cpu", time="5 min")


def test_the_api_of_prefect_is_asked_without_its_password(file_server):
    assert check_prefect(None) is None
    url = file_server.url.replace("http://", "http://user:secret@")
    words = check_prefect(f"{url}/api")
    assert "404" in words
    assert "secret" not in words
    assert check_prefect("http://127.0.0.1:9/api")


class Silent:
    """A scheduler whose job says nothing, and ends as the test wants it."""

    def __init__(self, state):
        self.state, self.cancelled = state, []

    def submit(self, request):
        return "7"

    def look(self, jobs):
        return {"7": self.state} if self.state is not UNKNOWN else {}

    def cancel(self, job):
        self.cancelled.append(job)

    def output(self, job, folder):
        return ""


@pytest.mark.parametrize(
    ("state", "words", "cancelled"),
    [
        (JobState("waiting", reason="Priority"), "no answer within 100 s: Priority", True),
        (JobState("waiting", "never", "InvalidQOS"), "can never start: InvalidQOS", True),
        (JobState("running"), "no answer within 100 s: running", True),
        (JobState("ended", "failed", "FAILED, 0:53", 0), "printed nothing", False),
        (JobState("ended", "done", "COMPLETED", 0), "without an answer", False),
        (UNKNOWN, "no answer within 100 s: unknown", False),
    ],
)
def test_a_probe_without_an_answer_is_named_and_leaves_no_job(
    store, tmp_path, state, words, cancelled
):
    from artifacts_schema.errors import IngotError

    now, scheduler = [0.0], Silent(state)
    request = probe_request(store, "ab" * 32, Resources(), tmp_path / "jobs")

    def sleep(seconds):
        now[0] += seconds

    with pytest.raises(IngotError, match=words):
        ProbeJob(scheduler, store, request, clock=lambda: now[0], sleep=sleep).run(100)
    assert scheduler.cancelled == (["7"] if cancelled else [])


@pytest.mark.parametrize(
    ("gres", "count"),
    [("(null)", 0), ("gpu:2", 2), ("gpu:h100:8(S:0-1)", 8), ("gpu:a:4,gpu:b:2,shard:64", 6)],
)
def test_gpus_are_counted_in_what_sinfo_shows(gres, count):
    """Forms of Slurm's documentation (gres.conf, sinfo)."""
    assert count_gpus(gres) == count
