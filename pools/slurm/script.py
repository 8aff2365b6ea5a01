"""The batch script of a step: warned before its limit it saves, and queues itself again.

USR2 comes from Slurm before the limit (`--signal=B:`, to the shell alone: NCCL takes USR1) and
means "save, then again"; TERM comes from a person, the run, or preemption, and means "save and
end". The shell passes on USR2 for both, since srun would kill its processes for TERM, and waits.
Exit code 75 says that the same key continues; one above 128, that a process had no handler yet.

srun starts one process a node. That of node 0 takes the lease and starts torchrun, the others join
it (`--machine`); they find each other through the folder of the run in the store.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator

from artifacts_schema.errors import EXIT_RESUME
from artifacts_schema.identity import short
from pools.cluster_job import JobRequest
from pools.slurm.settings import SlurmSettings
from stages.engine.spec import THREAD_VARIABLES

MEGABYTE = 1_000_000
OUTPUT = "job-%j.txt"


def render_script(request: JobRequest, settings: SlurmSettings) -> str:
    """The script of one job. Everything from outside is quoted for the shell."""
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH {option}" for option in sbatch_options(request, settings)),
        "",
        f"export {' '.join(f'{name}=1' for name in THREAD_VARIABLES)} PYTHONHASHSEED=0",
        *(
            f"export {name}={shlex.quote(value)}"
            for name, value in sorted(settings.environment.items())
        ),
        *settings.setup,
    ]
    if settings.environment_file is not None:
        lines.append(f"set -a; . {shlex.quote(settings.environment_file)}; set +a")
    stopped = f'[ "$code" -eq {EXIT_RESUME} ] || [ "$code" -gt 128 ]'
    lines += [
        "again=0",
        "trap 'again=1; kill -USR2 \"$child\"' USR2",
        "trap 'again=0; kill -USR2 \"$child\"' TERM",
        f"{command(request, settings)} &",
        "child=$!",
        'wait "$child"; code=$?',
        'while kill -0 "$child" 2>/dev/null; do wait "$child"; code=$?; done',
        f'if [ "$again" -eq 1 ] && {{ {stopped}; }}; then scontrol requeue "$SLURM_JOB_ID"; fi',
        'exit "$code"',
    ]
    return "\n".join(lines) + "\n"


def sbatch_options(request: JobRequest, settings: SlurmSettings) -> Iterator[str]:
    """The options of sbatch in the order of its manual, long forms only."""
    resources = request.resources
    yield f"--job-name=ingot-{request.stage}-{short(request.key)}"
    yield f'--comment="{request.tag}"'
    yield f"--output={request.folder / OUTPUT}"
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
    if request.memory is not None:
        yield f"--mem={max(1, request.memory // MEGABYTE)}M"
    if resources.minutes is not None:
        yield f"--time={resources.minutes}"
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
