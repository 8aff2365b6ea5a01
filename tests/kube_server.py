"""A Kubernetes API server for Jobs, pods and services, with a node that runs them as processes.

It plays what the pool depends on, after Kubernetes' documentation of Jobs (pod failure policy,
indexed completion) and pods: strict field names are not checked here but by kubernetes-validate.
`node` decides what becomes of a pod: `run` starts its command on this machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

VERSION_FIELDS = (
    "buildDate", "compiler", "gitCommit", "gitTreeState", "gitVersion", "goVersion", "major",
    "minor", "platform",
)  # fmt: skip


class FakeCluster:
    """The state of a namespace, and what the next requests meet."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.lock = folder, threading.RLock()
        self.objects: dict[str, dict[str, dict[str, Any]]] = {
            "jobs": {},
            "pods": {},
            "services": {},
            "namespaces": {"default": {"metadata": {"name": "default"}}},
            "resourcequotas": {},
            "persistentvolumeclaims": {},
        }
        self.denied: set[tuple[str, str]] = set()
        """Verb and resource that the user may not do."""
        self.backoff = 0.0
        """Seconds before a pod that ended badly is made again; of Kubernetes 10, 20, 40, …"""
        self._hold: dict[str, float] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.node = "run"
        self.lose_reply = self.away = False
        self.refuse: str | None = None
        self.refuse_code = 403
        self.created: list[str] = []
        self.deleted: list[tuple[str, int | None]] = []
        self._count = 0
        self._stop = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        for target in (self._server.serve_forever, self._loop):
            threading.Thread(target=target, daemon=True).start()

    def kubeconfig(self) -> Path:
        """A file that leads a client here."""
        path = self.folder / "kubeconfig"
        parts = {"cluster": {"server": self.url}, "context": {"cluster": "c", "user": "u"}}
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "c", "cluster": parts["cluster"]}],
            "contexts": [{"name": "x", "context": parts["context"]}],
            "users": [{"name": "u", "user": {}}],
        }  # fmt: skip
        path.write_text(json.dumps(config))
        return path

    def stop(self) -> None:
        """End the server, and all processes of pods."""
        self._stop.set()
        self._server.shutdown()
        self._server.server_close()
        for process in self.processes.values():
            process.kill()

    # The node and the Job controller -------------------------------------------------------------

    def pods_of(self, job: str) -> list[dict[str, Any]]:
        """The pods of a Job."""
        pods = self.objects["pods"].values()
        return [pod for pod in pods if pod["metadata"]["labels"]["job-name"] == job]

    def evict(self, pod: str) -> None:
        """As a drained node does: the pod's process ends, with the condition that says why."""
        with self.lock:
            status = self.objects["pods"][pod]["status"]
            status["conditions"] = [{"type": "DisruptionTarget", "status": "True"}]
            self.processes[pod].terminate()

    def _loop(self) -> None:
        while not self._stop.wait(0.05):
            with self.lock:
                for name in list(self.objects["jobs"]):
                    self._control(name)

    def _control(self, name: str) -> None:
        job = self.objects["jobs"][name]
        if job["status"].get("conditions"):
            return
        pods = self.pods_of(name)
        for pod in pods:
            self._follow(pod)
        live = [pod for pod in pods if pod["status"]["phase"] in ("Pending", "Running")]
        if "deletionTimestamp" in job["metadata"]:
            if not live:
                del self.objects["jobs"][name]
            return
        for pod in pods:
            if pod["status"]["phase"] == "Failed" and not pod.get("judged"):
                pod["judged"] = True
                if self._action(job, pod) == "FailJob":
                    self._end(job, "Failed", "PodFailurePolicy")
                    return
                self._hold[name] = time.monotonic() + self.backoff
        done = {self._index(pod) for pod in pods if pod["status"]["phase"] == "Succeeded"}
        if len(done) >= job["spec"].get("completions", 1):
            self._end(job, "Complete", "CompletionsReached")
            return
        running = {self._index(pod) for pod in live}
        for index in range(job["spec"].get("completions", 1)):
            if index not in done | running and time.monotonic() >= self._hold.get(name, 0.0):
                self._make_pod(job, index)

    def _action(self, job: dict[str, Any], pod: dict[str, Any]) -> str:
        """The first rule of the failure policy that matches, as the controller reads them."""
        state = pod["status"]["containerStatuses"][0]["state"]["terminated"]
        for rule in job["spec"]["podFailurePolicy"]["rules"]:
            for wanted in rule.get("onPodConditions", []):
                if wanted in pod["status"].get("conditions", []):
                    return rule["action"]
            codes = rule.get("onExitCodes")
            if codes and (state["exitCode"] in codes["values"]) == (codes["operator"] == "In"):
                return rule["action"]
        return "Count"

    def _end(self, job: dict[str, Any], kind: str, reason: str) -> None:
        job["status"]["conditions"] = [{"type": kind, "status": "True", "reason": reason}]

    def _index(self, pod: dict[str, Any]) -> int:
        return int(pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"])

    def _make_pod(self, job: dict[str, Any], index: int) -> None:
        self._count += 1
        name = f"{job['metadata']['name']}-{index}-{self._count}"
        template = job["spec"]["template"]
        pod = {
            "metadata": {
                "name": name,
                "labels": {**template["metadata"]["labels"], "job-name": job["metadata"]["name"]},
                "annotations": {"batch.kubernetes.io/job-completion-index": str(index)},
                "creationTimestamp": f"2026-01-01T00:{self._count // 60:02}:{self._count % 60:02}Z",
            },
            "spec": template["spec"],
            "status": {"phase": "Pending", "conditions": [], "containerStatuses": []},
        }
        self.objects["pods"][name] = pod
        if self.node in ("ImagePullBackOff", "Unschedulable"):
            waiting = {"reason": self.node, "message": "as the test wants it"}
            if self.node == "Unschedulable":
                pod["status"]["conditions"] = [
                    {"type": "PodScheduled", "status": "False", **waiting}
                ]
            else:
                pod["status"]["containerStatuses"] = [
                    {"name": "stage", "state": {"waiting": waiting}}
                ]
            return
        (container,) = template["spec"]["containers"]
        values = {one["name"]: one["value"] for one in container["env"]}
        values["JOB_COMPLETION_INDEX"] = str(index)
        command = [
            part.replace("$(JOB_COMPLETION_INDEX)", str(index)) for part in container["command"]
        ]
        with open(self.folder / f"{name}.log", "wb") as log:
            self.processes[name] = subprocess.Popen(
                command, env={**os.environ, **values}, stdout=log, stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        pod["status"]["phase"] = "Running"

    def _follow(self, pod: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        process = self.processes.get(name)
        if pod["status"]["phase"] != "Running" or process is None or process.poll() is None:
            return
        code = process.returncode if process.returncode >= 0 else 128 - process.returncode
        killed = self.node == "OOMKilled" and code == 137
        terminated = {"exitCode": code, "reason": "OOMKilled" if killed else "Error"}
        pod["status"]["containerStatuses"] = [
            {"name": "stage", "state": {"terminated": terminated}}
        ]
        pod["status"]["phase"] = "Failed" if code else "Succeeded"

    # The API -------------------------------------------------------------------------------------

    def create(self, kind: str, value: dict[str, Any]) -> dict[str, Any]:
        """Keep an object."""
        with self.lock:
            name = value["metadata"]["name"]
            value["metadata"]["uid"] = f"uid-{name}"
            value["status"] = {}
            self.objects[kind][name] = value
            self.created.append(name)
            return value

    def delete(self, kind: str, name: str, grace: int | None) -> bool:
        """Mark a Job as being deleted; its pods' processes get TERM, or KILL without grace."""
        with self.lock:
            job = self.objects[kind].get(name)
            if job is None:
                return False
            job["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            self.deleted.append((name, grace))
            for pod in self.pods_of(name):
                pod_name = pod["metadata"]["name"]
                if pod_name in self.processes:
                    process = self.processes[pod_name]
                    process.kill() if grace == 0 else process.terminate()
                else:
                    pod["status"]["phase"] = "Failed"
            return True

    def remove(self, job: str) -> None:
        """As `kubectl delete job` does it: the Job is gone at once, its pods get TERM."""
        with self.lock:
            del self.objects["jobs"][job]
            for pod in self.pods_of(job):
                self.processes[pod["metadata"]["name"]].terminate()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        cluster = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments: Any) -> None:
                pass

            def reply(self, value: Any, code: int = 200) -> None:
                body = value.encode() if isinstance(value, str) else json.dumps(value).encode()
                self.send_response(code)
                kind = "text/plain" if isinstance(value, str) else "application/json"
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def refused(self, code: int, message: str) -> None:
                self.reply({"kind": "Status", "message": message, "code": code}, code)

            def body(self) -> Any:
                return json.loads(
                    self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}"
                )

            def do_GET(self) -> None:
                if cluster.away:
                    return self.refused(503, "the server is currently unable to handle the request")
                url = urlparse(self.path)
                parts = url.path.split("/")
                if parts[-1] == "log":
                    log = cluster.folder / f"{parts[-2]}.log"
                    return self.reply(log.read_text() if log.exists() else "")
                if parts[1] == "version":
                    version = dict.fromkeys(VERSION_FIELDS, "") | {"gitVersion": "v1.36.1"}
                    return self.reply(version)
                if parts[-1] not in cluster.objects:
                    with cluster.lock:
                        value = cluster.objects[parts[-2]].get(parts[-1])
                        if value is None:
                            return self.refused(404, f'{parts[-2]} "{parts[-1]}" not found')
                        return self.reply(json.loads(json.dumps(value)))
                wanted = parse_qs(url.query).get("labelSelector", [""])[0]
                pairs = [pair.split("=", 1) for pair in wanted.split(",") if pair]
                with cluster.lock:
                    items = [
                        json.loads(json.dumps(one))
                        for one in cluster.objects[parts[-1]].values()
                        if all(one["metadata"]["labels"].get(k) == v for k, v in pairs)
                    ]
                return self.reply({"kind": "List", "items": items, "metadata": {}})

            def do_POST(self) -> None:
                value = self.body()
                if cluster.away:
                    return self.refused(503, "the server is currently unable to handle the request")
                if self.path.split("?")[0].endswith("selfsubjectaccessreviews"):
                    wish = value["spec"]["resourceAttributes"]
                    value["status"] = {
                        "allowed": (wish["verb"], wish["resource"]) not in cluster.denied
                    }
                    return self.reply(value, 201)
                if cluster.refuse is not None:
                    return self.refused(cluster.refuse_code, cluster.refuse)
                if "dryRun=All" in self.path:
                    return self.reply(value, 201)
                made = cluster.create(urlparse(self.path).path.split("/")[-1], value)
                if cluster.lose_reply:
                    cluster.lose_reply = False
                    self.close_connection = True
                    self.connection.close()
                    return None
                return self.reply(made, 201)

            def do_PATCH(self) -> None:
                parts = urlparse(self.path).path.split("/")
                with cluster.lock:
                    target = cluster.objects[parts[-2]][parts[-1]]
                    target["metadata"].update(self.body()["metadata"])
                self.reply(target)

            def do_DELETE(self) -> None:
                url = urlparse(self.path)
                parts, query, body = url.path.split("/"), parse_qs(url.query), self.body()
                grace = query.get("gracePeriodSeconds", [body.get("gracePeriodSeconds")])[0]
                grace = None if grace is None else int(grace)
                if cluster.delete(parts[-2], parts[-1], grace):
                    self.reply({"kind": "Status", "status": "Success"})
                else:
                    self.refused(404, f'jobs.batch "{parts[-1]}" not found')

        return Handler


def wait_until(condition: Any, seconds: float = 60.0) -> Any:
    """The first true value."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return value
