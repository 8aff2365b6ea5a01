"""Flow runs as jobs of a real Slurm, by Prefect's worker: submitted once, followed, cancelled."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from faulty_proxy import FaultyProxy

from artifacts_schema.store import Store

pytestmark = pytest.mark.server


def digests(store):
    """(stage, key) → digest of each output."""
    return {
        (one.stage, one.key): {name: output.digest for name, output in one.outputs.items()}
        for one in Store.open(store).manifests()
    }


@pytest.fixture
def gate(tmp_path):
    """A file; until it exists, the last step of a gated run does not end."""
    return tmp_path / "gate"


def start_gated(site, gate, job_variables=None):
    """A run whose last step waits for the gate; returned once that step works in its job."""
    deployment = site.ui.get(f"/deployments/name/{site.form}")["id"]
    body = {
        "parameters": {"overrides": [f"learn.gate={gate}"]},
        "job_variables": job_variables or {},
        "state": {"type": "SCHEDULED"},
    }
    run = site.ui.post(f"/deployments/{deployment}/create_flow_run", body)["id"]
    site.ui.until(lambda: len(list(Path(site.store).glob("work/*/done/*/*.json"))) == 2)
    return run


def test_a_recipe_from_the_form_runs_in_jobs_to_the_digests_of_a_local_run(site, tmp_path):
    site.start_worker()
    run = site.ui.started(site.form)
    end = site.ui.end_of(run)
    assert end["state"]["type"] == "COMPLETED", site.logs(run)
    assert [end["infrastructure_pid"]] == site.jobs(run, None)
    names = site.slurm.output("squeue", "-h", "-t", "all", "-o", "%j").split()
    assert sum(name.startswith("ingot-ui_") for name in names) == 2  # A job for each step.
    site.ui.until(lambda: "learn" in str(site.ui.tasks(run)))
    local, recipe = str(tmp_path / "local"), str(site.ui.folder / "toys.yaml")
    assert site.ui.ingot("run", recipe, "--store", local, "--no-prefect").returncode == 0
    assert digests(site.store) == digests(local)


@pytest.mark.full
def test_deployed_twice_nothing_changes_and_a_changed_pool_changes_alone(site):
    assert set(site.deploy().values()) == {"unchanged"}
    site.profile.write_text(site.profile.read_text().replace("memory: 1 GB", "memory: 2 GB"))
    outcomes = site.deploy()
    changed = {name for name, outcome in outcomes.items() if outcome != "unchanged"}
    assert changed == {f"work pool {site.pool}"}
    variables = site.ui.get(f"/work_pools/{site.pool}")["base_job_template"]["variables"]
    fields = variables["properties"]
    defaults = {name: about["default"] for name, about in fields.items() if about.get("default")}
    assert defaults | {"env": {}} == {
        "partition": "debug",
        "cpus": 1,
        "memory": "2 GB",
        "environment_file": str(site.secrets),
        "warning_seconds": 30,
        "stop_seconds": 90.0,  # The pool's 30, and a minute.
        "env": {},
    }
    assert all(about["title"] and about["description"] for about in fields.values())


@pytest.mark.full
def test_a_form_cannot_choose_another_profile_or_none(site, tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text("jobs: 1\n")
    for profile in (str(other), None):
        reply = site.ui.ask(site.form, profile=profile)
        assert reply.status_code == 409, reply.text
        assert "profile" in reply.json()["detail"]


@pytest.mark.full
def test_a_worker_that_was_killed_and_started_again_follows_its_job(site, gate):
    worker = site.start_worker()
    run = start_gated(site, gate)
    (number,) = site.jobs(run)
    site.kill_worker(worker)
    site.start_worker()
    site.slurm.run("scontrol", "requeuehold", number)  # Only the worker can report this.
    site.ui.until(lambda: site.state(run)[0] == "PENDING")
    assert f"job {number} waits: JobHeld" in site.state(run)[1]
    site.slurm.run("scontrol", "release", number)
    gate.touch()
    assert site.ui.end_of(run)["state"]["type"] == "COMPLETED", site.logs(run)
    assert site.jobs(run, None) == [number]
    assert f"job {number} waits: JobHeld" in site.logs(run)


@pytest.mark.full
def test_two_workers_submit_a_run_once(site):
    for _ in range(2):
        site.start_worker()
    runs = [site.ui.started(site.form, store=f"{site.store}-{number}") for number in range(3)]
    for run in runs:
        assert site.ui.end_of(run)["state"]["type"] == "COMPLETED", site.logs(run)
        assert len(site.jobs(run, None)) == 1


@pytest.mark.full
def test_an_answer_of_sbatch_that_is_lost_makes_no_second_job(site, tmp_path):
    """A program before Slurm's in the path submits the first job and fails, as on a timeout."""
    programs, lost = tmp_path / "bin", tmp_path / "lost"
    programs.mkdir()
    (programs / "sbatch").write_text(
        "#!/bin/bash\n"
        f'if [ -e {lost} ]; then exec /usr/bin/sbatch "$@"; fi\n'
        f'/usr/bin/sbatch "$@" > {lost}\n'
        "echo 'sbatch: error: Socket timed out on send/recv operation' >&2; exit 1\n"
    )
    (programs / "sbatch").chmod(0o755)
    site.start_worker(programs)
    run = site.ui.started(site.form, through="numbers")
    assert site.ui.end_of(run)["state"]["type"] == "COMPLETED", site.logs(run)
    assert site.jobs(run, None) == [lost.read_text().strip()]


@pytest.mark.full
def test_a_run_whose_worker_died_before_it_submitted_is_submitted_by_the_next(site, tmp_path):
    programs, called = tmp_path / "bin", tmp_path / "called"
    programs.mkdir()
    (programs / "sbatch").write_text(f"#!/bin/bash\ntouch {called}; sleep 600\n")
    (programs / "sbatch").chmod(0o755)
    worker = site.start_worker(programs)
    run = site.ui.started(site.form, through="numbers")
    site.ui.until(called.exists)
    site.kill_worker(worker)
    assert site.state(run)[0] == "PENDING"
    site.start_worker()
    site.ui.until(lambda: site.state(run)[0] == "COMPLETED", 200)
    assert len(site.jobs(run, None)) == 1


@pytest.mark.full
def test_a_cancelled_run_that_waits_leaves_the_queue_within_seconds(site):
    for node in ("n1", "n2"):
        site.slurm.run("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=test")
    try:
        site.start_worker()
        run = site.ui.started(site.form)
        site.ui.until(lambda: site.state(run)[1].startswith("job "))
        (number,) = site.jobs(run)
        site.cancel(run)
        site.ui.until(lambda: not site.jobs(run), 15)
        assert site.ui.end_of(run)["state"]["type"] == "CANCELLED"
        assert f"job {number} waits: " in site.logs(run)
    finally:
        for node in ("n1", "n2"):
            site.slurm.run("scontrol", "update", f"NodeName={node}", "State=RESUME")


@pytest.mark.full
def test_cancelling_a_run_ends_its_steps_and_the_next_run_continues(site, gate):
    site.start_worker()
    run = start_gated(site, gate)
    site.cancel(run)
    assert site.ui.end_of(run)["state"]["type"] == "CANCELLED"
    site.ui.until(lambda: not site.slurm.output("squeue", "-h", "-o", "%i").split(), 30)
    gate.touch()
    again = site.ui.end_of(site.ui.started(site.form, overrides=[f"learn.gate={gate}"]))
    assert again["state"]["type"] == "COMPLETED"
    assert "2 shards done" in site.ui.artifacts(again["id"])["plan-toys"]


@pytest.mark.full
@pytest.mark.parametrize("how", ["requeue", "warning"])
def test_a_run_that_starts_again_leaves_the_jobs_of_its_steps_alone(site, gate, how):
    site.start_worker()
    run = start_gated(site, gate)
    (number,) = site.jobs(run)
    steps = set(site.slurm.output("squeue", "-h", "-o", "%i").split()) - {number}
    if how == "requeue":
        site.slurm.run("scontrol", "requeue", number)
    else:  # What Slurm sends before the limit.
        site.slurm.run("scancel", "--batch", "--signal=USR2", number)
    site.ui.until(
        lambda: site.slurm.output("squeue", "-h", "-j", number, "-o", "%T") != "RUNNING\n"
    )
    assert set(site.slurm.output("squeue", "-h", "-t", "R", "-o", "%i").split()) >= steps
    gate.touch()
    assert site.ui.end_of(run)["state"]["type"] == "COMPLETED", site.logs(run)
    assert site.jobs(run, None) == [number]


@pytest.mark.full
def test_the_work_goes_on_where_the_node_cannot_reach_the_api(site):
    site.secrets.write_text("PREFECT_API_AUTH_STRING=wrong:password\n")
    site.start_worker()
    run = site.ui.started(site.form)
    end = site.ui.end_of(run)
    assert end["state"]["type"] == "COMPLETED", end["state"]
    assert "HTTP 401" in end["state"]["message"]
    assert len(digests(site.store)) == 2


@pytest.mark.full
def test_an_api_that_goes_away_during_a_run_loses_nothing(site, gate):
    site.start_worker()
    with FaultyProxy(site.ui.ui) as proxy:
        variables = {"env": {"PREFECT_API_URL": f"{proxy.url}/api"}}
        run = start_gated(site, gate, variables)
        site.ui.until(lambda: site.state(run)[0] == "RUNNING")
    gate.touch()
    end = site.ui.end_of(run)
    assert end["state"]["type"] == "COMPLETED", end["state"]
    assert len(digests(site.store)) == 2
    (number,) = site.jobs(run, None)
    assert f"job {number} ended well" in end["state"]["message"]


@pytest.mark.full
def test_an_error_is_told_where_the_node_cannot_reach_the_api(site, tmp_path):
    site.secrets.write_text("PREFECT_API_AUTH_STRING=wrong:password\n")
    site.start_worker()
    run = site.ui.started(site.form, through="numbers")
    (tmp_path / "store").write_text("no folder")
    end = site.ui.end_of(run)
    assert end["state"]["type"] == "FAILED"
    assert str(tmp_path / "store") in end["state"]["message"]


@pytest.mark.full
def test_the_password_is_nowhere(site, gate):
    site.start_worker()
    run = start_gated(site, gate)
    password = site.ui.password.partition(":")[2]
    numbers = site.slurm.output("squeue", "-h", "-o", "%i").split()
    assert len(numbers) == 2
    shown = [site.slurm.output("scontrol", "show", "job", "-dd", number) for number in numbers]
    shown += [site.slurm.output("scontrol", "write", "batch_script", one, "-") for one in numbers]
    shown.append(site.slurm.output("ps", "-eo", "args"))
    stages = 0
    for folder in os.listdir("/proc"):
        try:
            command = Path(f"/proc/{folder}/cmdline").read_text()
            environment = Path(f"/proc/{folder}/environ").read_text()
        except (OSError, UnicodeDecodeError):
            continue
        if "stages\0ui_learn" in command:
            stages += 1
            assert password not in environment
    assert stages
    gate.touch()
    assert site.ui.end_of(run)["state"]["type"] == "COMPLETED"
    shown += [site.logs(run), str(site.ui.get(f"/work_pools/{site.pool}"))]
    home = Path(site.ui.environment["INGOT_HOME"])
    files = [*home.rglob("*"), *site.folder.rglob("*"), *(site.slurm.folder / "log").iterdir()]
    for file in files:
        if file.is_file() and file not in (site.secrets, site.ui.password_file):
            shown.append(file.read_text(errors="replace"))
    assert "PREFECT__FLOW_RUN_ID" in "".join(shown)
    assert not [text[:100] for text in shown if password in text]


@pytest.mark.full
@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_file_of_secrets_that_others_can_read_is_refused_with_what_to_do(site, mode):
    site.start_worker()
    site.secrets.chmod(mode)
    run = site.ui.started("stage/ui_numbers@site")
    end = site.ui.end_of(run)
    assert end["state"]["type"] == "CRASHED"
    assert f"chmod 600 {site.secrets}" in end["state"]["message"]
    assert not site.jobs(run, None)


@pytest.mark.full
def test_a_job_that_can_never_start_ends_the_run_with_slurms_reason(site):
    text = site.profile.read_text().replace("memory: 1 GB", "memory: 1 GB, time: 2 h")
    site.profile.write_text(text.replace("partition: debug", "partition: small", 1))
    outcomes = site.deploy()
    assert {name for name, one in outcomes.items() if one != "unchanged"} == {
        "work pool ingot-site"
    }
    site.start_worker()
    end = site.ui.end_of(site.ui.started(site.form))
    assert end["state"]["type"] == "CRASHED"
    assert "can never start: PartitionTimeLimit" in end["state"]["message"]
    site.ui.until(lambda: not site.jobs(end["id"]), 15)


@pytest.mark.full
def test_a_worker_stops_on_a_signal_and_its_jobs_go_on(site, gate):
    worker = site.start_worker()
    run = start_gated(site, gate)
    worker.send_signal(signal.SIGTERM)
    worker.wait(60)
    gate.touch()
    assert site.ui.end_of(run)["state"]["type"] == "COMPLETED"
