"""What every test may use: a store, a way to run a stage in it, artifacts made of what is given."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402
from users import Team, make_team  # noqa: E402

from artifacts_schema.config import Config  # noqa: E402
from artifacts_schema.identity import document_id  # noqa: E402
from artifacts_schema.kinds import KINDS, Column  # noqa: E402
from artifacts_schema.manifest import Manifest  # noqa: E402
from artifacts_schema.store import Store  # noqa: E402
from stages.engine import Context, Input, Stage  # noqa: E402
from stages.engine.protocol import register  # noqa: E402
from stages.engine.runner import run_stage as run_spec  # noqa: E402
from stages.engine.spec import StageSpec  # noqa: E402

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")  # A busy machine must fail no test.

Reference = tuple[Manifest, str]
Inputs = dict[str, list[Reference]]


SLOWEST = (
    "tests/pipeline/test_campaign",
    "tests/flows/orchestration/",
    "tests/stages/engine/",
    "tests/stages/dedup/",
    "tests/stages/pretrain/",
    "tests/pipeline/",
)
"""Tests that take minutes run first, so that no worker waits for another's at the end.

The first of all makes `tiny_store`; other workers have work that does not wait for it.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slowest first; otherwise keep the order."""
    last = len(SLOWEST)
    items.sort(
        key=lambda item: next((n for n in range(last) if item.nodeid.startswith(SLOWEST[n])), last)
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A folder's tests share servers and kernels that take a while to make: one worker runs them.

    Those of tests/pipeline share `tiny_store`, which workers share too: one worker runs a file.
    By a scheduler, for pytest 9 ignores the marks that pytest-xdist 3.8 knows for it.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFolder(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return file if file.startswith("tests/pipeline/") else file.rpartition("/")[0]

    config.option.loadscopereorder = False
    return ByFolder(config, log)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store in a folder of this test."""
    return Store.open(str(tmp_path / "store"))


@pytest.fixture
def run_stage(store: Store) -> Callable[..., Manifest]:
    """`run_stage(StageClass, config, inputs, execution)` → the manifest it committed."""

    def run(
        stage: Any,
        config: dict[str, Any] | None = None,
        inputs: Inputs | None = None,
        execution: dict[str, Any] | None = None,
        **options: Any,
    ) -> Manifest:
        register(stage)
        references = {
            role: [store.reference(manifest, output) for manifest, output in given]
            for role, given in (inputs or {}).items()
        }
        spec = StageSpec.make(stage, config, references, {"workers": 1, **(execution or {})})
        return run_spec(store, spec, **options).manifest

    return run


@pytest.fixture
def read_input(store: Store) -> Callable[[Manifest, str], Input]:
    """`read_input(manifest, output)` → the output as a stage sees it."""
    return lambda manifest, output: Input.from_manifest(store, manifest, output)


@pytest.fixture
def read_table(store: Store) -> Callable[..., Any]:
    """`read_table(manifest, output, path=None)` → one table, or all of the output's joined."""

    def read(manifest: Manifest, output: str, path: str | None = None) -> Any:
        import pyarrow as pa

        found = Input.from_manifest(store, manifest, output)
        paths = [path] if path else found.paths("*.parquet")
        return pa.concat_tables([found.read_table(p) for p in paths])

    return read


@pytest.fixture(scope="session")
def tiny_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store in which child processes ran `tiny.yaml`. No test may change it.

    The first test process that asks for it makes it; others wait for that.
    """
    from filelock import FileLock

    from flows.recipe.execute import execute
    from flows.recipe.pipeline import Pipeline, Request

    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    recipe = Path(__file__).parent / "pipeline" / "tiny.yaml"
    store, made = folder / "tiny" / "store", folder / "tiny" / "made"
    with FileLock(folder / "tiny.lock"):
        if not made.exists():
            assert execute(Pipeline.open(Request(str(recipe), str(store))), jobs=2).is_done
            made.touch()
    return store


@pytest.fixture(scope="session")
def team() -> Iterator[Team]:
    """Two users of one group, and one outside it; skips where they cannot be made."""
    with make_team() as users:
        yield users


@pytest.fixture
def team_folder(team: Team) -> Iterator[Path]:
    """A folder in which everybody may make a store."""
    folder = Path(tempfile.mkdtemp(dir=team.folder))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def shared_data() -> Path:
    """The folder of real data beside the project; skips where it is absent."""
    folder = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the shared data folder beside the project")
    return folder


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """`http://127.0.0.1:PORT` of a local S3 server in a process of its own."""
    for library in ("moto", "s3fs"):
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"needs {library}: pip install 'ingot[dev]'")
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("s3_server.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={k: v for k, v in os.environ.items() if not k.startswith("AWS_")},
    )
    assert server.stdin is not None
    assert server.stdout is not None
    port = server.stdout.readline().decode().strip()
    assert port, "the S3 server did not start"
    yield f"http://127.0.0.1:{port}"
    server.stdin.close()
    server.wait(10)


@pytest.fixture(scope="session")
def make_bucket(s3_server: str) -> Callable[[Path, pytest.MonkeyPatch], str]:
    """`make_bucket(cache, patch)` → `s3://BUCKET` of a fresh bucket, to which `patch` leads.

    `patch` sets the environment, that of child processes included; `cache` is the node's.
    """
    import s3fs

    def make(cache: Path, patch: pytest.MonkeyPatch) -> str:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        for name, value in {
            "AWS_ENDPOINT_URL": s3_server,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing-secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "FSSPEC_CONFIG_DIR": str(cache.with_name("no-fsspec-config")),
            "INGOT_CACHE": str(cache),
        }.items():
            patch.setenv(name, value)
        bucket = f"test-{secrets.token_hex(6)}"
        request = urllib.request.Request(f"{s3_server}/{bucket}", method="PUT")
        urllib.request.urlopen(request, timeout=10).close()
        s3fs.S3FileSystem.clear_instance_cache()
        return f"s3://{bucket}"

    return make


@pytest.fixture
def s3_url(
    make_bucket: Callable[[Path, pytest.MonkeyPatch], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[str]:
    """`s3://BUCKET` of this test; the node's cache is a folder of this test."""
    import s3fs

    yield make_bucket(tmp_path / "node-cache", monkeypatch)
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def file_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A web server on loopback (`file_server.py`); the node's cache is a folder of this test."""
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "node-cache"))
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    from file_server import FileServer

    server = FileServer()
    yield server
    server.close()


class _GivenConfig(Config):
    content: str


@pytest.fixture
def given(run_stage: Callable[..., Manifest]) -> Callable[..., Reference]:
    """`given(kind, {path: rows, JSON or bytes})` → (manifest, output) of an artifact that holds it.

    Columns that an open table leaves to its writer are numbers, named as in the first row. Lists
    that a row lacks are empty.
    """

    def commit(kind: str, files: Mapping[str, Any]) -> Reference:
        import pyarrow as pa

        tables = {path: KINDS[kind].table_for(path) for path in files}

        def run(self: Stage, context: Context) -> None:
            for path, value in files.items():
                table = tables[path]
                if isinstance(value, bytes):
                    context.write_bytes(kind, path, value)
                elif table is None:
                    context.write_json(kind, path, value)
                else:
                    known = {column.name for column in table.columns}
                    more = [n for n in (value[0] if value else {}) if table.open and n not in known]
                    texts = {n for n in more if any(isinstance(row[n], str) for row in value)}
                    types = {n: "string?" if n in texts else "float64?" for n in more}
                    schema = table.arrow([Column(name, types[name], "") for name in more])
                    lists = {c.name: [] for c in table.columns if c.type.startswith("list<")}
                    rows = [{**lists, **row} for row in value]
                    context.write_table(kind, path, pa.Table.from_pylist(rows, schema=schema))

        members = {
            "name": f"given_{kind}",
            "version": 1,
            "reproducible": "bytes",
            "outputs": {kind: kind},
            "Config": _GivenConfig,
            "run": run,
        }
        content = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()
        return run_stage(type("Given", (Stage,), members), {"content": content}), kind

    return commit


@pytest.fixture
def make_documents(given: Callable[..., Reference]) -> Callable[..., Reference]:
    """`make_documents([[text, …], …], snapshot="given")` → documents, a shard for each inner list.

    Instead of a text, a mapping sets any columns of its row. Document n of all the shards has the
    id `document_id(snapshot, "file", n)` where none is set.
    """

    def make(
        shards: Sequence[Sequence[str | Mapping[str, Any]]], snapshot: str = "given"
    ) -> Reference:
        number = itertools.count()

        def row(value: str | Mapping[str, Any]) -> dict[str, Any]:
            offset = next(number)
            return {
                "doc_id": document_id(snapshot, "file", offset),
                "source": "web",
                "snapshot": snapshot,
                "metadata": "{}",
                "origin_file": "file",
                "origin_offset": offset,
                "origin_length": 1,
                **({"text": value} if isinstance(value, str) else value),
            }

        tables = {
            f"{index:05d}.parquet": [row(value) for value in shard]
            for index, shard in enumerate(shards)
        }
        return given("documents", tables)

    return make


@pytest.fixture
def snapshot(given: Callable[..., Reference]) -> Callable[..., list[Reference]]:
    """`snapshot({"a.jsonl": b"…"}, name="trial")`: files carried along, as `sample` does it.

    It returns what a snapshot role of `run_stage` takes.
    """

    def make(files: dict[str, bytes], name: str = "trial") -> list[Reference]:
        listed = [
            {"name": file, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for file, data in sorted(files.items())
        ]
        carried = {f"files/{file}": data for file, data in files.items()}
        return [given("snapshot", {**carried, "snapshot.json": {"name": name, "files": listed}})]

    return make
