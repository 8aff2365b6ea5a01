"""A Dask cluster that Ingot starts, and the folder by which stages find it.

Who reaches a scheduler can run programs on its workers, and a port of loopback is open to every
user of a machine. So such a cluster speaks TLS alone, with a certificate of its own that serves as
the key to it: `distributed.security.Security.temporary`, written into a folder of its owner alone.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from artifacts_schema.config import check_scheduler
from artifacts_schema.errors import UsageError
from artifacts_schema.files import open_regular

SCHEDULER_FILE = "scheduler.json"
_PARTS = ("ca", "certificate", "key")
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Scheduler:
    """Where a scheduler is reached, and with which certificates."""

    address: str
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    @classmethod
    def load(cls, path: str, *, allow_plain_tcp: bool) -> Scheduler:
        """The scheduler that a file names: ours, or of `dask scheduler --scheduler-file`.

        UsageError for a file that names none, or one that is not protected.
        """
        try:
            with open_regular(path) as file:
                plain = json.loads(file.read(_MOST_BYTES))
            address, tls = str(plain["address"]), dict(plain.get("tls") or {})
            names = {part: str(tls[part]) for part in _PARTS} if tls else {}
        except FileNotFoundError:
            hint = "start the cluster, or give the path of its file"
            raise UsageError("there is no scheduler file", where=path, hint=hint) from None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise UsageError(f"no scheduler is named there: {error!r}", where=path) from error
        except OSError as error:
            raise UsageError(f"it cannot be read: {error.strerror}", where=path) from error
        if any(name != os.path.basename(name) for name in names.values()):
            raise UsageError("certificates lie beside the scheduler file", where=path)
        try:
            check_scheduler(address, allow_plain_tcp=allow_plain_tcp)
        except ValueError as error:
            raise UsageError(str(error), where=path) from error
        folder = Path(path).parent
        return cls(address, **{part: folder / name for part, name in names.items()})

    def save(self, folder: Path) -> Path:
        """Write the file that `load` reads; what it names lies in `folder` already."""
        paths = {part: getattr(self, part) for part in _PARTS}
        tls = {part: path.name for part, path in paths.items() if path is not None}
        path = folder / SCHEDULER_FILE
        _write_private(path, json.dumps({"address": self.address, "tls": tls}).encode())
        return path

    def security(self) -> Any:
        """For Dask's client; what Dask's own configuration says where no certificate is named."""
        from distributed.security import Security

        if self.ca is None:
            return Security()
        return Security(
            require_encryption=True,
            tls_ca_file=str(self.ca),
            tls_client_cert=str(self.certificate),
            tls_client_key=str(self.key),
        )


@dataclass(frozen=True)
class ClusterPlan:
    """What to start: `most` workers at most, at least `least`, one process and thread each."""

    where: str
    least: int
    most: int
    memory: int | None = None
    """Bytes of a worker; None: an equal share of this machine's."""
    interface: str | None = None
    """Network interface by which nodes reach each other."""
    partition: str | None = None
    account: str | None = None
    time: str = "12:00:00"
    directives: Sequence[str] = ()
    """More options of sbatch."""


NO_PROFILE = "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED"
"""Dask's profiler looks at a worker's stack every 10 ms: a tenth of the CPU time of `signals`."""


def start_cluster(plan: ClusterPlan, folder: Path) -> Any:
    """Start a scheduler here, workers by `plan`, and write the files that stages need.

    Returns a cluster of Dask's, ended by `close`. UsageError where a library is missing or another
    cluster's files are there.
    """
    if plan.where == "slurm" and find_spec("dask_jobqueue") is None:
        raise _missing("dask-slurm")
    import dask

    dask.config.set({"distributed.worker.profile.enabled": False})  # Local workers take it over.
    security, paths = make_certificates(folder)
    try:
        make = _slurm_cluster if plan.where == "slurm" else _local_cluster
        cluster = make(plan, folder, security)
        if plan.most > plan.least:
            cluster.adapt(minimum=plan.least, maximum=plan.most)
        else:
            cluster.scale(plan.most)
        Scheduler(cluster.scheduler_address, **paths).save(folder)
    except BaseException:
        remove_files(folder)
        raise
    return cluster


def make_certificates(folder: Path) -> tuple[Any, dict[str, Path]]:
    """Certificates for a new cluster, as Dask holds them, and their files in `folder`, by part.

    UsageError without the extra `dask`, where another cluster's files are there, or where others
    can enter the folder.
    """
    try:
        from distributed.security import Security
    except ImportError:
        raise _missing("dask") from None
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder.stat().st_mode & 0o077:
        raise UsageError(
            "others can enter the folder of the certificates",
            where=str(folder),
            hint="name one that does not exist yet",
        )
    if (folder / SCHEDULER_FILE).exists():
        raise UsageError(
            "a cluster that was started here may still run",
            where=str(folder),
            hint=f"end it, or remove {SCHEDULER_FILE} if it is gone",
        )
    security = Security.temporary()
    texts = {"ca": "tls_ca_file", "certificate": "tls_client_cert", "key": "tls_client_key"}
    paths = {part: folder / f"{part}.pem" for part in texts}
    try:
        for part, name in texts.items():
            _write_private(paths[part], getattr(security, name).encode())
    except BaseException:
        remove_files(folder)
        raise
    return security, paths


def _missing(extra: str) -> UsageError:
    return UsageError(
        "a cluster needs a library that is not installed", hint=f"pip install 'ingot[{extra}]'"
    )


def _local_cluster(plan: ClusterPlan, folder: Path, security: Any) -> Any:
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=0,
        threads_per_worker=1,
        memory_limit=plan.memory or "auto",
        host="127.0.0.1",
        protocol="tls://",
        security=security,
        dashboard_address=None,
        local_directory=str(folder / "workers"),
        worker_dashboard_address=None,
    )


def _slurm_cluster(plan: ClusterPlan, folder: Path, security: Any) -> Any:
    """One job for each worker: an adaptive cluster gives nodes back one by one."""
    from dask_jobqueue.slurm import SLURMCluster

    if plan.memory is None:
        raise UsageError("Slurm must know how much memory a worker needs", hint="--memory 8GiB")
    scheduler: dict[str, Any] = {"dashboard": False, "dashboard_address": None}
    (folder / "logs").mkdir(exist_ok=True)
    return SLURMCluster(
        queue=plan.partition,
        account=plan.account,
        walltime=plan.time,
        cores=1,
        processes=1,
        memory=f"{plan.memory}B",
        interface=plan.interface,
        security=security,
        protocol="tls://",
        shared_temp_directory=str(folder),
        log_directory=str(folder / "logs"),
        python=sys.executable,
        job_extra_directives=list(plan.directives),
        job_script_prologue=[f"export {NO_PROFILE}=False"],
        scheduler_options=scheduler,
        worker_extra_args=["--no-dashboard"],
    )


def remove_files(folder: Path) -> None:
    """The cluster has ended: its files name none any more."""
    for name in (SCHEDULER_FILE, *(f"{part}.pem" for part in _PARTS)):
        (folder / name).unlink(missing_ok=True)


def _write_private(path: Path, data: bytes) -> None:
    """For the owner alone, from its first byte."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)
