"""The batch script of a step: warned before its limit it saves, and queues itself again.

USR2 comes from Slurm before the limit (`--signal=B:`, to the shell alone: NCCL takes USR1) and
means "save, then again"; TERM comes from a person, the run, or preemption, and means "save and
end". The shell passes on USR2 for both, since srun would kill its processes for TERM, and waits.
Exit code 75 says that the same key continues; one above 128, that a process had no handler yet.

srun starts one process a node. That of node 0 takes the lease and starts torchrun, the others join
it (`--machine`); they find each other through the folder of the run in the store.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from artifacts_schema.errors import EXIT_RESUME
from artifacts_schema.identity import short
from flows.recipe.profile import Resources
from pools.cluster_job import JobRequest
from pools.slurm.settings import SlurmSettings
from stages.engine.spec import NOT_FOR_STAGES, THREAD_VARIABLES

MEGABYTE = 1_000_000
OUTPUT = "job-%j.txt"
_NO_NAME = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class BatchJob:
    """One batch job, of a step or of a run: what it is called, runs and asks for."""

    name: str
    comment: str
    """Finds it again in a list of jobs."""
    folder: Path
    """Where its output lies; the nodes see it."""
    command: str
    """A line for the shell, quoted."""
    resources: Resources
    memory: int | None = None
    """Bytes on each node."""
    environment: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    """Of sbatch, before those of the pool."""
    reads_credentials: bool = False
    """Whether it keeps the API's credentials that the environment file sets."""


def stage_job(request: JobRequest, settings: SlurmSettings) -> BatchJob:
    """The job of a step."""
    return BatchJob(
        name=f"ingot-{request.stage}-{short(request.key)}",
        comment=request.tag,
        folder=request.folder,
        command=command(request, settings),
        resources=request.resources,
        memory=request.memory,
    )


def render_script(job: BatchJob, settings: SlurmSettings) -> str:
    """The script of one job. Everything from outside is quoted for the shell."""
    environment = {**settings.environment, **job.environment}
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH {option}" for option in sbatch_options(job, settings)),
        "",
        f"export {' '.join(f'{name}=1' for name in THREAD_VARIABLES)} PYTHONHASHSEED=0",
        *(f"export {name}={shlex.quote(value)}" for name, value in sorted(environment.items())),
        *settings.setup,
    ]
    if settings.environment_file is not None:
        lines += _read_environment(settings.environment_file)
        if not job.reads_credentials:
            lines.append(f"unset {' '.join(NOT_FOR_STAGES)}")
    stopped = f'[ "$code" -eq {EXIT_RESUME} ] || [ "$code" -gt 128 ]'
    lines += [
        "again=0",
        # `$!`: a signal may come before the shell has set `child`, and would reach nobody.
        "trap 'again=1; kill -USR2 \"$!\"' USR2",
        "trap 'again=0; kill -USR2 \"$!\"' TERM",
        f"{job.command} &",
        "child=$!",
        'wait "$child"; code=$?',
        'while kill -0 "$child" 2>/dev/null; do wait "$child"; code=$?; done',
        f'if [ "$again" -eq 1 ] && {{ {stopped}; }}; then scontrol requeue "$SLURM_JOB_ID"; fi',
        'exit "$code"',
    ]
    return "\n".join(lines) + "\n"


def _read_environment(file: str) -> Iterator[str]:
    """Lines that read a file of variables, unless it is missing or others can read it."""
    path = shlex.quote(file)
    yield f'[ -r {path} ] || {{ echo "error: cannot read" {path} >&2; exit 2; }}'
    yield (
        f'[ -z "$(find -L {path} -maxdepth 0 -perm /077)" ] || '
        f'{{ echo "error: other users can read" {path}": chmod 600" >&2; exit 2; }}'
    )
    yield f"set -a; . {path}; set +a"


def sbatch_options(job: BatchJob, settings: SlurmSettings) -> Iterator[str]:
    """The options of sbatch in the order of its manual, long forms only."""
    resources = job.resources
    yield f"--job-name={_NO_NAME.sub('-', job.name)}"
    yield f'--comment="{job.comment}"'
    yield f"--output={job.folder / OUTPUT}"
    yield "--open-mode=append"
    yield "--requeue"
    yield f"--signal=B:USR2@{settings.warning_seconds}"
    for name in ("partition", "account", "qos"):
        if (value := getattr(settings, name)) is not None:
            yield f"--{name}={value}"
    yield f"--nodes={resources.nodes}"
    yield "--ntasks-per-node=1"
    if resources.cpus is not None:
        yield f"--cpus-per-task={resources.cpus}"
    if resources.gpus:
        yield f"--gpus-per-node={resources.gpus}"
    if job.memory is not None:
        yield f"--mem={max(1, job.memory // MEGABYTE)}M"
    if resources.minutes is not None:
        yield f"--time={resources.minutes}"
    yield from job.options
    yield from settings.options


def command(request: JobRequest, settings: SlurmSettings) -> str:
    """The line that runs the stage: by srun on several nodes or in a container of pyxis."""
    text = shlex.join([settings.python or sys.executable, *request.arguments()])
    container, nodes = settings.container, request.resources.nodes
    if nodes > 1:
        text = f'{text} --machine "$SLURM_NODEID"'
    if container is not None and container.runtime == "apptainer":
        gpus = "--nv " if request.resources.gpus else ""
        binds = "".join(f"--bind {shlex.quote(mount)} " for mount in container.mounts)
        text = f"apptainer exec {gpus}{binds}{shlex.quote(container.image)} {text}"
    pyxis = container is not None and container.runtime == "pyxis"
    if nodes == 1 and not pyxis:
        return text
    options = ["--kill-on-bad-exit=1"]
    if request.resources.cpus is not None:  # Not inherited from sbatch since 22.05.
        options.append(f"--cpus-per-task={request.resources.cpus}")
    if pyxis and container is not None:
        options.append(f"--container-image={shlex.quote(container.image)}")
        if container.mounts:
            options.append(f"--container-mounts={shlex.quote(','.join(container.mounts))}")
    if nodes == 1:
        return f"srun {' '.join(options)} {text}"
    return f"srun {' '.join(options)} bash -c {shlex.quote(f'exec {text}')}"
