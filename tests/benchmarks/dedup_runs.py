"""Whole processes, with all their children: what a run of Ingot or of a peer costs."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from tests.benchmarks import dedup_peers
from tests.benchmarks.dedup_quality import Found, found_by_clusters
from tests.benchmarks.planted_duplicates import FILE_DOCUMENTS, MEDIAN_WORDS, Corpus, write

PINNED = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "ARROW_NUM_THREADS",
)
LAUNCH = """
import json, os, sys, time

def tree(root):
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = open(f"/proc/{name}/stat").read()
            parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(name))
        except OSError:
            pass
    found = [root]
    for one in found:
        found += parents.get(one, ())
    return found

def shared_out(pid):
    try:
        lines = open(f"/proc/{pid}/smaps_rollup").read().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
    except OSError:
        return 0

told, every, begin, together = sys.argv[1], float(sys.argv[2]), time.monotonic(), 0
pid = os.fork()
if not pid:
    os.execvp(sys.argv[3], sys.argv[3:])
while every:
    done, status, used = os.wait4(pid, os.WNOHANG)
    if done:
        break
    together = max(together, sum(map(shared_out, tree(pid))))
    time.sleep(every)
else:
    _, status, used = os.wait4(pid, 0)
with open(told, "w") as file:
    json.dump({
        "code": os.waitstatus_to_exitcode(status),
        "cpu": used.ru_utime + used.ru_stime,
        "peak": used.ru_maxrss * 1024,
        "together": together,
        "wall": time.monotonic() - begin,
    }, file)
"""
"""A small process of its own starts the command: the kernel counts a parent's memory for the child
that it forks, and this one's is 10 MB. Wants where to tell, seconds between looks (0: none) and the
command."""


@dataclass(frozen=True)
class Cost:
    """Of a command and its children."""

    cpu: float
    """Seconds, user and system."""
    peak: int
    """Bytes, of the largest process."""
    together: int
    """Bytes of all at once, shared pages counted once, as far as looks fell on it; 0: not asked."""
    wall: float
    command: str
    load: float = 0
    """Processes that were ready to run on the machine when it began, on average over a minute."""
    said: str = ""

    def __add__(self, other: Cost) -> Cost:
        return replace(
            self,
            cpu=self.cpu + other.cpu,
            peak=max(self.peak, other.peak),
            together=max(self.together, other.together),
            wall=self.wall + other.wall,
            load=max(self.load, other.load),
            command=f"{self.command}\n{other.command}",
        )


def measured(command: Sequence[str | Path], folder: Path, look_every: float = 0) -> Cost:
    """Run a command with one thread each; its failure ends the benchmark with what it said."""
    words = [str(word) for word in command]
    told, said = folder / "told.json", folder / "said.txt"
    launch = [sys.executable, "-S", "-c", LAUNCH, str(told), str(look_every), *words]
    load = os.getloadavg()[0]
    pinned = {**os.environ, **dict.fromkeys(PINNED, "1")}
    with said.open("w") as out:
        subprocess.run(launch, check=True, env=pinned, stdout=out, stderr=subprocess.STDOUT)
    cost = json.loads(told.read_text())
    if cost.pop("code"):
        raise SystemExit(f"{shlex.join(words)}\n{said.read_text()[-3000:]}")
    return Cost(command=shlex.join(words), load=load, said=said.read_text(), **cost)


class Corpora:
    """Planted corpora below a folder, each made once."""

    def __init__(self, folder: Path, median: int = MEDIAN_WORDS) -> None:
        self.folder, self.median = folder, median

    @cached_property
    def _corpus(self) -> Corpus:
        return Corpus(median=self.median)

    def files(self, documents: int) -> list[Path]:
        """The JSON lines of so many documents."""
        folder = self.folder / f"corpus-{documents}"
        if not folder.exists():
            made = folder.with_name(f"{folder.name}.unfinished")
            subprocess.run(["rm", "-rf", made], check=True)
            write(made, self._corpus, documents)
            made.rename(folder)
        return sorted((folder / "documents").glob("*.jsonl"))


@dataclass(frozen=True)
class Output:
    """What a stage wrote: its digest and the folder of its files."""

    digest: str
    folder: Path

    def files(self, pattern: str = "**/*.parquet") -> list[Path]:
        """In order."""
        return sorted(self.folder.glob(pattern))

    def named(self) -> dict[str, Path]:
        """Its tables by their path in the output."""
        return {str(path.relative_to(self.folder)): path for path in self.files()}


class Ingot:
    """Stages by the command line, in a store of their own, by default with one worker."""

    def __init__(self, folder: Path, corpora: Corpora) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.corpora, self.store = folder, corpora, folder / "store"
        self._profile = folder / "workers.yaml"
        self.use_workers(1)

    def use_workers(self, number: int) -> None:
        """Have later runs of `dedup` and `filter` use so many worker processes."""
        how = {"workers": number}
        self._profile.write_text(
            json.dumps({"stages": {"dedup": how, "filter": how, "merge_indexes": how}})
        )

    def documents(self, count: int, begin: int = 0, of: int | None = None) -> str:
        """The name of the planted documents [begin, count), ingested once.

        They are cut from the files of a corpus of `of` documents, which is made if it is missing.
        """
        name = f"planted-{begin}-{count}"
        shown: list[str | Path] = [self._ingot, "show", name, "--store", self.store]
        if subprocess.run(shown, capture_output=True, check=False).returncode:
            assert begin % FILE_DOCUMENTS == 0
            assert of is None or count % FILE_DOCUMENTS == 0
            every = self.corpora.files(of or count)
            files = every[begin // FILE_DOCUMENTS : -(-count // FILE_DOCUMENTS)]
            self.read(name, files)
        return name

    def read(self, name: str, files: Sequence[Path], stage: str = "ingest") -> str:
        """The name of what a reading stage makes of some files."""
        add: list[str | Path] = [self._ingot, "snapshot", "add", name, *files]
        subprocess.run([*add, "--store", self.store], check=True, capture_output=True)
        self.stage(stage, {"snapshot": [f"snapshots/{name}"]}, name, profile=False)
        return name

    @property
    def _ingot(self) -> Path:
        return Path(sys.executable).with_name("ingot")

    def stage(
        self,
        name: str,
        inputs: Mapping[str, Sequence[str]],
        ref: str,
        settings: Sequence[str] = (),
        *,
        profile: bool = True,
        look_every: float = 0,
    ) -> Cost:
        """Run a stage, again if it stands."""
        command: list[str | Path] = [self._ingot, "stage", name, "--store", self.store]
        for role, given in inputs.items():
            command += [word for one in given for word in ("--input", f"{role}={one}")]
        command += [word for one in settings for word in ("--set", one)]
        command += ["--profile", self._profile] if profile else []
        return measured([*command, "--as", ref, "--force"], self.folder, look_every)

    def outputs(self, ref: str) -> dict[str, Output]:
        """The outputs of what a name stands for, by name."""
        from artifacts_schema.store import Store

        opened = Store.open(str(self.store))
        manifest, _ = opened.resolve(ref)
        return {
            name: Output(found.digest, Path(opened.backend.full(opened.payload(manifest, name))))
            for name, found in manifest.outputs.items()
        }


class Peers:
    """Runs of peers; what they cost and found is kept beside `results` and not run twice."""

    def __init__(
        self, folder: Path, corpora: Corpora, pythons: Mapping[str, str | None], results: Path
    ):
        for needed in (folder, results.parent):
            needed.mkdir(parents=True, exist_ok=True)
        self.folder, self.corpora, self.results = folder, corpora, results
        environments = {"datatrove": "datatrove", "datatrove, fixed": "datatrove", "rensa": "rensa"}
        environments["datasketch"] = "rensa"
        self._pythons = {name: pythons.get(env) for name, env in environments.items()}

    @property
    def names(self) -> list[str]:
        """Those whose Python is known."""
        return [name for name, python in self._pythons.items() if python]

    def run(self, name: str, documents: int, keep: bool = True) -> Cost:
        """Run a peer, and keep what came of it if that is wanted."""
        files, out = self.corpora.files(documents), self.folder / "peer"
        subprocess.run(["rm", "-rf", out], check=True)
        script = Path(dedup_peers.__file__)
        command: list[str | Path] = [str(self._pythons[name]), script, name, files[0].parent, out]
        cost = measured(command, self.folder)
        if keep:
            cluster, removed = dedup_peers.clusters(out, documents)
            self.keep(name, documents, cost, cluster, removed)
        subprocess.run(["rm", "-rf", out], check=True)
        return cost

    def keep(
        self, name: str, documents: int, cost: Cost, cluster: Sequence[int], removed: Sequence[bool]
    ) -> None:
        """Note a run's cost and clusters."""
        known = self._known()
        record = known.setdefault(name, {}).setdefault(str(documents), {"runs": []})
        record["bytes"] = self._bytes(documents)
        record["runs"].append({**asdict(cost), "said": ""})
        record["clusters"] = f"{name.replace(', ', '-')}-{documents}.npz"
        np.savez_compressed(
            self.results.parent / record["clusters"],
            cluster=np.array(cluster, np.int32),
            removed=np.array(removed, bool),
        )
        self.results.write_text(json.dumps(known, indent=1))

    def _bytes(self, documents: int) -> int:
        return sum(path.stat().st_size for path in self.corpora.files(documents))

    def _known(self) -> dict[str, dict[str, dict]]:
        return json.loads(self.results.read_text()) if self.results.exists() else {}

    def costs(self, name: str, documents: int) -> list[Cost]:
        """Of the runs that were made so far; the peer is run if there is none."""
        if str(documents) not in self._known().get(name, {}):
            self.run(name, documents)
        record = self._known()[name][str(documents)]
        if record["bytes"] != self._bytes(documents):
            raise SystemExit(f"{self.results}: {name} ran on another corpus; remove it there")
        return [Cost(**run) for run in record["runs"]]

    def found(self, name: str, documents: int) -> Found:
        """What the peer found."""
        self.costs(name, documents)
        record = self._known()[name][str(documents)]
        with np.load(self.results.parent / record["clusters"]) as kept:
            return found_by_clusters(kept["cluster"], kept["removed"])
