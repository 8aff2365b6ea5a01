"""The pool of type `kubernetes`: steps as Jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from artifacts_schema.config import Config
from artifacts_schema.errors import IngotError, UsageError
from artifacts_schema.store import Store
from artifacts_schema.store.lease import local_work
from flows.recipe.dispatch import Check, Job, Pool, ProbeAnswer
from flows.recipe.plan import PlannedStep
from flows.recipe.profile import Resources
from pools.cluster_job import ClusterJob, JobRequest, Scheduler, Watch
from pools.decide import JobState
from pools.kubernetes.client import Api, pod_index, read_job
from pools.kubernetes.doctor import check_kubernetes
from pools.kubernetes.manifests import (
    KEY_LABEL,
    STORE_LABEL,
    job_manifest,
    job_name,
    labels,
    service_manifest,
)
from pools.kubernetes.settings import KubernetesSettings
from pools.probe_job import ProbeJob, probe_request

OURS = "app.kubernetes.io/name=ingot"


class KubernetesScheduler(Scheduler):
    """One namespace of a cluster."""

    def __init__(self, settings: KubernetesSettings) -> None:
        self.settings = settings
        self.poll_seconds, self.stop_seconds = settings.poll_seconds, settings.stop_seconds
        self._pods: dict[str, set[tuple[str, str]]] = {}
        """Job → index and name of every pod that it ever had: one that is drained vanishes."""

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
        """By one list of Jobs and one of pods.

        A Job that is in no list and that the API itself calls missing was deleted by somebody: no
        restart of the API server or of a controller removes one, and one that ended is kept for a
        day. So it counts as cancelled, as one does that `scancel` removed.
        """
        wanted = set(jobs)
        pods: dict[str, list[dict[str, Any]]] = {}
        for pod in self.api.pods(OURS):
            pods.setdefault(pod["metadata"]["labels"].get("job-name", ""), []).append(pod)
        by_name = {job["metadata"]["name"]: job for job in self.api.jobs(OURS)}
        states = {}
        for name in wanted:
            job = by_name.get(name) or self.api.job(name)
            if job is None:
                self._pods.pop(name, None)
                states[name] = JobState("ended", "cancelled", "its Job was deleted")
            else:
                own = pods.get(name, [])
                states[name] = replace(read_job(job, own), restarts=self._restarts(name, own))
        return states

    def _restarts(self, job: str, pods: Iterable[Mapping[str, Any]]) -> int:
        """How often its pods were made again, by the index that had the most. Pods that the failure
        policy ignores (exit code 75, drained) are in no count of the Job's status."""
        seen = self._pods.setdefault(job, set())
        seen.update((pod_index(pod), pod["metadata"]["name"]) for pod in pods)
        return max(Counter(index for index, _ in seen).values(), default=1) - 1

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
        self._check_store(store)
        assert step.key is not None, "a ready step has a key"
        folder = local_work(store.backend, step.key, "jobs")
        return ClusterJob(self.watch, store, step, resources, folder)

    def doctor(self, resources: Mapping[str, Resources]) -> Iterator[Check]:
        """The API, namespace, rights, claim and quota, and a dry run of each stage's Job."""
        return check_kubernetes(
            KubernetesScheduler(self.kubernetes).api, self.kubernetes, resources
        )

    def probe(self, store: Store, key: str, resources: Resources, wait: float) -> ProbeAnswer:
        """One Job of one pod."""
        self._check_store(store)
        folder = local_work(store.backend, key, "jobs")
        request = probe_request(store, key, resources, folder)
        return ProbeJob(KubernetesScheduler(self.kubernetes), store, request).run(wait)

    def _check_store(self, store: Store) -> None:
        """Raise UsageError for a store that no pod sees."""
        settings = self.kubernetes
        if not store.backend.local:
            return
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
