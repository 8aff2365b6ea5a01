"""The objects of a Dask cluster in Kubernetes, by the schemas of Kubernetes and of the operator."""

from __future__ import annotations

import copy
import json
import stat
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

pytest.importorskip("distributed", reason="needs pip install 'ingot[dask]'")

from artifacts_schema.errors import UsageError
from flows.cli.main import main
from stages.engine.dask_cluster import Scheduler
from stages.engine.dask_kubernetes import (
    CERTIFICATES,
    KubernetesPlan,
    parse_claim,
    write_manifests,
)

PLAN = KubernetesPlan(
    "words",
    "ingot",
    "registry.example/ingot:0.1-cpu",
    least=0,
    most=64,
    memory=8 << 30,
    claims=(("ingot-store", "/store"),),
    secrets=("bucket",),
)


@pytest.fixture
def objects(tmp_path):
    """`objects(plan)` → the objects that were written, by kind."""

    def make(plan=PLAN):
        write_manifests(plan, tmp_path / "cluster")
        text = (tmp_path / "cluster" / "cluster.yaml").read_text()
        return {one["kind"]: one for one in yaml.safe_load_all(text)}

    return make


def pods(cluster):
    return [cluster["spec"][part]["spec"] for part in ("scheduler", "worker")]


def test_pods_and_service_are_those_of_kubernetes(objects):
    validate = pytest.importorskip("kubernetes_validate")
    cluster = objects()["DaskCluster"]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}}
    for number, spec in enumerate(pods(cluster)):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"x{number}"}, "spec": spec}
        validate.validate(pod, "1.34", strict=True)
        broken = copy.deepcopy(pod)
        broken["spec"]["containers"][0]["imagee"] = "x"
        with pytest.raises(validate.ValidationError):
            validate.validate(broken, "1.34", strict=True)
    spec = cluster["spec"]["scheduler"]["service"]
    validate.validate({**service, "spec": spec}, "1.34", strict=True)


def test_they_are_those_of_the_operator(objects):
    """By the definitions that come with dask-kubernetes 2026.3."""
    package = pytest.importorskip("dask_kubernetes")
    jsonschema = pytest.importorskip("jsonschema")
    definitions = Path(package.__file__).parent / "operator" / "deployment" / "helm"
    for kind, one in objects().items():
        (path,) = definitions.rglob(f"crds/{kind.lower()}.yaml")
        (definition,) = yaml.safe_load_all(path.read_text())
        (version,) = definition["spec"]["versions"]
        schema = version["schema"]["openAPIV3Schema"]
        jsonschema.validate(one, schema)
        assert set(one["spec"]) <= set(schema["properties"]["spec"]["properties"])


def test_pods_are_of_the_restricted_kind_and_know_no_token(objects):
    """Pod Security Standards, "Restricted"."""
    for pod in pods(objects()["DaskCluster"]):
        assert pod["securityContext"] == {
            "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"},
        }  # fmt: skip
        assert pod["automountServiceAccountToken"] is False
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
        }  # fmt: skip
        assert container["resources"]["requests"] == container["resources"]["limits"]


def test_all_speak_tls_by_certificates_that_no_manifest_holds(objects, tmp_path):
    for pod in pods(objects()["DaskCluster"]):
        (container,) = pod["containers"]
        variables = {one["name"]: one["value"] for one in container["env"]}
        assert variables["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] == "True"
        paths = {value for name, value in variables.items() if "__TLS__" in name}
        assert paths == {f"{CERTIFICATES}/{n}.pem" for n in ("ca", "certificate", "key")}
        mounted = {one["mountPath"]: one for one in container["volumeMounts"]}
        assert mounted[CERTIFICATES]["readOnly"]
        assert mounted["/store"]["name"] == "claim-0"
    folder = tmp_path / "cluster"
    assert "BEGIN" not in (folder / "cluster.yaml").read_text()
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in folder.glob("*.pem"))
    found = Scheduler.load(str(folder / "scheduler.json"), allow_plain_tcp=False)
    assert found.address == "tls://words-scheduler.ingot.svc.cluster.local:8786"
    assert found.ca == folder / "ca.pem"


def test_dask_reads_these_variables_as_its_security(objects):
    import dask.config
    from distributed.security import Security

    (container,) = pods(objects()["DaskCluster"])[1]["containers"]
    plain = {one["name"]: one["value"] for one in container["env"]}
    with dask.config.set(dask.config.merge(dask.config.config, dask.config.collect_env(plain))):
        security = Security()
    assert security.require_encryption is True
    assert security.tls_ca_file == f"{CERTIFICATES}/ca.pem"
    assert security.tls_worker_key == f"{CERTIFICATES}/key.pem"
    assert security.tls_client_cert == f"{CERTIFICATES}/certificate.pem"


def test_a_worker_has_one_thread_its_memory_and_credentials(objects):
    cluster = objects()["DaskCluster"]
    (worker,) = pods(cluster)[1]["containers"]
    arguments = worker["args"]
    assert arguments[arguments.index("--nthreads") + 1] == "1"
    assert arguments[arguments.index("--memory-limit") + 1] == str(8 << 30)
    assert worker["resources"]["limits"] == {"cpu": "1", "memory": str(8 << 30)}
    assert worker["envFrom"] == [{"secretRef": {"name": "bucket"}}]
    (scheduler,) = pods(cluster)[0]["containers"]
    routes = next(o["value"] for o in scheduler["env"] if o["name"].endswith("HTTP__ROUTES"))
    assert json.loads(routes) == ["distributed.http.health", "distributed.http.scheduler.api"]


def test_as_many_workers_as_shards_wait_or_always_so_many(objects):
    made = objects()
    assert made["DaskAutoscaler"]["spec"] == {"cluster": "words", "minimum": 0, "maximum": 64}
    assert made["DaskCluster"]["spec"]["worker"]["replicas"] == 0


def test_a_number_has_no_autoscaler(objects):
    fixed = KubernetesPlan("words", "ingot", "image", 4, 4, 1 << 30)
    assert list(objects(fixed)) == ["DaskCluster"]


def test_the_command_says_what_to_do_next(tmp_path):
    folder = tmp_path / "cluster"
    options = ["--on", "kubernetes", "--workers", "0:8", "--image", "ingot:1", "--memory", "2GiB"]
    ran = CliRunner().invoke(main, ["dask", str(folder), *options, "--claim", "ingot-store:/store"])
    assert ran.exit_code == 0, ran.output
    assert f"kubectl apply -f {folder}/cluster.yaml" in ran.output
    assert f"--from-file={folder}/key.pem" in ran.output
    again = CliRunner().invoke(main, ["dask", str(folder), *options])
    assert again.exit_code != 0
    assert "may still run" in again.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--memory", "2GiB"], "must know the image"),
        (["--image", "ingot:1"], "how much memory"),
        (["--image", "i", "--memory", "2GiB", "--claim", "store"], "is not CLAIM:/PATH"),
    ],
)
def test_what_is_missing_is_said(tmp_path, options, message):
    ran = CliRunner().invoke(main, ["dask", str(tmp_path / "c"), "--on", "kubernetes", *options])
    assert ran.exit_code != 0
    assert message in ran.output
    assert not (tmp_path / "c").exists()


def test_a_claim_names_a_path():
    assert parse_claim("ingot-store:/mnt/store") == ("ingot-store", "/mnt/store")
    with pytest.raises(UsageError, match="is not CLAIM"):
        parse_claim("store:here")
