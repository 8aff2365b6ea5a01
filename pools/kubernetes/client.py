"""What the pool asks of Kubernetes' API, by its official client; and what the answers mean."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from artifacts_schema.errors import IngotError, UsageError
from pools.cluster_job import SubmissionLost
from pools.decide import JobState
from pools.kubernetes.manifests import CONTAINER
from pools.kubernetes.settings import KubernetesSettings

SECONDS = 30.0
NEVER = ("InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError")
"""Reasons for which a container waits that do not pass by themselves."""
MISSING_IMAGE = "ImagePullBackOff"
"""After some failures; a single `ErrImagePull` may be a registry that is away."""
REFUSED = (400, 403, 404, 409, 413, 422)
"""Codes of a request that the same request would get again."""


class Api:
    """Jobs, pods and services of one namespace. IngotError where the API cannot be reached."""

    def __init__(self, settings: KubernetesSettings) -> None:
        try:
            from kubernetes import client, config
        except ImportError:
            raise UsageError(
                "pools of type kubernetes need the package kubernetes",
                hint="pip install 'ingot[kubernetes]'",
            ) from None
        try:
            file = os.environ.get("KUBECONFIG")  # The client reads it once, when it is imported.
            api = config.new_client_from_config(file, context=settings.context)
        except config.ConfigException as error:
            try:
                config.load_incluster_config()
                api = client.ApiClient()
            except config.ConfigException:
                raise UsageError(
                    f"no access to a cluster: {error}", hint="set KUBECONFIG, or run inside of one"
                ) from None
        api.configuration.retries = False
        self.namespace = settings.namespace
        self._batch, self._core = client.BatchV1Api(api), client.CoreV1Api(api)
        self._reviews, self._version = client.AuthorizationV1Api(api), client.VersionApi(api)

    def create_job(self, manifest: Mapping[str, Any], *, dry_run: bool = False) -> None:
        """Create a Job, or only let the API judge it; UsageError where it is refused,
        SubmissionLost without an answer."""
        more = {"dry_run": "All"} if dry_run else {}
        with _explain(lost=True):
            self._batch.create_namespaced_job(
                self.namespace, manifest, _request_timeout=SECONDS, field_validation="Strict",
                **more,
            )  # fmt: skip

    def create_service(self, manifest: Mapping[str, Any]) -> None:
        """Create a service."""
        with _explain(lost=True):
            self._core.create_namespaced_service(
                self.namespace, manifest, _request_timeout=SECONDS, field_validation="Strict"
            )

    def own(self, name: str, owner: Mapping[str, Any]) -> None:
        """Let a service go with a Job."""
        reference = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
        }
        patch = {"metadata": {"ownerReferences": [reference]}}
        with _explain():
            self._core.patch_namespaced_service(
                name, self.namespace, patch, _request_timeout=SECONDS
            )

    def jobs(self, selector: str) -> list[dict[str, Any]]:
        """The Jobs with these labels."""
        return self._list(self._batch.list_namespaced_job, selector)

    def job(self, name: str) -> dict[str, Any] | None:
        """One Job by its name; None only where the API says that there is none."""
        return self._read(self._batch.read_namespaced_job, name, self.namespace)

    def pods(self, selector: str) -> list[dict[str, Any]]:
        """The pods with these labels."""
        return self._list(self._core.list_namespaced_pod, selector)

    def version(self) -> str:
        """The version of the API server."""
        with _explain():
            return str(self._version.get_code(_request_timeout=SECONDS).git_version)

    def find_namespace(self) -> dict[str, Any] | None:
        """The namespace, or None; UsageError where this user may not ask."""
        return self._read(self._core.read_namespace, self.namespace)

    def claim(self, name: str) -> dict[str, Any] | None:
        """A volume claim, or None; UsageError where this user may not ask."""
        return self._read(self._core.read_namespaced_persistent_volume_claim, name, self.namespace)

    def quotas(self) -> list[dict[str, Any]]:
        """The resource quotas of the namespace; UsageError where this user may not ask."""
        return self._list(self._core.list_namespaced_resource_quota, "")

    def is_allowed(self, verb: str, group: str, resource: str, subresource: str = "") -> bool:
        """Whether this user may do it in the namespace, by a SelfSubjectAccessReview."""
        attributes = {
            "namespace": self.namespace,
            "verb": verb,
            "group": group,
            "resource": resource,
            "subresource": subresource,
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        with _explain():
            reply = self._reviews.create_self_subject_access_review(
                review, _request_timeout=SECONDS, _preload_content=False
            )
            return bool(json.loads(reply.data)["status"]["allowed"])

    def _read(self, call: Callable[..., Any], *names: str) -> dict[str, Any] | None:
        """One object as the API writes it; None where the API, no proxy before it, has none."""
        from kubernetes.client import ApiException

        with _explain():
            try:
                reply = call(*names, _request_timeout=SECONDS, _preload_content=False)
            except ApiException as error:
                if error.status == 404 and _message(error.body):
                    return None
                raise
            value: dict[str, Any] = json.loads(reply.data)
            return value

    def _list(self, call: Callable[..., Any], selector: str) -> list[dict[str, Any]]:
        """As the API writes them: the client's types refuse fields that they do not know."""
        with _explain():
            reply = call(
                self.namespace,
                label_selector=selector,
                _request_timeout=SECONDS,
                _preload_content=False,
            )
            items: list[dict[str, Any]] = json.loads(reply.data)["items"]
            return items

    def delete_job(self, name: str, *, grace: int | None = None) -> None:
        """Delete a Job and its pods, which are asked to end first; no-op if it is gone."""
        from kubernetes.client import ApiException

        with _explain():
            try:
                self._batch.delete_namespaced_job(
                    name,
                    self.namespace,
                    propagation_policy="Foreground",
                    grace_period_seconds=grace,
                    _request_timeout=SECONDS,
                )
            except ApiException as error:
                if error.status != 404:
                    raise

    def log(self, pod: str) -> str:
        """What a pod printed; empty where it is gone."""
        try:
            with _explain():
                text = self._core.read_namespaced_pod_log(
                    pod, self.namespace, container=CONTAINER, tail_lines=200,
                    _request_timeout=SECONDS,
                )  # fmt: skip
                return str(text)
        except IngotError:
            return ""


@contextmanager
def _explain(*, lost: bool = False) -> Iterator[None]:
    """Errors of the client as ours; with `lost`, one without an answer is SubmissionLost."""
    from kubernetes.client import ApiException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except ApiException as error:
        words = _message(error.body) or str(error.reason)
        if error.status in REFUSED:
            raise UsageError(words, where="kubernetes") from None
        text = f"the API answers {error.status}: {words}"
        raise (SubmissionLost(text) if lost else IngotError(text, where="kubernetes")) from None
    except HTTPError as error:
        text = f"the API cannot be reached: {error}"
        raise (SubmissionLost(text) if lost else IngotError(text, where="kubernetes")) from None


def _message(body: Any) -> str:
    try:
        return str(json.loads(body)["message"])
    except (TypeError, ValueError, KeyError):
        return ""


def read_job(job: Mapping[str, Any], pods: Sequence[Mapping[str, Any]]) -> JobState:
    """The state of a Job by its conditions, and by its pods where these say more."""
    status = job.get("status") or {}
    for condition in status.get("conditions") or []:
        if condition.get("status") != "True":
            continue
        if condition["type"] == "Complete":
            return JobState("ended", "done", "Complete", 0)
        if condition["type"] == "Failed":
            return _failed(condition, pods)
    if (job.get("metadata") or {}).get("deletionTimestamp"):
        return JobState("running", reason="it is being deleted")
    waiting = [reason for pod in pods if (reason := _waits_for(pod)) is not None]
    never = any(word in reason for reason in waiting for word in (*NEVER, MISSING_IMAGE))
    works = any((pod.get("status") or {}).get("phase") == "Running" for pod in pods)
    if never or not works:  # Where some pods run and others wait, a stop must let those save.
        reason = waiting[0] if waiting else _last_end(pods) or "no pod yet"
        return JobState("waiting", "never" if never else "", reason)
    return JobState("running")


def _failed(condition: Mapping[str, Any], pods: Sequence[Mapping[str, Any]]) -> JobState:
    reason = f"{condition.get('reason', 'Failed')}: {condition.get('message', '')}".strip(": ")
    ends = [end for pod in pods if (end := _termination(pod)) is not None]
    if any(end.get("reason") == "OOMKilled" for end in ends):
        return JobState("ended", "memory", "OOMKilled", 137)
    if condition.get("reason") == "DeadlineExceeded":
        return JobState("ended", "again", reason, None)
    codes = [int(end["exitCode"]) for end in ends if int(end.get("exitCode", 0))]
    code = next((one for one in codes if one != 75), codes[0] if codes else None)
    return JobState("ended", "failed" if code is not None else "again", reason, code)


def pod_index(pod: Mapping[str, Any]) -> str:
    """Its index of an indexed Job; the same for all pods of another one."""
    annotations = pod["metadata"].get("annotations") or {}
    return str(annotations.get("batch.kubernetes.io/job-completion-index", ""))


def _waits_for(pod: Mapping[str, Any]) -> str | None:
    """Why a pod has not started; None for one that has."""
    status = pod.get("status") or {}
    if status.get("phase") != "Pending":
        return None
    for container in status.get("containerStatuses") or []:
        waits = (container.get("state") or {}).get("waiting")
        if waits and waits.get("reason") != "ContainerCreating":
            return f"{waits.get('reason')}: {waits.get('message', '')}".strip(": ")
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"{condition.get('reason')}: {condition.get('message', '')}".strip(": ")
    return "Pending"


def _last_end(pods: Sequence[Mapping[str, Any]]) -> str | None:
    """How the newest of the pods that ended did, for a Job that waits to make another."""
    ends = [
        (str(pod["metadata"].get("creationTimestamp")), int(end.get("exitCode", 0)))
        for pod in pods
        if (end := _termination(pod)) is not None
    ]
    return f"the last pod ended with exit code {max(ends)[1]}" if ends else None


def _termination(pod: Mapping[str, Any]) -> Mapping[str, Any] | None:
    for container in (pod.get("status") or {}).get("containerStatuses") or []:
        end = (container.get("state") or {}).get("terminated")
        if end:
            return dict(end)
    return None
