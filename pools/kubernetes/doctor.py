"""What Kubernetes' API says before any Job is sent: namespace, rights, claim, quota, each stage.

Each stage's Job is sent as a dry run, which passes admission and is kept nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from artifacts_schema.errors import IngotError, UsageError
from flows.recipe.dispatch import Check
from flows.recipe.profile import Resources
from pools.cluster_job import JobRequest, SubmissionLost
from pools.kubernetes.client import Api
from pools.kubernetes.manifests import job_manifest, job_name
from pools.kubernetes.settings import KubernetesSettings

RIGHTS = (
    ("create", "batch", "jobs", ""),
    ("list", "batch", "jobs", ""),
    ("get", "batch", "jobs", ""),
    ("delete", "batch", "jobs", ""),
    ("create", "", "services", ""),
    ("patch", "", "services", ""),
    ("list", "", "pods", ""),
    ("get", "", "pods", "log"),
)
"""Verb, API group, resource and subresource of all that a pool does."""
FORBIDDEN = "not allowed to ask"


def check_kubernetes(
    api: Api, settings: KubernetesSettings, places: Mapping[str, Resources]
) -> Iterator[Check]:
    """All of it; IngotError where the API does not answer."""
    yield Check("API", True, f"Kubernetes {api.version()}")
    yield (namespace := _check_namespace(api))
    if namespace.ok is False:
        return
    yield _check_rights(api)
    if settings.claim is not None:
        yield _check_claim(api, settings.claim)
    manifests = {
        stage: _manifest(stage, resources, settings) for stage, resources in places.items()
    }
    yield from _check_quotas(api, manifests)
    for stage, manifest in manifests.items():
        yield _check_stage(api, stage, manifest)


def _check_namespace(api: Api) -> Check:
    try:
        value = api.find_namespace()
    except UsageError:
        return Check("namespace", None, f"{api.namespace}: {FORBIDDEN}")
    if value is None:
        hint = f"kubectl create namespace {api.namespace}, or correct the pool's namespace"
        return Check("namespace", False, f"no namespace '{api.namespace}'", hint)
    phase = (value.get("status") or {}).get("phase", "Active")
    if phase != "Active":
        return Check("namespace", False, f"{api.namespace} is {phase}", "use another one")
    return Check("namespace", True, api.namespace)


def _check_rights(api: Api) -> Check:
    denied = [
        f"{verb} {'/'.join(filter(None, (resource, subresource)))}"
        for verb, group, resource, subresource in RIGHTS
        if not api.is_allowed(verb, group, resource, subresource)
    ]
    if denied:
        hint = "apply deploy/kubernetes/rbac.yaml, or ask the administrator"
        return Check("rights", False, f"may not {', '.join(denied)}", hint)
    return Check("rights", True, "jobs, services, pods and their logs")


def _check_claim(api: Api, name: str) -> Check:
    try:
        claim = api.claim(name)
    except UsageError:
        return Check("claim", None, f"{name}: {FORBIDDEN}")
    if claim is None:
        hint = "make it, or correct the pool's claim"
        return Check("claim", False, f"no volume claim '{name}'", hint)
    phase = (claim.get("status") or {}).get("phase")
    modes = claim["spec"].get("accessModes") or []
    if phase == "Lost":
        return Check("claim", False, f"{name} is Lost", "its volume is gone: restore it")
    if "ReadWriteMany" not in modes:
        text = f"{name} has {', '.join(modes)}: pods of other nodes cannot mount it"
        return Check("claim", False, text, "a store needs ReadWriteMany, or a bucket")
    return Check("claim", True, f"{name} is {phase}, ReadWriteMany")


def _manifest(stage: str, resources: Resources, settings: KubernetesSettings) -> dict[str, Any]:
    """The Job of a stage with its largest class of memory."""
    memory = max(resources.memory_bytes, default=None)
    tag = "ingot store=doctor key=doctor"
    request = JobRequest(
        stage, "0" * 64, tag, settings.mount or "/", "", (), resources, memory, Path("/tmp")
    )
    return job_manifest(request, settings, job_name(request))


def _check_quotas(api: Api, manifests: Mapping[str, Mapping[str, Any]]) -> Iterator[Check]:
    try:
        quotas = api.quotas()
    except UsageError:
        yield Check("quota", None, FORBIDDEN)
        return
    problems, waits = [], []
    for quota in quotas:
        status = quota.get("status") or {}
        hard = status.get("hard") or quota["spec"].get("hard") or {}
        used = status.get("used") or {}
        for stage, manifest in manifests.items():
            for name, amount in quota_amounts(manifest).items():
                if name not in hard:
                    continue
                limit, now = quantity(hard[name]), quantity(used.get(name, "0"))
                text = f"stage {stage}: {name} {amount:f} of {hard[name]}"
                if amount > limit:
                    problems.append(f"{quota['metadata']['name']}: {text}")
                elif amount > limit - now:
                    waits.append(f"{text}, {used[name]} in use")
    if problems:
        yield Check("quota", False, "; ".join(problems), "ask for less, or for a larger quota")
    else:
        names = ", ".join(quota["metadata"]["name"] for quota in quotas) or "none"
        yield Check("quota", True, "; ".join([names, *waits]))


def quota_amounts(manifest: Mapping[str, Any]) -> dict[str, Decimal]:
    """What a Job takes of a quota, under the names that quotas use."""
    pods = manifest["spec"].get("parallelism", 1)
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    amounts = {"pods": Decimal(pods), "count/jobs.batch": Decimal(1)}
    for name, value in container["resources"]["requests"].items():
        total = pods * quantity(value)
        if name in ("cpu", "memory"):
            amounts |= {name: total, f"limits.{name}": total}
        amounts[f"requests.{name}"] = total
    return amounts


def quantity(text: str) -> Decimal:
    """A quantity as Kubernetes writes it, as `500m` or `64Gi`."""
    from kubernetes.utils.quantity import parse_quantity

    return Decimal(parse_quantity(text))


def _check_stage(api: Api, stage: str, manifest: Mapping[str, Any]) -> Check:
    name = f"stage {stage}"
    try:
        api.create_job(manifest, dry_run=True)
    except (IngotError, SubmissionLost) as error:
        words = error.what if isinstance(error, IngotError) else str(error)
        return Check(name, False, words, f"change resources.{stage}, or the pool's settings")
    return Check(name, True, "a dry run of its Job is accepted")
