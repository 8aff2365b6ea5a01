"""What Slurm says before any job is sent: commands, controller, partition, account, each stage.

`sbatch --test-only` finds what no node can give, and settings that do not exist; limits of a
partition it lets pass (22.05.8: a job over the time limit would wait for ever), so these are read
from `scontrol show partition`, whose fields are the same in all versions.
"""

from __future__ import annotations

import getpass
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from artifacts_schema.config import format_bytes
from artifacts_schema.errors import UsageError
from flows.recipe.dispatch import Check
from flows.recipe.profile import Resources
from pools.cluster_job import JobRequest
from pools.slurm import client
from pools.slurm.client import SlurmAway, run_command
from pools.slurm.script import MEGABYTE, render_script, stage_job
from pools.slurm.settings import SlurmSettings

COMMANDS = ("sbatch", "squeue", "scancel", "scontrol", "sinfo")
OPTIONAL = "sacct"
_TIME = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")
_GPUS = re.compile(r"gpu(?::[^:(,]+)?:(\d+)")


def check_slurm(settings: SlurmSettings, places: Mapping[str, Resources]) -> Iterator[Check]:
    """All of it; ends early where Slurm does not answer."""
    missing = [name for name in COMMANDS if shutil.which(name) is None]
    if missing:
        text = f"no {', '.join(missing)} in PATH"
        yield Check("commands", False, text, "run it where Slurm's commands are installed")
        return
    version = run_command("sbatch", "--version").strip()
    more = "" if shutil.which(OPTIONAL) else f"; no {OPTIONAL}, so purged jobs are not found"
    yield Check("commands", True, f"{version}{more}")
    try:
        client.read_queue()
    except (SlurmAway, UsageError) as error:
        yield Check("queue", False, error.what, "is slurmctld up, and this machine a client of it?")
        return
    yield Check("queue", True, "squeue answers")
    partition = None
    for check, fields in _check_partition(settings):
        partition = fields
        yield check
    yield from _check_account(settings)
    if partition is not None:
        for stage, resources in places.items():
            yield check_stage(stage, resources, settings, partition)


def _partitions() -> dict[str, dict[str, str]]:
    lines = run_command("scontrol", "show", "partition", "-o").splitlines()
    rows = [
        dict(part.partition("=")[::2] for part in line.split() if "=" in part) for line in lines
    ]
    return {row["PartitionName"]: row for row in rows if "PartitionName" in row}


def _check_partition(settings: SlurmSettings) -> Iterator[tuple[Check, dict[str, str] | None]]:
    known = _partitions()
    names = [settings.partition] if settings.partition else []
    names = names or [name for name, row in known.items() if row.get("Default") == "YES"]
    if not names:
        text = "none is named, and Slurm has no default"
        yield Check("partition", False, text, f"set partition: {', '.join(known)}"), None
        return
    for name in names[0].split(","):
        if name not in known:
            hint = f"Slurm has {', '.join(sorted(known)) or 'none'}"
            yield Check("partition", False, f"no partition '{name}'", hint), None
        elif known[name].get("State") != "UP":
            text = f"{name} is {known[name].get('State')}"
            yield Check("partition", False, text, "ask the administrator, or name another"), None
        else:
            row = known[name]
            text = f"{name} is up: {row.get('TotalNodes')} nodes, time limit {row.get('MaxTime')}"
            yield Check("partition", True, text), row


def _check_account(settings: SlurmSettings) -> Iterator[Check]:
    """Account and QOS among the user's associations, where accounting answers."""
    wanted = {"account": settings.account, "qos": settings.qos}
    if not any(wanted.values()):
        return
    try:
        printed = run_command(
            "sacctmgr", "-n", "-P", "show", "assoc", f"user={getpass.getuser()}",
            "format=account,qos",
        )  # fmt: skip
    except (SlurmAway, UsageError):
        yield Check("account", None, "accounting does not answer: account and QOS are not checked")
        return
    rows = [line.split("|") for line in printed.splitlines() if "|" in line]
    known = {
        "account": {row[0] for row in rows},
        "qos": {name for row in rows for name in row[1].split(",") if name},
    }
    for kind, name in wanted.items():
        if name is not None and name not in known[kind]:
            hint = f"yours are {', '.join(sorted(known[kind])) or 'none'}"
            yield Check("account", False, f"no {kind} '{name}' for this user", hint)
            return
    yield Check("account", True, ", ".join(f"{k} {v}" for k, v in wanted.items() if v))


# What each stage asks for ------------------------------------------------------------------------


def check_stage(
    stage: str, resources: Resources, settings: SlurmSettings, partition: Mapping[str, str]
) -> Check:
    """Whether a job with these resources could ever start in a partition."""
    name, wish = f"stage {stage}", resources.describe()
    problem = _over_limit(resources, partition) or _no_nodes(resources, partition)
    if problem:
        return Check(name, False, problem, f"change resources.{stage}, or the pool's partition")
    memory = max(resources.memory_bytes, default=None)
    request = JobRequest(
        stage, "0" * 64, "ingot doctor", "", "", (), resources, memory, Path("/tmp")
    )  # fmt: skip
    try:
        run_command(
            "sbatch", "--test-only", text=render_script(stage_job(request, settings), settings)
        )
    except (SlurmAway, UsageError) as error:
        return Check(name, False, f"{wish}: {error.what}", f"change resources.{stage}")
    return Check(name, True, f"{wish}: sbatch --test-only accepts it")


def _over_limit(resources: Resources, partition: Mapping[str, str]) -> str | None:
    most_minutes = _minutes(partition.get("MaxTime", ""))
    place = f"of partition {partition.get('PartitionName')}"
    minutes, nodes = resources.minutes, partition.get("MaxNodes", "")
    if minutes is not None and most_minutes is not None and minutes > most_minutes:
        return f"{resources.time} is over the time limit {place}: {partition['MaxTime']}"
    if nodes.isdigit() and resources.nodes > int(nodes):
        return f"{resources.nodes} nodes, and a job {place} has {nodes} at most"
    memory, limit = max(resources.memory_bytes, default=0), partition.get("MaxMemPerNode", "")
    if limit.isdigit() and memory > int(limit) << 20:
        return f"{format_bytes(memory)} is over the limit {place}: {limit} MB on a node"
    return None


def _no_nodes(resources: Resources, partition: Mapping[str, str]) -> str | None:
    """Why the partition has too few nodes that are large enough; the largest is named."""
    name = partition["PartitionName"]
    printed = run_command("sinfo", "-h", "-N", "-p", name, "-o", "%N|%T|%c|%m|%G")
    nodes = [line.split("|", 4) for line in printed.splitlines() if line.count("|") >= 4]
    sizes = [
        (int(cpus.rstrip("+")), int(memory.rstrip("+")) << 20, count_gpus(gres))
        for _, _, cpus, memory, gres in nodes
    ]
    memory = max(resources.memory_bytes, default=0) // MEGABYTE << 20  # Slurm's M is 2**20 bytes.
    wanted = (resources.cpus or 1, memory, resources.gpus)
    fit = [one for one in sizes if all(map(int.__ge__, one, wanted))]
    if len(fit) >= resources.nodes:
        return None
    most = [max((one[i] for one in sizes), default=0) for i in range(3)]
    has = f"{most[0]} CPUs, {format_bytes(most[1])}, {most[2]} GPUs"
    return (
        f"{resources.describe()}: {len(fit)} of {len(sizes)} nodes of partition {name} are large "
        f"enough; there are at most {has} on a node"
    )


def count_gpus(gres: str) -> int:
    """GPUs in what sinfo shows of a node, as `gpu:h100:8(S:0-1),shard:16`."""
    return sum(map(int, _GPUS.findall(gres)))


def _minutes(text: str) -> int | None:
    """Minutes of a limit as `7-00:00:00`, `01:00:00`; None for UNLIMITED."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return days * 1440 + hours * 60 + minutes + (seconds > 0)
