"""The pool of type `kubernetes`: steps as Jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from artifacts_schema.config import Config
from artifacts_schema.errors import IngotError, UsageError
from artifacts_schema.store import Store
from artifacts_schema.store.lease import local_work
from flows.recipe.dispatch import Job, Pool
from flows.recipe.plan import PlannedStep
from flows.recipe.profile import Resources
from pools.cluster_job import ClusterJob, JobRequest, Scheduler, Watch
from pools.decide import JobState
from pools.kubernetes.client import Api, read_job
from pools.kubernetes.manifests import (
    KEY_LABEL,
    STORE_LABEL,
    job_manifest,
    job_name,
    labels,
    service_manifest,
)
from pools.kubernetes.settings import KubernetesSettings

OURS = "app.kubernetes.io/name=ingot"


class KubernetesScheduler(Scheduler):
    """One namespace of a cluster."""

    def __init__(self, settings: KubernetesSettings) -> None:
        self.settings = settings
        self.poll_seconds, self.stop_seconds = settings.poll_seconds, settings.stop_seconds

    @cached_property
    def api(self) -> Api:
        """The client, made when it is first needed."""
        return Api(self.settings)

    def find(self, tag: str) -> str | None:
        """The name of a Job of this store and key that waits or runs."""
        wanted = labels(tag)
        selector = ",".join(f"{name}={wanted[name]}" for name in (STORE_LABEL, KEY_LABEL))
        for job in self.api.jobs(selector):
            deleted = job["metadata"].get("deletionTimestamp")
            if not deleted and read_job(job, []).phase in ("waiting", "running"):
                return str(job["metadata"]["name"])
        return None

    def submit(self, request: JobRequest) -> str:
        """The name of the new Job."""
        name = job_name(request)
        service = service_manifest(request, self.settings, name)
        if service is not None:
            self.api.create_service(service)
        self.api.create_job(job_manifest(request, self.settings, name))
        if service is not None:
            job = next(one for one in self.api.jobs(OURS) if one["metadata"]["name"] == name)
            self.api.own(name, job)
        return name

    def look(self, jobs: Iterable[str]) -> Mapping[str, JobState]:
        """By one list of Jobs and one of pods."""
        wanted = set(jobs)
        pods: dict[str, list[dict[str, Any]]] = {}
        for pod in self.api.pods(OURS):
            pods.setdefault(pod["metadata"]["labels"].get("job-name", ""), []).append(pod)
        return {
            name: read_job(job, pods.get(name, []))
            for job in self.api.jobs(OURS)
            if (name := job["metadata"]["name"]) in wanted
        }

    def save_and_end(self, job: str) -> None:
        """Delete it: its pods get TERM, and the grace of the pool."""
        self.api.delete_job(job)

    def cancel(self, job: str) -> None:
        """Delete it without grace."""
        self.api.delete_job(job, grace=0)

    def output(self, job: str, folder: Path) -> str:
        """The log of its last pod."""
        try:
            pods = self.api.pods(f"job-name={job}")
        except IngotError:
            return ""
        about = (pod["metadata"] for pod in pods)
        names = [(one.get("creationTimestamp"), one["name"]) for one in about]
        return self.api.log(max(names)[1]) if names else ""


class KubernetesPool(Pool):
    """A namespace of a Kubernetes cluster; the store is a mounted claim, or a bucket."""

    Settings: ClassVar[type[Config]] = KubernetesSettings

    def __init__(self, name: str, settings: Config) -> None:
        super().__init__(name, settings)
        assert isinstance(settings, KubernetesSettings)
        self.kubernetes = settings
        self.watch = Watch(KubernetesScheduler(settings))

    def start(self, store: Store, step: PlannedStep, resources: Resources) -> Job:
        """The Job of a step; it is created at its first `poll`. UsageError for a store that pods do
        not see."""
        settings = self.kubernetes
        if store.backend.local:
            if settings.claim is None:
                raise UsageError(
                    f"no pod sees {store.url}",
                    where=f"pools.{self.name}.claim",
                    hint="name the claim that holds it and its mount, or use a bucket",
                )
            mount = settings.mount or store.url
            if not PurePosixPath(store.url).is_relative_to(mount):
                where = f"pools.{self.name}.mount"
                raise UsageError(f"{store.url} is not below {mount}", where=where)
        assert step.key is not None, "a ready step has a key"
        folder = local_work(store.backend, step.key, "jobs")
        return ClusterJob(self.watch, store, step, resources, folder)
