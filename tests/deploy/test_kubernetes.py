"""The plain manifests and the base job template, by the schemas of Kubernetes and by our rules."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from pools.kubernetes.doctor import RIGHTS

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes"
VERSIONS = ("1.31", "1.34", "1.36")
OBJECTS: list[dict[str, Any]] = [
    one for path in sorted(FOLDER.glob("*.yaml")) for one in yaml.safe_load_all(path.read_text())
]
TEMPLATE = json.loads((FOLDER / "prefect" / "base-job-template.json").read_text())
OF_PREFECT = ("parallelism", "completions")
"""What prefect-kubernetes 0.8.0 demands of every template within the pod's spec, where Kubernetes
has no such fields: its API server drops them with a warning."""


def name_of(one: dict[str, Any]) -> str:
    return f"{one['kind']}-{one['metadata']['name']}"


def of_kind(*kinds: str) -> list[dict[str, Any]]:
    return [one for one in OBJECTS if one["kind"] in kinds]


def pods() -> list[dict[str, Any]]:
    """The pod specs of all manifests, and that of the template."""
    owners = [*of_kind("Deployment", "StatefulSet"), TEMPLATE["job_configuration"]["job_manifest"]]
    return [one["spec"]["template"]["spec"] for one in owners]


@pytest.fixture(scope="module")
def validate() -> Any:
    return pytest.importorskip("kubernetes_validate")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("one", OBJECTS, ids=name_of)
def test_manifests_are_those_of_kubernetes(validate, one, version):
    validate.validate(one, version, strict=True)


def test_a_wrong_field_would_be_refused(validate):
    broken = copy.deepcopy(of_kind("Deployment")[0])
    broken["spec"]["template"]["spec"]["containers"][0]["imagee"] = "x"
    with pytest.raises(validate.ValidationError):
        validate.validate(broken, VERSIONS[-1], strict=True)


def test_nothing_is_exposed_beyond_the_namespace():
    assert {one["kind"] for one in OBJECTS} == {
        "Namespace", "ServiceAccount", "Role", "RoleBinding", "NetworkPolicy", "Service",
        "PersistentVolumeClaim", "Deployment", "StatefulSet",
    }  # fmt: skip
    for service in of_kind("Service"):
        assert service["spec"].get("type", "ClusterIP") == "ClusterIP"
        assert "externalIPs" not in service["spec"]
    for pod in pods():
        assert not pod.get("hostNetwork")
        ports = [port for one in pod["containers"] for port in one.get("ports", [])]
        assert not [port for port in ports if "hostPort" in port]
    spaces = {one["metadata"].get("namespace") for one in OBJECTS if one["kind"] != "Namespace"}
    assert spaces == {"ingot"}


def test_every_pod_has_one_policy_that_lets_only_pods_of_the_namespace_in():
    """Policies add up: a pod that two of them select is open to the peers of both."""
    others, *named = of_kind("NetworkPolicy")
    (expression,) = others["spec"]["podSelector"]["matchExpressions"]
    apart = {one["spec"]["podSelector"]["matchLabels"][expression["key"]] for one in named}
    assert expression["operator"] == "NotIn"
    assert set(expression["values"]) == apart
    for policy in of_kind("NetworkPolicy"):
        assert policy["spec"]["policyTypes"] == ["Ingress"]
        for rule in policy["spec"]["ingress"]:
            assert rule["from"]
            assert all(list(peer) == ["podSelector"] for peer in rule["from"])


def test_who_calls_the_server_has_the_label_that_is_let_in():
    policy = next(o for o in of_kind("NetworkPolicy") if o["metadata"]["name"] == "ingot-prefect")
    (peer,) = policy["spec"]["ingress"][0]["from"]
    label = set(peer["podSelector"]["matchLabels"].items())
    worker = next(o for o in of_kind("Deployment") if o["metadata"]["name"] == "ingot-worker")
    for owner in (worker, TEMPLATE["job_configuration"]["job_manifest"]):
        assert label <= set(owner["spec"]["template"]["metadata"]["labels"].items())


def test_secrets_are_references_only():
    assert not of_kind("Secret")
    named = 0
    for pod in pods():
        for container in pod["containers"]:
            variables = container.get("env", [])
            for one in variables if isinstance(variables, list) else []:
                if re.search(r"(PASSWORD|AUTH_STRING|API_KEY)$", one["name"]):
                    assert set(one) == {"name", "valueFrom"}
                    assert set(one["valueFrom"]) == {"secretKeyRef"}
                    named += 1
                else:
                    assert "@" not in one["value"], "a URL with a login is a secret too"
    assert named == 4


def test_pods_are_of_the_restricted_kind_that_the_namespace_enforces():
    """Pod Security Standards, "Restricted"."""
    (namespace,) = of_kind("Namespace")
    labels = namespace["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    for pod in pods():
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def test_the_account_of_runs_may_do_what_a_pool_does_and_read_no_secret():
    (role,) = of_kind("Role")
    granted = {
        (verb, group, resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    wanted = {
        (verb, group, "/".join(filter(None, (resource, subresource))))
        for verb, group, resource, subresource in RIGHTS
    }
    assert wanted <= granted
    assert not [one for one in granted if "*" in one or one[2] == "secrets"]
    (binding,) = of_kind("RoleBinding")
    account = TEMPLATE["variables"]["properties"]["service_account_name"]["default"]
    assert binding["subjects"][0]["name"] == account


# The base job template ---------------------------------------------------------------------------


def rendered(**values: Any) -> dict[str, Any]:
    """The configuration that Prefect makes of the template's defaults."""
    from prefect.utilities.templating import apply_values

    properties = TEMPLATE["variables"]["properties"]
    defaults = {name: one["default"] for name, one in properties.items() if "default" in one}
    configuration: dict[str, Any] = apply_values(
        TEMPLATE["job_configuration"], {**defaults, **values}
    )
    return configuration


def test_every_placeholder_is_a_variable_and_every_variable_is_used():
    names = set(re.findall(r"\{\{ (\w+) \}\}", json.dumps(TEMPLATE["job_configuration"])))
    assert names == set(TEMPLATE["variables"]["properties"])
    assert set(TEMPLATE["variables"]["required"]) <= names


def test_defaults_are_values_that_the_form_takes():
    jsonschema = pytest.importorskip("jsonschema")
    properties = TEMPLATE["variables"]["properties"]
    defaults = {name: one["default"] for name, one in properties.items() if "default" in one}
    jsonschema.Draft202012Validator.check_schema(TEMPLATE["variables"])
    jsonschema.validate(defaults, TEMPLATE["variables"])


@pytest.mark.parametrize("version", VERSIONS)
def test_the_job_of_a_run_is_one_of_kubernetes(validate, version):
    command = ["prefect", "flow-run", "execute"]
    manifest = rendered(command=command, labels={"a": "b"}, env={})["job_manifest"]
    pod = manifest["spec"]["template"]["spec"]
    assert [pod.pop(name) for name in OF_PREFECT] == [1, 1]
    pod["containers"][0]["env"] = [{"name": "A", "value": "b"}]  # Prefect makes a list of it.
    validate.validate(manifest, version, strict=True)
    assert pod["containers"][0]["args"] == command
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == "ingot-store"
