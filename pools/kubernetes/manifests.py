"""The manifests of a step: a Job of one pod, or an indexed Job with a headless service.

A pod that ends with exit code 75, or that the cluster takes away (drained, preempted, evicted), is
made again and counts as no failure (`podFailurePolicy`, Kubernetes 1.31); any other exit ends the
Job at once, since the same step would fail the same way. Requests equal limits, so that a pod is of
the class that is evicted last.

Of several pods that of index 0 takes the lease and starts torchrun, the others join it by their
index (`--machine`); the service gives each a name that the others resolve.
"""

from __future__ import annotations

import re
import secrets
from typing import Any

from artifacts_schema.config import parse_size
from artifacts_schema.errors import EXIT_RESUME
from artifacts_schema.identity import short
from pools.cluster_job import JobRequest
from pools.kubernetes.settings import KubernetesSettings
from stages.engine.spec import THREAD_VARIABLES

STORE_LABEL, KEY_LABEL, TAG = "ingot/store", "ingot/key", "ingot/tag"
CONTAINER = "stage"
RETRIES = 1000
"""Pods of a Job that may fail by what the policy does not name; `decide` counts progress."""
KEPT_SECONDS = 86_400
"""How long the cluster keeps a Job that ended, for people to look at."""


def labels(tag: str) -> dict[str, str]:
    """The labels that find a step: store, and as much of the key as a label may have."""
    match = re.fullmatch(r"ingot store=(\w+) key=(\w+)", tag)
    assert match is not None, tag
    return {
        "app.kubernetes.io/name": "ingot",
        STORE_LABEL: match[1],
        KEY_LABEL: match[2][:63],
    }


def job_name(request: JobRequest) -> str:
    """A name of its own for each submission: lower case, below 63 characters."""
    stage = request.stage.replace("_", "-")[:30]
    return f"ingot-{stage}-{short(request.key)}-{secrets.token_hex(3)}"


def job_manifest(request: JobRequest, settings: KubernetesSettings, name: str) -> dict[str, Any]:
    """The Job of a step."""
    nodes = request.resources.nodes
    spec: dict[str, Any] = {
        "backoffLimit": RETRIES,
        "ttlSecondsAfterFinished": KEPT_SECONDS,
        "podFailurePolicy": {"rules": _failure_rules()},
        "template": {
            "metadata": {"labels": labels(request.tag)},
            "spec": _pod(request, settings, name),
        },
    }
    if request.resources.minutes is not None:
        spec["activeDeadlineSeconds"] = 60 * request.resources.minutes
    if nodes > 1:
        spec |= {"completionMode": "Indexed", "completions": nodes, "parallelism": nodes}
    metadata = {
        "name": name,
        "namespace": settings.namespace,
        "labels": labels(request.tag),
        "annotations": {TAG: request.tag},
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def service_manifest(
    request: JobRequest, settings: KubernetesSettings, name: str
) -> dict[str, Any] | None:
    """The headless service of a Job of several pods; None for one."""
    if request.resources.nodes == 1:
        return None
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": settings.namespace,
            "labels": labels(request.tag),
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,  # They meet before they are ready.
            "selector": {"job-name": name},
        },
    }


def _failure_rules() -> list[dict[str, Any]]:
    def exits(operator: str, action: str) -> dict[str, Any]:
        codes = {"containerName": CONTAINER, "operator": operator, "values": [EXIT_RESUME]}
        return {"action": action, "onExitCodes": codes}

    taken = {"type": "DisruptionTarget", "status": "True"}
    return [
        {"action": "Ignore", "onPodConditions": [taken]},
        exits("In", "Ignore"),
        exits("NotIn", "FailJob"),
    ]


def _pod(request: JobRequest, settings: KubernetesSettings, name: str) -> dict[str, Any]:
    shared = {
        "name": "shared-memory",
        "emptyDir": {"medium": "Memory", "sizeLimit": str(parse_size(settings.shared_memory))},
    }
    volumes: list[dict[str, Any]] = [shared]
    mounts = [{"name": "shared-memory", "mountPath": "/dev/shm"}]
    if settings.claim is not None:
        claim = {"claimName": settings.claim}
        volumes.append({"name": "store", "persistentVolumeClaim": claim})
        mounts.append({"name": "store", "mountPath": settings.mount or request.store})
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": int(settings.stop_seconds),
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(request, settings, mounts)],
        "volumes": volumes,
    }
    if request.resources.nodes > 1:
        pod["subdomain"] = name
    if settings.service_account is not None:
        pod["serviceAccountName"] = settings.service_account
    if settings.node_selector:
        pod["nodeSelector"] = settings.node_selector
    if settings.tolerations:
        pod["tolerations"] = list(settings.tolerations)
    return pod


def _container(
    request: JobRequest, settings: KubernetesSettings, mounts: list[dict[str, Any]]
) -> dict[str, Any]:
    resources = request.resources
    amounts: dict[str, str] = {}
    if resources.cpus is not None:
        amounts["cpu"] = str(resources.cpus)
    if request.memory is not None:
        amounts["memory"] = str(request.memory)
    if resources.gpus:
        amounts[settings.gpu_resource] = str(resources.gpus)
    variables = {
        **dict.fromkeys(THREAD_VARIABLES, "1"),
        "PYTHONHASHSEED": "0",
        **settings.environment,
    }
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": settings.image,
        "command": _command(request, settings),
        "env": [{"name": name, "value": value} for name, value in sorted(variables.items())],
        "resources": {"requests": amounts, "limits": amounts},
        "volumeMounts": mounts,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    if settings.secrets:
        container["envFrom"] = [{"secretRef": {"name": name}} for name in settings.secrets]
    return container


def _command(request: JobRequest, settings: KubernetesSettings) -> list[str]:
    command = [settings.python, *request.arguments()]
    if request.resources.nodes > 1:
        command += ["--machine", "$(JOB_COMPLETION_INDEX)"]  # Kubernetes replaces it.
    return command
