"""A Slurm of two nodes on this machine's loopback: munge, slurmctld and two slurmd, ended with it.

Debian's slurmd takes `-N`, so several run on one machine. Each node claims four processors and two
GPUs, which are twins of /dev/null. Written after Slurm's documentation (slurm.conf, gres.conf,
slurmdbd.conf).
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "setpriv", "mknod")
ACCOUNTING = ("slurmdbd", "sacctmgr", "sacct", "mariadbd", "mariadb", "mariadb-install-db")
NODES = ("n1", "n2")
SEARCH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def what_lacks(programs: tuple[str, ...] = PROGRAMS) -> str | None:
    """Why no Slurm can be started here; None where one can."""
    missing = [name for name in programs if shutil.which(name, path=SEARCH) is None]
    if missing:
        packages = "slurmctld slurmd slurm-client munge"
        more = " slurmdbd mariadb-server" if set(missing) & set(ACCOUNTING) else ""
        return f"needs {', '.join(missing)}: {packages}{more} of Debian"
    return None if os.geteuid() == 0 else "needs root, to start munge and slurmd"


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class SlurmCluster:
    """Started by `start`, in `folder`; `environment` leads Slurm's commands to it.

    `settings` replace those of slurm.conf, `files` lie beside it; `accounting` starts slurmdbd on a
    MariaDB of its own.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        files: Mapping[str, str] | None = None,
        accounting: bool = False,
    ) -> None:
        self.folder, self.settings, self.accounting = folder, dict(settings or {}), accounting
        self.files = files or {}
        self.environment = {
            **os.environ,
            "SLURM_CONF": str(folder / "etc" / "slurm.conf"),
            "PATH": SEARCH,
        }
        self._pids: dict[str, Path] = {
            **({"mariadbd": folder / "database" / "pid"} if accounting else {}),
            "munged": folder / "munge" / "pid",
            **({"slurmdbd": folder / "run" / "slurmdbd.pid"} if accounting else {}),
            "slurmctld": folder / "run" / "slurmctld.pid",
            **{node: folder / "run" / f"slurmd.{node}.pid" for node in NODES},
        }

    def start(self) -> None:
        """Write its files and start all of it; returns once both nodes are idle."""
        folder = self.folder
        for name in ("state", "spool/n1", "spool/n2", "run", "log", "etc", "dev", "munge"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self._write_files()
        shutil.chown(folder / "munge", "munge", "munge")
        key = folder / "munge" / "key"
        key.write_bytes(secrets.token_bytes(128))
        shutil.chown(key, "munge", "munge")
        key.chmod(0o400)
        folder.chmod(0o755)
        munge = folder / "munge"
        self.run(
            "setpriv", "--reuid", "munge", "--regid", "munge", "--clear-groups",
            "munged", "--key-file", str(key), "--socket", str(munge / "sock"),
            "--pid-file", str(munge / "pid"), "--log-file", str(munge / "log"),
            "--seed-file", str(munge / "seed"),
        )  # fmt: skip
        if self.accounting:
            self._start_accounting()
        self.start_controller()
        for node in NODES:
            self.start_node(node)
        self.wait_until_idle()

    def _start_accounting(self) -> None:
        """MariaDB, slurmdbd on it, and the cluster as its client."""
        folder, (database, dbd) = self.folder / "database", free_ports(2)
        folder.mkdir()
        shutil.chown(folder, "mysql", "mysql")
        own = ("--no-defaults", f"--datadir={folder}/data", "--user=mysql")
        self.run("mariadb-install-db", *own, "--skip-test-db")
        self.run(  # It stays in the foreground, and `stop` ends it by its pid file.
            "setsid", "--fork", "mariadbd", *own, f"--socket={folder}/sock",
            f"--pid-file={folder}/pid", "--bind-address=127.0.0.1", f"--port={database}",
            "--innodb-lock-wait-timeout=900",
        )  # fmt: skip
        client = ("mariadb", f"--socket={folder}/sock", "--execute")
        self.retry(*client, "create database acct")
        for host in ("localhost", "127.0.0.1"):
            self.run(*client, f"create user slurm@{host} identified by 'x'")
            self.run(*client, f"grant all on acct.* to slurm@{host}")
        self.settings |= {
            "AccountingStorageType": "accounting_storage/slurmdbd",
            "AccountingStorageHost": "127.0.0.1",
            "AccountingStoragePort": str(dbd),
            "AccountingStoragePass": f"{self.folder}/munge/sock",
            "AccountingStorageTRES": "gres/gpu",
        }
        self._write_configuration()
        file = self.folder / "etc" / "slurmdbd.conf"
        file.write_text(f"""\
AuthType=auth/munge
AuthInfo=socket={self.folder}/munge/sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={dbd}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser=slurm
StoragePass=x
StorageLoc=acct
LogFile={self.folder}/log/slurmdbd.log
PidFile={self.folder}/run/slurmdbd.pid
CommunicationParameters=NoInAddrAny
""")
        file.chmod(0o600)
        self.run("slurmdbd")
        self.retry("sacctmgr", "-i", "add", "cluster", "ci")

    def retry(self, *command: str, seconds: float = 60.0) -> None:
        """Run a command until it succeeds: its server has just been started."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self.run(*command)
            except subprocess.CalledProcessError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def start_controller(self) -> None:
        """Start slurmctld."""
        self.run("slurmctld", "-f", self.environment["SLURM_CONF"])

    def start_node(self, node: str) -> None:
        """Start the slurmd of a node."""
        self.run("slurmd", "-N", node, "-f", self.environment["SLURM_CONF"])

    def stop_node(self, node: str, seconds: float = 30.0) -> None:
        """End the slurmd of a node, and wait until it has ended."""
        process, deadline = self.process(node), time.monotonic() + seconds
        os.kill(process, signal.SIGTERM)
        while os.path.exists(f"/proc/{process}"):
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def wait_until_idle(self, seconds: float = 30.0) -> None:
        """Wait until both nodes take jobs."""
        deadline = time.monotonic() + seconds
        while set(states := self.output("sinfo", "-h", "-N", "-o", "%t").split()) != {"idle"}:
            assert time.monotonic() < deadline, f"nodes are {states}; see {self.folder}/log"
            time.sleep(0.1)

    def process(self, name: str) -> int:
        """The process of `munged`, `slurmctld` or a node."""
        return int(self._pids[name].read_text())

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to one of its processes."""
        os.kill(self.process(name), number)

    def stop(self) -> None:
        """End all jobs, then all of its processes."""
        with suppress(subprocess.CalledProcessError):
            self.run("scancel", "--user", "root")
        for name in reversed(self._pids):
            with suppress(FileNotFoundError, ProcessLookupError, ValueError):
                process = self.process(name)
                os.kill(process, signal.SIGTERM)
                for _ in range(100):
                    os.kill(process, 0)
                    time.sleep(0.05)
                os.kill(process, signal.SIGKILL)

    def run(self, *command: str) -> None:
        """Run one of Slurm's commands."""
        subprocess.run(
            command, env=self.environment, check=True, timeout=60, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def output(self, *command: str) -> str:
        """What one of Slurm's commands prints."""
        return subprocess.run(
            command, env=self.environment, check=True, timeout=60, capture_output=True, text=True
        ).stdout

    def _write_files(self) -> None:
        folder = self.folder
        self._ports = free_ports(3)
        self._write_configuration()
        for name, text in self.files.items():
            (folder / "etc" / name).write_text(text)
        gres = folder / "etc" / "gres.conf"
        gres.write_text(f"NodeName=n[1-2] Name=gpu File={folder}/dev/nvidia[0-1]\n")
        for number in (0, 1):
            device = folder / "dev" / f"nvidia{number}"
            device.unlink(missing_ok=True)
            self.run("mknod", str(device), "c", "1", "3")

    def _write_configuration(self) -> None:
        folder, (ctld, one, two) = self.folder, self._ports
        text = f"""\
ClusterName=ci
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={ctld}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge/sock,cred_expire=5
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=5
MpiDefault=none
SwitchType=switch/none
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=2,batch_sched_delay=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=1000
SlurmdParameters=config_overrides
ReturnToService=2
JobRequeue=1
KillWait=5
GresTypes=gpu
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobcomp.txt
AccountingStorageType=accounting_storage/none
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={one} CPUs=4 RealMemory=8000 Gres=gpu:2
NodeName=n2 NodeHostname=localhost NodeAddr=127.0.0.1 Port={two} CPUs=4 RealMemory=8000 Gres=gpu:2
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=train Nodes=ALL MaxTime=60 State=UP
PartitionName=small Nodes=n1 MaxNodes=1 MaxTime=5 State=UP
"""
        lines = [line for line in text.splitlines() if line.partition("=")[0] not in self.settings]
        lines += [f"{name}={value}" for name, value in self.settings.items()]
        (folder / "etc" / "slurm.conf").write_text("\n".join(lines) + "\n")


@contextmanager
def running(**options: Any) -> Iterator[SlurmCluster]:
    """A cluster with these options of `SlurmCluster`, ended afterwards; skips where none can be."""
    programs = (*PROGRAMS, *(ACCOUNTING if options.get("accounting") else ()))
    if lack := what_lacks(programs):
        pytest.skip(lack)
    # Not below pytest's own folders, which only their owner may enter: munge's user must.
    with tempfile.TemporaryDirectory(prefix="ingot-slurm-") as folder:
        cluster = SlurmCluster(Path(folder), **options)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    """Running for the tests of a module; each ends with an empty queue."""
    with running() as cluster:
        yield cluster


@pytest.fixture
def slurm(cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    """Slurm's commands of this process lead to it."""
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, cluster.environment[name])
    yield cluster
    cluster.run("scancel", "--user", "root")
    cluster.wait_until_idle()
