"""The UI in a browser: a run from the form to its report, and what a person sees of a mistake."""

from __future__ import annotations

import base64
import shutil
from urllib.parse import urlsplit

import pytest

from flows.orchestration.asgi import BUSY

pytestmark = pytest.mark.server

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
PATIENCE = 60_000


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if CHROMIUM is None:
        pytest.skip("needs an installed Chromium")
    with api.sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)


@pytest.fixture
def page(browser, ui):
    user, _, password = ui.password.partition(":")
    sign_in = {"username": user, "password": password, "origin": ui.reports}
    page = browser.new_page(viewport={"width": 1400, "height": 1000}, http_credentials=sign_in)
    page.set_default_timeout(PATIENCE)
    page.hosts = set()
    page.on("requestfinished", lambda request: page.hosts.add(urlsplit(request.url).netloc))
    yield page
    page.close()


def type_password(page, password):
    """Sign in, as Prefect's page asks for it."""
    page.locator("input[type=password]").fill(password)
    page.get_by_role("button", name="Login").click()


def open_form(page, ui, name):
    """From the first page to the form of a deployment, as a person goes."""
    page.goto(ui.ui)
    type_password(page, ui.password)
    page.get_by_role("link", name="Deployments").click()
    page.get_by_placeholder("Search deployments").fill(name)
    page.get_by_role("link", name=name, exact=True).click()
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_text("Custom run").click()
    page.get_by_role("button", name="Submit").wait_for()
    return page.locator("main textarea, main .cm-content")


def open_artifact(page, ui, run, key):
    """The page of one artifact of a run."""
    found = ui.post("/artifacts/filter", {"flow_runs": {"id": {"any_": [run]}}})
    (id,) = (artifact["id"] for artifact in found if artifact["key"] == key)
    page.goto(f"{ui.ui}/v2/artifacts/artifact/{id}")
    page.get_by_text(key).first.wait_for()


@pytest.mark.full
def test_a_run_from_the_form_to_its_report(ui, page, tmp_path):
    fields = open_form(page, ui, "toys")
    before = ui.post("/flow_runs/count", {})
    fields.first.fill("relative/store")
    page.get_by_role("button", name="Submit").click()
    message = page.locator("main p", has_text="'relative/store' does not match")
    message.wait_for()
    assert ui.post("/flow_runs/count", {}) == before

    fields.first.fill(str(tmp_path / "store"))
    message.wait_for(state="detached")
    page.get_by_role("button", name="Submit").click()
    page.get_by_role("button", name="View run").click()
    page.wait_for_url("**/flow-run/**")
    run = page.url.split("/flow-run/")[1].split("?")[0]
    assert ui.end_of(run)["state"]["type"] == "COMPLETED"
    page.locator("main").get_by_text("Completed", exact=True).first.wait_for()
    page.locator("main").get_by_text(f"toys #{run[-4:]}").first.wait_for()

    open_artifact(page, ui, run, "plan-toys")
    assert "after numbers" in page.locator("table").inner_text()
    open_artifact(page, ui, run, "funnel-toys")
    assert "75.0%" in page.locator("table").inner_text()
    # The name of a reason is hostile; it stands there as it is.
    assert "<script>alert(1)</script>" in page.locator("table").inner_text()
    open_artifact(page, ui, run, "loss-toys-learn")
    picture = page.locator("main img[alt=loss]")
    picture.wait_for()
    assert picture.evaluate("image => image.complete && image.naturalWidth") > 300
    open_artifact(page, ui, run, "report-toys")
    complaints = []
    page.on("console", lambda message: complaints.append((message.location["url"], message.text)))
    page.get_by_role("link", name="report of toys").click()
    page.wait_for_url(f"{ui.reports}/toys-*.html")
    assert "numbers" in page.locator("body").inner_text()
    assert not [text for url, text in complaints if url.startswith(ui.reports)]
    assert page.hosts - {""} == {
        ui.ui.split("/")[2],
        ui.reports.split("/")[2],
    }  # Nobody else is asked.


@pytest.mark.full
def test_a_reference_that_does_not_exist_is_said_in_the_form(ui, page):
    fields = open_form(page, ui, "ui_learn")
    page.get_by_role("button", name="Add item").first.click()
    fields.nth(3).fill("toys/nothing")
    before = ui.post("/flow_runs/count", {})
    page.get_by_role("button", name="Submit").click()
    page.get_by_text("no ref 'toys/nothing'").wait_for()
    assert ui.post("/flow_runs/count", {}) == before


@pytest.mark.full
def test_a_server_that_stays_busy_is_said_in_the_form(ui, page):
    """What our server answers once it has tried for half a minute; the answer alone is staged."""
    open_form(page, ui, "toys")
    page.route("**/create_flow_run", lambda route: route.fulfill(status=503, json={"detail": BUSY}))
    before = ui.post("/flow_runs/count", {})
    page.get_by_role("button", name="Submit").click()
    page.get_by_text("the Prefect server is busy").first.wait_for()
    assert ui.post("/flow_runs/count", {}) == before


@pytest.mark.full
def test_nobody_gets_in_with_a_wrong_password_and_one_stays_in_with_the_right_one(ui, page):
    page.goto(ui.ui)
    type_password(page, "ingot:wrong")
    page.get_by_text("Invalid credentials").wait_for()
    assert page.get_by_role("link", name="Deployments").count() == 0
    type_password(page, ui.password)
    page.get_by_role("link", name="Deployments").wait_for()
    page.goto(f"{ui.ui}/v2/deployments")  # A page of its own, and later another tab.
    page.get_by_role("link", name="anneal", exact=True).wait_for()
    cookies = str(page.context.cookies())  # They go to every port of this machine.
    secret = ui.password.partition(":")[2]
    assert secret not in cookies
    assert base64.b64encode(ui.password.encode()).decode() not in cookies


def test_a_report_asks_for_the_password_and_the_browser_keeps_it(ui, page, browser):
    (ui.folder / "home" / "reports").mkdir(exist_ok=True)
    (ui.folder / "home" / "reports" / "shown-1.html").write_text("<p>a report</p>")
    stranger = browser.new_page()
    with pytest.raises(Exception, match="ERR_INVALID_AUTH_CREDENTIALS"):
        stranger.goto(f"{ui.reports}/shown-1.html")
    stranger.close()
    for _ in range(2):
        assert page.goto(f"{ui.reports}/shown-1.html").status == 200
        assert page.locator("body").inner_text() == "a report"
    assert page.context.cookies() == []
