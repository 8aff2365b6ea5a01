"""The batch script of a job: what it asks for, and what it does with signals and exit codes."""

import dataclasses
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from flows.recipe.profile import Resources
from pools.cluster_job import JobRequest
from pools.slurm.script import render_script, stage_job
from pools.slurm.settings import SlurmSettings

REQUEST = JobRequest(
    stage="pretrain",
    key="ab" * 32,
    tag="ingot store=12ab key=abab",
    store="/shared/my store",
    spec="/shared/my store/work/spec.json",
    flags=("--force",),
    resources=Resources(pool="gpu", nodes=2, gpus=8, cpus=64, memory="500 GB", time="24 h"),
    memory=500 * 10**9,
    folder=Path("/shared/jobs"),
)
ALONE = dataclasses.replace(REQUEST, resources=Resources(cpus=4), memory=None)


def script_of(request, settings):
    return render_script(stage_job(request, settings), settings)


def options(script):
    return [line.removeprefix("#SBATCH ") for line in script.splitlines() if "#SBATCH" in line]


def test_what_is_asked_for():
    settings = SlurmSettings(partition="gpu", account="llm", qos="long", options=("--exclusive",))
    assert options(script_of(REQUEST, settings)) == [
        "--job-name=ingot-pretrain-abababababab",
        '--comment="ingot store=12ab key=abab"',
        "--output=/shared/jobs/job-%j.txt",
        "--open-mode=append",
        "--requeue",
        "--signal=B:USR2@120",
        "--partition=gpu",
        "--account=llm",
        "--qos=long",
        "--nodes=2",
        "--ntasks-per-node=1",
        "--cpus-per-task=64",
        "--gpus-per-node=8",
        "--mem=500000M",
        "--time=1440",
        "--exclusive",
    ]


def line_of(script, word):
    (line,) = [line for line in script.splitlines() if line.endswith(" &")]
    assert word in line
    return line


def test_several_nodes_run_by_srun_each_with_its_number():
    line = line_of(script_of(REQUEST, SlurmSettings(python="/opt/py thon")), "srun")
    assert line.startswith("srun --kill-on-bad-exit=1 --cpus-per-task=64 bash -c 'exec ")
    assert '--machine "$SLURM_NODEID"' in line
    assert "'/shared/my store'" in line.replace("'\"'\"'", "'")


@pytest.mark.parametrize("runtime", ["pyxis", "apptainer"])
def test_containers(runtime):
    """Rendered after the manuals of pyxis and apptainer; never started."""
    container = {"runtime": runtime, "image": "/shared/in got.sif", "mounts": ["/shared"]}
    settings = SlurmSettings.parse({"container": container, "python": "python"}, where="here")
    line = line_of(script_of(ALONE, settings), "in got.sif")
    if runtime == "pyxis":
        assert "--container-image='/shared/in got.sif' --container-mounts=/shared python" in line
    else:
        assert line.startswith("apptainer exec --bind /shared '/shared/in got.sif' python -P -m")


def test_values_are_quoted_for_the_shell(tmp_path):
    proof = tmp_path / "proof"
    settings = SlurmSettings(environment={"EVIL": f"$(touch {proof}); `touch {proof}`"})
    script = tmp_path / "job.sh"
    script.write_text(script_of(dataclasses.replace(ALONE, store=f"; touch {proof}"), settings))
    subprocess.run(["bash", str(script)], cwd=tmp_path, capture_output=True, check=False)
    assert not proof.exists()


def run_with(tmp_path, secrets):
    """A step's script that reads `secrets`, with a stage that prints two variables."""
    stage = tmp_path / "stage"
    stage.write_text('#!/bin/bash\necho "key=$PREFECT_API_KEY other=$OTHER"\n')
    stage.chmod(0o755)
    settings = SlurmSettings(python=str(stage), environment_file=str(secrets))
    script = script_of(ALONE, settings)
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)


def test_a_step_gets_the_variables_of_the_environment_file_but_no_credential(tmp_path):
    secrets = tmp_path / "my secrets.sh"
    secrets.write_text("PREFECT_API_KEY=xyz\nOTHER=1\n")
    secrets.chmod(0o600)
    assert run_with(tmp_path, secrets).stdout == "key= other=1\n"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, None])
def test_an_environment_file_that_others_can_read_or_that_is_missing_ends_the_job(tmp_path, mode):
    secrets = tmp_path / "secrets.sh"
    if mode is not None:
        secrets.write_text("OTHER=1\n")
        secrets.chmod(mode)
    done = run_with(tmp_path, secrets)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert str(secrets) in done.stderr


@pytest.fixture
def start_job(tmp_path):
    """`start_job(shell)`: the script, with stand-ins for the stage and for scontrol."""
    stand_ins = tmp_path / "bin"
    stand_ins.mkdir()

    def start(stage):
        for name, text in {"python": stage, "scontrol": 'echo "$@" >> requeued'}.items():
            (stand_ins / name).write_text(f"#!/bin/bash\n{text}\n")
            (stand_ins / name).chmod(0o755)
        script = tmp_path / "job.sh"
        script.write_text(script_of(ALONE, SlurmSettings(python=str(stand_ins / "python"))))
        path = f"{stand_ins}:{os.environ['PATH']}"
        environment = {"PATH": path, "SLURM_JOB_ID": "42"}
        return subprocess.Popen(["bash", str(script)], cwd=tmp_path, env=environment)

    return start


@pytest.mark.parametrize("code", [0, 1, 2, 75])
def test_an_end_by_itself_asks_for_no_other_turn(start_job, tmp_path, code):
    assert start_job(f"exit {code}").wait(30) == code
    assert not (tmp_path / "requeued").exists()


@pytest.mark.parametrize(
    ("number", "stage", "again"),
    [
        (signal.SIGUSR2, "trap 'sleep 0.2; echo > saved; exit 75' USR2", True),
        (signal.SIGTERM, "trap 'sleep 0.2; echo > saved; exit 75' USR2", False),
        (signal.SIGUSR2, "trap 'echo > saved; exit 1' USR2", False),
        (signal.SIGUSR2, "trap 'echo > saved; trap - USR2; kill -USR2 $$' USR2", True),
    ],
)
def test_a_signal_is_passed_on_and_what_it_means_decides(start_job, tmp_path, number, stage, again):
    job = start_job(f"{stage}; echo > started; while :; do sleep 0.05; done")
    while not (tmp_path / "started").exists():
        assert job.poll() is None
        time.sleep(0.02)
    job.send_signal(number)
    code = job.wait(30)
    assert code in (75, 1, 140)
    assert (tmp_path / "saved").exists()
    requeued = tmp_path / "requeued"
    assert requeued.exists() == again
    assert not again or requeued.read_text() == "requeue 42\n"
