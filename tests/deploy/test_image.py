"""The image and the compose file, as text; the steps of the CPU target in an empty environment."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
IMAGE = ROOT / "deploy" / "image"
COMPOSE = ROOT / "deploy" / "compose.yaml"
TARGETS = ("cpu", "cuda")
TEMPLATE = ROOT / "deploy" / "kubernetes" / "prefect" / "base-job-template.json"
TAKE_TEMPLATE = """
import json, sys
from prefect.utilities.templating import apply_values
from prefect_kubernetes.worker import KubernetesWorkerJobConfiguration as Configuration
template = json.load(open(sys.argv[1]))
properties = template["variables"]["properties"]
values = {name: one["default"] for name, one in properties.items() if "default" in one}
Configuration(**apply_values(template["job_configuration"], {**values, "name": "x"}))
"""
"""What the worker does with the base job template; it refuses one that lacks what it needs."""


def read_stages() -> dict[str, list[tuple[str, str]]]:
    """Stage of the Dockerfile → its instructions, its own `FROM` the first."""
    text = (IMAGE / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines()
    stages: dict[str, list[tuple[str, str]]] = {"": []}
    name = ""
    for line in joined:
        word, _, rest = line.partition(" ")
        if word == "FROM":
            name = rest.split(" AS ")[1]
            stages[name] = []
        stages[name].append((word, rest))
    return stages


STAGES = read_stages()


def chain(target: str) -> list[tuple[str, str]]:
    """The instructions of a target with those of the stages below it."""
    below = STAGES[target][0][1].split()[0]
    return [*(chain(below) if below in STAGES else []), *STAGES[target]]


def values(target: str, word: str) -> list[str]:
    return [rest for name, rest in chain(target) if name == word]


@pytest.mark.parametrize("target", TARGETS)
def test_an_image_is_slim_and_runs_as_a_user_that_is_not_root(target):
    assert all("slim" in rest for rest in values(target, "FROM") if rest.startswith("python:"))
    user, group = values(target, "USER")[-1].split(":")
    assert (int(user), int(group)) == (10001, 10001)
    assert f"useradd --uid {user}" in " ".join(values(target, "RUN"))
    assert ("COPY", f"--from={target}-build /opt/ingot /opt/ingot") in chain(target)


@pytest.mark.parametrize("target", TARGETS)
def test_versions_are_those_that_were_tested_and_torch_comes_first(target):
    installs = [run for run in values(f"{target}-build", "RUN") if " install " in run]
    assert "grep '^torch==' constraints.txt" in installs[0]
    assert ("--index-url" in installs[0]) == (target == "cpu")
    assert all("--constraint constraints.txt" in run for run in installs[1:])
    assert len(re.findall("^torch==", (ROOT / "constraints.txt").read_text(), re.M)) == 1
    extras = re.findall(r'"\.\[(.*)\]"', installs[1])[0].split(",")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras) <= set(project["optional-dependencies"])


def test_both_targets_hold_the_same_program():
    cpu, cuda = (
        [one for one in STAGES[f"{target}-build"] if one[0] in ("COPY", "RUN")][1:]
        for target in TARGETS
    )
    assert cpu == cuda


def test_only_what_is_copied_reaches_the_builder():
    lines = (IMAGE / "Dockerfile.dockerignore").read_text().splitlines()
    kept = {line[1:] for line in lines if line.startswith("!")}
    copied = {
        source
        for target in TARGETS
        for rest in values(f"{target}-build", "COPY")
        for source in rest.split()[:-1]
    }
    assert "*" in lines
    assert copied == kept
    assert all((ROOT / name).exists() for name in copied)


def test_compose_is_seen_from_its_machine_only_and_shows_no_secret():
    compose = yaml.safe_load(COMPOSE.read_text())
    services = compose["services"]
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports == ["127.0.0.1:4200:4200"]
    assert compose["networks"]["database"] == {"internal": True}
    assert [name for name, one in services.items() if "database" in one["networks"]] == [
        "postgres", "server",
    ]  # fmt: skip
    for service in services.values():
        for name in service["environment"]:
            secret = any(fnmatch.fnmatch(name, p) for p in ("*PASSWORD", "*AUTH_STRING", "*KEY"))
            assert not secret, f"{name} belongs into a file"
        assert set(service["secrets"]) <= set(compose["secrets"])
    assert all(list(one) == ["file"] for one in compose["secrets"].values())
    build = services["server"]["build"]
    assert (
        COMPOSE.parent / build["context"] / build["dockerfile"]
    ).resolve() == IMAGE / "Dockerfile"
    assert build["target"] in STAGES


@pytest.mark.full
@pytest.mark.timeout(3000)
def test_the_steps_of_the_cpu_target_run_in_an_empty_environment(tmp_path):
    """Each `RUN` up to the end of `cpu-build`, by sh as Docker does it, in folders of this test.

    `TORCH_INDEX` is empty, as its build argument may be: torch comes from where pip looks.
    """
    source, venv = tmp_path / "src", tmp_path / "venv"
    source.mkdir()
    keep = {name: os.environ[name] for name in os.environ if name.startswith(("PIP_", "SSL_"))}
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **keep, "TORCH_INDEX": ""}
    for word, rest in chain("cpu-build"):
        if word == "ENV":
            environment |= dict(pair.split("=", 1) for pair in rest.split())
            environment["VENV"] = str(venv)
        elif word == "COPY":
            *names, _ = rest.split()
            for name in names:
                if (ROOT / name).is_dir():
                    shutil.copytree(
                        ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__")
                    )
                else:
                    shutil.copy(ROOT / name, source / name)
        elif word == "RUN":
            done = subprocess.run(
                ["sh", "-ec", rest], cwd=source, env=environment, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, f"{rest}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    shutil.rmtree(source)  # The image has no checkout beside the environment.
    for command in (
        ["ingot", "recipes", "--json"],
        ["python", "-P", "-m", "stages.engine.probe", "--help"],
        ["prefect", "version"],
        ["python", "-c", "import kubernetes, s3fs, gcsfs, distributed"],
        ["python", "-c", TAKE_TEMPLATE, str(TEMPLATE)],
    ):
        command[0] = str(venv / "bin" / command[0])
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
