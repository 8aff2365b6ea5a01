"""A Dask cluster as objects of Kubernetes, for the operator of `dask-kubernetes`; nothing starts.

`DaskCluster` and `DaskAutoscaler` are those of the operator's `kubernetes.dask.org/v1`
(https://kubernetes.dask.org/en/latest/operator_resources.html). The scheduler and its workers speak
TLS alone, by certificates that lie in a Secret, which is not in the manifest. The operator has none
of them: it asks the scheduler's HTTP interface how many workers it wants, and which to end.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artifacts_schema.errors import UsageError
from stages.engine.dask_cluster import NO_PROFILE, Scheduler, make_certificates

MANIFEST = "cluster.yaml"
CERTIFICATES = "/certificates"
"""Where the Secret is mounted."""
SCRATCH = "/scratch"
_PORT, _HTTP = 8786, 8787
_ROUTES = ["distributed.http.health", "distributed.http.scheduler.api"]
_VARIABLES = {
    NO_PROFILE: "False",
    "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True",
    "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": f"{CERTIFICATES}/ca.pem",
    **{
        f"DASK_DISTRIBUTED__COMM__TLS__{who}__{what}": f"{CERTIFICATES}/{name}.pem"
        for who in ("SCHEDULER", "WORKER", "CLIENT")
        for what, name in (("CERT", "certificate"), ("KEY", "key"))
    },
}


@dataclass(frozen=True)
class KubernetesPlan:
    """What the objects say: `least` to `most` workers of one core and `memory` bytes."""

    name: str
    namespace: str
    image: str
    least: int
    most: int
    memory: int
    claims: tuple[tuple[str, str], ...] = ()
    """Volume claims and where each is mounted: the store, with the same path as everywhere."""
    secrets: tuple[str, ...] = ()
    """Secrets whose keys become variables of the workers, as credentials of a bucket."""

    @property
    def address(self) -> str:
        """Of the scheduler, for pods of the cluster."""
        return f"tls://{self.name}-scheduler.{self.namespace}.svc.cluster.local:{_PORT}"


def write_manifests(plan: KubernetesPlan, folder: Path) -> list[str]:
    """Write manifest, certificates and scheduler file; returns the commands that start it.

    UsageError where another cluster's files are there, or others could read the certificates.
    """
    import yaml

    _, paths = make_certificates(folder)
    objects = (_cluster(plan), *([_autoscaler(plan)] if plan.most > plan.least else []))
    (folder / MANIFEST).write_text(yaml.safe_dump_all(objects, sort_keys=False), encoding="utf-8")
    Scheduler(plan.address, **paths).save(folder)
    files = " ".join(f"--from-file={path}" for path in sorted(paths.values()))
    return [
        f"kubectl -n {plan.namespace} create secret generic {_secret(plan)} {files}",
        f"kubectl apply -f {folder / MANIFEST}",
    ]


def _secret(plan: KubernetesPlan) -> str:
    return f"{plan.name}-tls"


def _cluster(plan: KubernetesPlan) -> dict[str, Any]:
    chosen = {
        "dask.org/cluster-name": plan.name,
        "dask.org/component": "scheduler",
    }
    ports = [("tcp-comm", _PORT), ("http-dashboard", _HTTP)]
    health = {"httpGet": {"path": "/health", "port": "http-dashboard"}}
    scheduler = _container(
        plan,
        "scheduler",
        [
            "scheduler",
            "--protocol",
            "tls",
            "--host",
            "0.0.0.0",
            "--port",
            str(_PORT),
            "--no-jupyter",
        ],
        {"cpu": "1", "memory": "4Gi"},
        DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES=json.dumps(_ROUTES),
    )
    scheduler |= {
        "ports": [{"name": name, "containerPort": port} for name, port in ports],
        "readinessProbe": health,
        "livenessProbe": {**health, "initialDelaySeconds": 30, "periodSeconds": 30},
    }
    worker = _container(
        plan,
        "worker",
        [
            *("worker", plan.address, "--name", "$(DASK_WORKER_NAME)", "--nthreads", "1"),
            *("--no-dashboard", "--memory-limit", str(plan.memory)),
            *("--local-directory", f"{SCRATCH}/dask"),
        ],
        {"cpu": "1", "memory": str(plan.memory)},
        INGOT_CACHE=f"{SCRATCH}/cache",
    )
    if plan.secrets:
        worker["envFrom"] = [{"secretRef": {"name": name}} for name in plan.secrets]
    return {
        "apiVersion": "kubernetes.dask.org/v1",
        "kind": "DaskCluster",
        "metadata": {"name": plan.name, "namespace": plan.namespace},
        "spec": {
            "worker": {"replicas": plan.least, "spec": _pod(plan, worker)},
            "scheduler": {
                "spec": _pod(plan, scheduler),
                "service": {
                    "type": "ClusterIP",
                    "selector": chosen,
                    "ports": [
                        {"name": name, "protocol": "TCP", "port": port, "targetPort": name}
                        for name, port in ports
                    ],
                },
            },
        },
    }


def _autoscaler(plan: KubernetesPlan) -> dict[str, Any]:
    return {
        "apiVersion": "kubernetes.dask.org/v1",
        "kind": "DaskAutoscaler",
        "metadata": {"name": plan.name, "namespace": plan.namespace},
        "spec": {"cluster": plan.name, "minimum": plan.least, "maximum": plan.most},
    }


def _container(
    plan: KubernetesPlan, name: str, command: list[str], amounts: dict[str, str], **variables: str
) -> dict[str, Any]:
    mounts = [("certificates", CERTIFICATES, True), ("scratch", SCRATCH, False)]
    mounts += [(f"claim-{number}", path, False) for number, (_, path) in enumerate(plan.claims)]
    environment = {**_VARIABLES, **variables, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    return {
        "name": name,
        "image": plan.image,
        "args": ["dask", *command],
        "env": [{"name": key, "value": value} for key, value in sorted(environment.items())],
        "resources": {"requests": amounts, "limits": amounts},
        "volumeMounts": [
            {"name": mount, "mountPath": path, **({"readOnly": True} if fixed else {})}
            for mount, path, fixed in mounts
        ],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _pod(plan: KubernetesPlan, container: dict[str, Any]) -> dict[str, Any]:
    volumes: list[dict[str, Any]] = [
        {"name": "certificates", "secret": {"secretName": _secret(plan)}},
        {"name": "scratch", "emptyDir": {}},
    ]
    volumes += [
        {"name": f"claim-{number}", "persistentVolumeClaim": {"claimName": claim}}
        for number, (claim, _) in enumerate(plan.claims)
    ]
    return {
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": volumes,
    }


def parse_claim(text: str) -> tuple[str, str]:
    """CLAIM:/PATH; UsageError for anything else."""
    claim, _, path = text.partition(":")
    if not claim or not path.startswith("/"):
        raise UsageError(f"--claim: '{text}' is not CLAIM:/PATH, such as ingot-store:/store")
    return claim, path
