"""The pictures of these pages: `python docs/screenshots.py STORE`, where quickstart has run.

It brings up Prefect in a temporary home, asks for two runs (the first steps in an empty store, in a
minute or two, and all of STORE, where everything stands), and writes PNGs to `docs/images/`. It
needs playwright and an installed Chromium.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent / "images"
SIZE = {"width": 1280, "height": 860}
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "CRASHED")


def ingot(*words: str, home: str) -> str:
    """Run a command of Ingot's; what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", "from flows.cli.main import main; main()", *words],
        env={**os.environ, "INGOT_HOME": home}, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return done.stdout


def run(api: httpx.Client, **parameters: Any) -> str:
    """Ask for a run of quickstart and wait for its end; its id."""
    deployment = api.get("/deployments/name/pipeline/quickstart").json()["id"]
    made = api.post(f"/deployments/{deployment}/create_flow_run", json={"parameters": parameters})
    made.raise_for_status()
    while api.get(f"/flow_runs/{made.json()['id']}").json()["state"]["type"] not in ENDED:
        time.sleep(1)
    return str(made.json()["id"])


def take(page: Page, address: str, name: str, *, ready: str) -> None:
    """Open an address, wait for the text `ready`, and write a picture."""
    page.goto(address)
    page.get_by_text(ready).first.wait_for()
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(1500)  # Graphs move into place after the last request.
    page.screenshot(path=IMAGES / f"{name}.png")
    print(IMAGES / f"{name}.png")


def list_artifacts(api: httpx.Client, run: str) -> dict[str, Any]:
    """The artifacts of a run by key."""
    artifacts = api.post("/artifacts/filter", json={"flow_runs": {"id": {"any_": [run]}}}).json()
    return {artifact["key"]: artifact for artifact in artifacts}


def take_all(page: Page, api: httpx.Client, ui: str, home: str) -> None:
    """Every picture of the UI, and one of a report."""
    fresh, whole = run(api, store=f"{home}/store", through="tokenizer"), run(api)
    key = "plan-quickstart"
    artifacts = {**list_artifacts(api, whole), key: list_artifacts(api, fresh)[key]}
    forms = {
        name: api.get(f"/deployments/name/{name}").json()["id"]
        for name in ("pipeline/quickstart", "stage/dedup")
    }
    take(page, f"{ui}/v2/runs/flow-run/{fresh}", "ui-run", ready="quickstart through tokenizer")
    form = f"{ui}/v2/deployments/deployment/{forms['pipeline/quickstart']}/run"
    take(page, form, "ui-form", ready="strict code")
    form = f"{ui}/v2/deployments/deployment/{forms['stage/dedup']}/run"
    take(page, form, "ui-form-stage", ready="max_bucket")
    for name in ("plan", "funnel", "loss", "evaluation", "lineage"):
        key = next(key for key in sorted(artifacts) if key.startswith(f"{name}-quickstart"))
        key = {"loss": "loss-quickstart-pretrain"}.get(name, key)
        place = f"{ui}/v2/artifacts/artifact/{artifacts[key]['id']}"
        take(page, place, f"ui-{name}", ready=key)
    address = re.search(r"\((http[^)]+)\)", artifacts["report-quickstart"]["data"])
    assert address is not None
    take(page, address[1], "report", ready="quickstart")


def main(store: str) -> None:
    """Bring up, take the pictures, bring down."""
    IMAGES.mkdir(exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        try:
            output = ingot("up", "--store", store, home=home)
            ui = output.splitlines()[0].split()[-1]
            browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
            user, _, password = Path(home, "password").read_text().strip().partition(":")
            sign_in = {"username": user, "password": password}
            page = browser.new_page(viewport=SIZE, http_credentials=sign_in)
            page.goto(ui)
            page.get_by_placeholder("admin:pass").fill(f"{user}:{password}")
            page.get_by_role("button", name="Login").click()
            page.get_by_role("link", name="Deployments").wait_for()
            with httpx.Client(base_url=f"{ui}/api", auth=(user, password), timeout=60) as api:
                take_all(page, api, ui, home)
            browser.close()
        finally:
            ingot("down", home=home)


if __name__ == "__main__":
    main(sys.argv[1])
