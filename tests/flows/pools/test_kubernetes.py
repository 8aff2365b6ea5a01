"""Steps as Jobs: manifests by Kubernetes' own schemas, runs against an API server that plays."""

from __future__ import annotations

import copy
import os
import signal
import sys
import time

import pytest
from kube_server import FakeCluster, wait_until

from artifacts_schema.errors import EXIT_FAILED, EXIT_RESUME, EXIT_USAGE, IngotError, UsageError
from artifacts_schema.store import layout
from flows.recipe.dispatch import Dispatcher
from flows.recipe.doctor import diagnose
from flows.recipe.execute import execute
from flows.recipe.profile import Resources, load_profile
from pools.cluster_job import JobRequest
from pools.kubernetes.client import read_job
from pools.kubernetes.manifests import job_manifest, job_name, service_manifest
from pools.kubernetes.pool import KubernetesScheduler
from pools.kubernetes.settings import KubernetesSettings

pytest.importorskip("kubernetes", reason="needs kubernetes: pip install 'ingot[kubernetes]'")

INDEX = "batch.kubernetes.io/job-completion-index"
VERSIONS = ("1.31", "1.34", "1.36")


def request(folder, **resources):
    return JobRequest(
        "import_model", "ab" * 32, f"ingot store=12ab34cd56ef key={'ab' * 32}", "s3://bucket/store",
        "s3://bucket/store/work/spec.json", ("--force",), Resources(**resources), 10**9, folder,
    )  # fmt: skip


FULL = KubernetesSettings.parse(
    {
        "image": "registry.example/ingot:0.1",
        "namespace": "llm",
        "claim": "store",
        "mount": "/shared",
        "environment": {"NCCL_SOCKET_IFNAME": "eth0"},
        "secrets": ["bucket"],
        "service_account": "ingot",
        "node_selector": {"gpu": "h100"},
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
    },
    where="here",
)
PLAIN = KubernetesSettings(image="ingot")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("settings", [PLAIN, FULL], ids=["plain", "full"])
@pytest.mark.parametrize("nodes", [1, 2])
def test_manifests_are_those_of_kubernetes(tmp_path, version, settings, nodes):
    validate = pytest.importorskip("kubernetes_validate")
    one = request(tmp_path, nodes=nodes, gpus=8, cpus=16, memory="1 GB", time="4 h")
    name = job_name(one)
    job = job_manifest(one, settings, name)
    validate.validate(job, version, strict=True)
    service = service_manifest(one, settings, name)
    assert (service is None) == (nodes == 1)
    if service is not None:
        validate.validate(service, version, strict=True)
    broken = copy.deepcopy(job)
    broken["spec"]["template"]["spec"]["containers"][0]["imagee"] = "x"
    with pytest.raises(validate.ValidationError):
        validate.validate(broken, version, strict=True)


def test_what_a_job_asks_for(tmp_path):
    one = request(tmp_path, nodes=2, gpus=8, cpus=16, memory="1 GB", time="4 h")
    name = job_name(one)
    assert len(name) <= 63
    assert name != job_name(one)
    job = job_manifest(one, FULL, name)
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    amounts = {"cpu": "16", "memory": "1000000000", "nvidia.com/gpu": "8"}
    assert container["resources"] == {"requests": amounts, "limits": amounts}
    assert (spec["completions"], spec["parallelism"], spec["completionMode"]) == (2, 2, "Indexed")
    assert spec["activeDeadlineSeconds"] == 4 * 3600
    assert pod["subdomain"] == name
    assert container["command"][-2:] == ["--machine", "$(JOB_COMPLETION_INDEX)"]
    assert all(len(value) <= 63 for value in job["metadata"]["labels"].values())
    assert pod["securityContext"]["runAsNonRoot"]


PROFILE = """\
name: pods
jobs: 4
pools:
  pods:
    type: kubernetes
    image: ingot
    python: {python}
    claim: store
    mount: {mount}
    poll_seconds: 0.2
    stop_seconds: 20
resources:
  default: {{pool: pods, cpus: 1, memory: [1 GB, 2 GB]}}
"""
NAPS = """\
name: sleepy
snapshots:
  crawl: {files: ["data/a/*.txt"]}
steps:
  naps: {stage: naps, config: {shards: 12, seconds: SECONDS}, inputs: {snapshot: crawl}}
"""


@pytest.fixture
def cluster(tmp_path, monkeypatch, installed_stages):
    cluster = FakeCluster(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig()))
    yield cluster
    cluster.stop()


@pytest.fixture
def profile(project, tmp_path):
    path = project / "pods.yaml"
    path.write_text(PROFILE.format(python=sys.executable, mount=tmp_path))
    return str(path)


@pytest.fixture
def naps(project, open_pipeline, profile):
    def make(seconds):
        recipe = project / "sleepy.yaml"
        recipe.write_text(NAPS.replace("SECONDS", str(seconds)))
        return open_pipeline(recipe=recipe, profile=profile)

    return make


@pytest.fixture
def start(naps, store, cluster):
    """`start(seconds)` → the job of the step, once it has a pod that works."""

    def begin(seconds, done=2):
        pipeline = naps(seconds)
        step = pipeline.plan().steps[0]
        job = Dispatcher(pipeline.profile)(store, step)
        folder = layout.work(step.key, "done")
        wait_until(lambda: job.poll() is None and len(store.backend.files(folder)) >= done)
        return job, step

    return begin


def end_of(job, seconds=60.0):
    codes = []

    def ended():
        codes.append(job.poll())
        return codes[-1] is not None

    wait_until(ended, seconds)
    return codes[-1]


def one_pod(cluster):
    (pod,) = [p for p in cluster.objects["pods"].values() if p["status"]["phase"] == "Running"]
    return pod["metadata"]["name"]


@pytest.mark.faults
def test_a_recipe_makes_in_pods_what_it_makes_here(open_pipeline, profile, cluster, store, inline):
    from artifacts_schema.store.gc import remove_artifact

    plan = execute(open_pipeline(profile=profile))
    assert plan.is_done
    made = [{n: o.digest for n, o in step.manifest.outputs.items()} for step in plan.steps]
    assert len(cluster.objects["jobs"]) == len(plan.steps)
    for step in plan.steps:
        remove_artifact(store, step.manifest)
    again = execute(open_pipeline(), dispatch=inline)
    assert [{n: o.digest for n, o in step.manifest.outputs.items()} for step in again.steps] == made


@pytest.mark.faults
@pytest.mark.parametrize("how", ["evicted", "stopped"])
def test_a_pod_that_is_taken_away_is_made_again(start, cluster, store, how):
    job, step = start(0.2)
    pod = one_pod(cluster)
    if how == "evicted":
        cluster.evict(pod)
    else:  # It saves and ends with exit code 75.
        cluster.processes[pod].send_signal(signal.SIGUSR2)
    assert end_of(job) == 0
    assert store.manifest(step.stage, step.key) is not None
    assert len(cluster.objects["jobs"]) == 1
    assert len(cluster.objects["pods"]) == 2


@pytest.mark.faults
def test_a_container_that_was_killed_is_continued_by_another_job(
    start, cluster, store, monkeypatch
):
    """Exit code 137 without OOMKilled: no fault of the step."""
    monkeypatch.setattr("pools.cluster_job.DEAD_SECONDS", 2.0)
    job, step = start(0.2)
    os.killpg(cluster.processes[one_pod(cluster)].pid, signal.SIGKILL)
    assert end_of(job) == 0
    assert store.manifest(step.stage, step.key) is not None
    assert len(cluster.objects["jobs"]) == 2


@pytest.mark.faults
def test_memory_that_ran_out_takes_the_next_class(start, cluster, store):
    job, _ = start(0.2)
    cluster.node = "OOMKilled"
    os.killpg(cluster.processes[one_pod(cluster)].pid, signal.SIGKILL)
    wait_until(lambda: job.poll() is None and len(cluster.objects["jobs"]) == 2)
    cluster.node = "run"
    assert end_of(job) == 0
    sizes = [
        one["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
        for one in cluster.objects["jobs"].values()
    ]
    assert sizes == ["1000000000", "2000000000"]


@pytest.mark.faults
def test_a_lost_reply_makes_no_second_job(naps, cluster):
    cluster.lose_reply = True
    assert execute(naps(0.0)).is_done
    assert len(cluster.created) == 1


def test_an_api_that_is_away_is_waited_for(naps, store, cluster):
    pipeline = naps(0.0)
    job = Dispatcher(pipeline.profile)(store, pipeline.plan().steps[0])
    cluster.away = True
    assert job.poll() is None
    assert "unable to handle the request" in job.events()[0]["text"]
    cluster.away = False
    assert end_of(job) == 0


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (403, "jobs.batch is forbidden: exceeded quota: team, requested: limits.cpu=1"),
        (404, 'namespaces "llm" not found'),
    ],
)
def test_what_the_api_refuses_is_an_error_in_its_own_words(naps, cluster, code, words):
    cluster.refuse, cluster.refuse_code = words, code
    with pytest.raises(UsageError, match=words) as caught:
        execute(naps(0.0))
    assert caught.value.exit_code == EXIT_USAGE
    assert not cluster.objects["jobs"]


def test_an_image_that_does_not_exist_is_named(naps, cluster):
    cluster.node = "ImagePullBackOff"
    began = time.monotonic()
    with pytest.raises(IngotError, match="ImagePullBackOff"):
        execute(naps(0.0))
    assert time.monotonic() - began < 30


def test_a_pod_that_waits_says_why_and_goes_when_stopped(naps, store, cluster):
    cluster.node = "Unschedulable"
    pipeline = naps(0.0)
    job = Dispatcher(pipeline.profile)(store, pipeline.plan().steps[0])
    wait_until(lambda: job.poll() is None and "Unschedulable" in str(job.events()))
    job.stop(wait=lambda seconds: time.sleep(0.05))
    assert cluster.deleted[0][1] == 0
    wait_until(lambda: not cluster.objects["jobs"])


@pytest.mark.faults
def test_a_stop_lets_a_pod_save(start, cluster, store):
    job, step = start(0.2)
    job.stop(wait=lambda seconds: time.sleep(0.05))
    assert cluster.deleted[0][1] is None
    assert not cluster.objects["jobs"]
    assert cluster.processes[next(iter(cluster.processes))].wait(20) == EXIT_RESUME
    assert store.manifest(step.stage, step.key) is None


@pytest.mark.faults
def test_pods_that_stop_again_and_again_end_the_step(naps, store, cluster, project):
    """Exit code 75 is ignored by the failure policy, so the Job itself would go on for ever."""
    ends = project / "ends.sh"
    ends.write_text("#!/bin/sh\nexit 75\n")
    ends.chmod(0o755)
    text = (project / "pods.yaml").read_text().replace(sys.executable, str(ends))
    (project / "pods.yaml").write_text(text)
    pipeline = naps(0.0)
    cluster.backoff = 0.7
    with pytest.raises(IngotError, match=r"3 times without progress.*exit code 75") as caught:
        execute(pipeline)
    assert caught.value.exit_code == EXIT_FAILED
    wait_until(lambda: not cluster.objects["jobs"])
    assert len(cluster.created) == 1
    assert 4 <= len(cluster.objects["pods"]) <= 5


@pytest.mark.faults
def test_a_job_that_a_person_deleted_stays_deleted(start, cluster, store):
    job, step = start(0.2)
    (name,) = cluster.objects["jobs"]
    cluster.remove(name)
    assert end_of(job, 20) == EXIT_RESUME
    assert "deleted" in job.last_words()
    assert cluster.created == [name]
    assert store.manifest(step.stage, step.key) is None


def test_an_api_that_is_away_has_deleted_nothing(start, cluster, store):
    job, step = start(0.2)
    cluster.away = True
    for _ in range(5):
        assert job.poll() is None
        time.sleep(0.25)
    cluster.away = False
    assert end_of(job) == 0
    assert store.manifest(step.stage, step.key) is not None


def test_restarts_are_counted_by_the_index_that_had_most_pods(cluster):
    """Two pods of two indexes are one start; a pod that vanished was one all the same."""
    scheduler = KubernetesScheduler(PLAIN)
    pods = [
        {"metadata": {"name": name, "annotations": {INDEX: name[0]}}} for name in ("0a", "1a", "0b")
    ]
    assert scheduler._restarts("job", pods[:2]) == 0
    assert scheduler._restarts("job", pods) == 1
    assert scheduler._restarts("job", pods[1:]) == 1


def test_a_store_that_no_pod_sees_is_refused(project, open_pipeline, profile, store, cluster):
    text = (project / "pods.yaml").read_text().replace("    claim: store\n", "")
    (project / "pods.yaml").write_text(text)
    pipeline = open_pipeline(profile=profile)
    step = next(one for one in pipeline.plan().steps if one.is_ready)
    with pytest.raises(UsageError) as caught:
        Dispatcher(pipeline.profile)(store, step)
    assert caught.value.where == "pools.pods.claim"


def test_a_job_of_which_some_pods_run_is_running():
    """Else a stop would remove it without grace."""
    running = {"status": {"phase": "Running"}}
    pending = {"status": {"phase": "Pending"}}
    assert read_job({}, [running, pending]).phase == "running"
    assert read_job({}, [pending, pending]).phase == "waiting"
    state = {"waiting": {"reason": "ImagePullBackOff"}}
    stuck = {"status": {"phase": "Pending", "containerStatuses": [{"state": state}]}}
    assert read_job({}, [running, stuck]).cause == "never"


# ingot doctor ------------------------------------------------------------------------------------


@pytest.fixture
def doctor(profile, store, cluster):
    """`doctor(wait)` → the checks by name."""
    claim = {"spec": {"accessModes": ["ReadWriteMany"]}, "status": {"phase": "Bound"}}
    cluster.objects["persistentvolumeclaims"]["store"] = claim

    def run(wait=0.0):
        checks = diagnose(load_profile(profile, store.backend.local_path("")), store.url, wait=wait)
        return {check.name: check for check in checks}

    return run


@pytest.mark.full
def test_doctor_finds_all_well(doctor, cluster, store):
    checks = doctor(wait=120.0)
    assert [check for check in checks.values() if not check.ok] == []
    wanted = ["API", "namespace", "rights", "claim", "quota", "stage default", "node", "store",
              "clock", "same Ingot", "versions", "resources"]  # fmt: skip
    assert [name for name in checks if name.startswith("pods: ")] == [f"pods: {w}" for w in wanted]
    assert len(cluster.created) == 1, "a dry run makes no Job"
    assert not store.backend.folders("work")


def test_doctor_names_what_the_user_may_not_do(doctor, cluster):
    cluster.denied |= {("create", "services"), ("get", "pods")}
    checks = doctor()
    assert checks["pods: rights"].text == "may not create services, get pods/log"


@pytest.mark.parametrize(
    ("kind", "name", "check"),
    [("namespaces", "default", "namespace"), ("persistentvolumeclaims", "store", "claim")],
)
def test_doctor_names_what_is_missing(doctor, cluster, kind, name, check):
    del cluster.objects[kind][name]
    checks = doctor()
    assert checks[f"pods: {check}"].ok is False
    assert name in checks[f"pods: {check}"].text


def test_doctor_names_a_claim_that_only_one_node_mounts(doctor, cluster):
    claim = cluster.objects["persistentvolumeclaims"]["store"]
    claim["spec"]["accessModes"] = ["ReadWriteOnce"]
    assert doctor()["pods: claim"].ok is False


def test_doctor_names_a_quota_that_no_job_fits_into(doctor, cluster):
    """A step has one CPU and at most 2 GB (2 * 10**9 bytes); 1.5 GiB are 1,610,612,736 bytes."""
    hard = {"limits.memory": "1.5Gi", "requests.cpu": "1500m"}
    quota = {
        "metadata": {"name": "team", "labels": {}},
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": {"requests.cpu": "1"}},
    }
    cluster.objects["resourcequotas"]["team"] = quota
    check = doctor()["pods: quota"]
    assert check.ok is False
    assert check.text == "team: stage default: limits.memory 2000000000 of 1.5Gi"
    hard["limits.memory"] = "64Gi"
    check = doctor()["pods: quota"]
    assert check.ok
    assert check.text == "team; stage default: requests.cpu 1 of 1500m, 1 in use"


def test_doctor_names_what_admission_refuses(doctor, cluster):
    cluster.refuse = "admission webhook denied the request: no image from there"
    assert "no image from there" in doctor()["pods: stage default"].text


def test_doctor_names_an_api_that_does_not_answer(doctor, cluster):
    cluster.away = True
    check = doctor()["pods: scheduler"]
    assert check.ok is False
    assert "unable to handle the request" in check.text


def test_doctor_names_why_a_pod_does_not_start(doctor, cluster):
    cluster.node = "Unschedulable"
    assert "Unschedulable" in doctor(wait=1.0)["pods: node"].text
    wait_until(lambda: not cluster.objects["jobs"])
    cluster.node = "ImagePullBackOff"
    assert "can never start: ImagePullBackOff" in doctor(wait=60.0)["pods: node"].text
    wait_until(lambda: not cluster.objects["jobs"])
