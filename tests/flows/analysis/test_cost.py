"""What a store cost, by stage, recipe and person, with sums by hand."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from artifacts_schema.store import layout
from artifacts_schema.store.runs import find_run, run_ids
from flows.analysis.cost import GROUPS, sum_cost, total_cost
from flows.cli.main import main
from flows.recipe.execute import execute
from flows.report.html import is_report
from stages.engine import provenance

LOST = {
    "earlier_cpu_seconds": 0.0,
    "earlier_gpu_seconds": 3600.0,
    "lost_cpu_seconds": 1800.0,
    "lost_gpu_seconds": 360.0,
}


@pytest.fixture
def spent(open_pipeline, inline, store):
    """The demo recipe run by ada, then changed by ben; every artifact cost what its place says."""
    execute(open_pipeline(by="ada"), dispatch=inline)
    execute(open_pipeline("choose.least.characters=9", by="ben"), dispatch=inline)
    for number, manifest in enumerate(store.manifests(), 1):
        path = layout.manifest(*manifest.name)
        value = json.loads(store.backend.read(path))
        value["telemetry"] |= {
            "cpu_seconds": number,
            "gpu_seconds": 2.0,
            "seconds": 0.5,
            "finished": f"2026-{number:02d}-01T00:00:00Z",
        } | LOST
        store.backend.replace(path, json.dumps(value).encode())
    return list(store.manifests())


def refuse(error):
    raise error


def test_costs_are_summed_by_stage_the_dearest_first(spent, store):
    costs = sum_cost(store, "stage", refuse)
    for stage, cost in costs.items():
        numbers = [n for n, one in enumerate(spent, 1) if one.stage == stage]
        assert (cost.artifacts, cost.cpu_seconds) == (len(numbers), sum(numbers))
        assert cost.gpu_seconds == (2.0 + 3600) * len(numbers)
        assert cost.lost_cpu_seconds == 1800 * len(numbers)
        assert cost.lost_gpu_seconds == 360 * len(numbers)
        sizes = [sum(o.bytes for o in one.outputs.values()) for one in spent if one.stage == stage]
        assert cost.bytes == sum(sizes)
    spending = [cost.cpu_seconds for cost in costs.values()]
    assert spending == sorted(spending, reverse=True)
    assert total_cost(costs.values()).artifacts == len(spent)


def test_a_label_says_who_asked_in_record_and_manifest_and_changes_no_key(
    spent, store, open_pipeline
):
    costs = sum_cost(store, "person", refuse)
    assert costs.keys() == {"ada", "ben", "unknown"}, "snapshots are made by a plan"
    assert costs["ben"].artifacts == 2, "the changed step and the one behind it"
    assert find_run(store, "demo").by == "ben"
    assert all(step.action == "reuse" for step in open_pipeline(by="eve").plan().steps)


def test_a_recipe_is_that_whose_run_made_it_first(spent, store):
    costs = sum_cost(store, "recipe", refuse)
    assert costs.keys() == {"demo", "unknown"}
    snapshots = [one for one in spent if one.stage == "snapshot"]
    assert costs["unknown"].artifacts == len(snapshots)


def test_what_a_run_only_reused_is_not_of_its_recipe(open_pipeline, inline, store):
    """The artifact of an earlier run whose record is gone."""
    execute(open_pipeline(), dispatch=inline)
    for name in run_ids(store, "demo"):
        store.backend.remove(layout.run("demo", name))
    execute(open_pipeline("choose.least.characters=9"), dispatch=inline)
    costs = sum_cost(store, "recipe", refuse)
    assert costs["demo"].artifacts == 2, "the changed step and the one behind it"


def test_a_damaged_manifest_is_told_and_left_out(spent, store):
    store.backend.replace(layout.manifest(*spent[0].name), b"{}")
    damaged = []
    costs = sum_cost(store, "stage", damaged.append)
    assert len(damaged) == 1
    assert total_cost(costs.values()).artifacts == len(spent) - 1


def test_the_command_prints_a_table_with_a_sum_and_json(spent, store):
    table = CliRunner().invoke(main, ["cost", "--per", "person", "--store", store.url])
    assert table.exit_code == 0, table.output
    first, *rows = table.output.splitlines()
    assert first.split()[0] == "person"
    assert rows[-1].split()[:2] == ["all", str(len(spent))]
    printed = CliRunner().invoke(main, ["cost", "--store", store.url, "--json"])
    assert json.loads(printed.output)["choose"]["gpu_seconds"] == 7204.0


def test_months_are_those_of_the_commits_in_their_order(spent, store):
    costs = sum_cost(store, "month", refuse)
    assert list(costs) == [f"2026-{number:02d}" for number in range(1, len(spent) + 1)]


def test_money_is_hours_times_the_prices_of_the_profile_lost_ones_too(spent, store, tmp_path):
    profile = tmp_path / "priced.yaml"
    profile.write_text("prices: {currency: EUR, cpu_hour: 2.0, gpu_hour: 10.0}\n")
    arguments = ["cost", "--store", store.url, "--profile", str(profile)]
    plain = json.loads(CliRunner().invoke(main, [*arguments, "--json"]).output)
    total = sum(one["money"] for one in plain.values())
    cpu = sum(range(1, len(spent) + 1)) / 3600 + 0.5 * len(spent)
    gpu = (2.0 + 3600 + 360) / 3600 * len(spent)
    assert total == pytest.approx(2 * cpu + 10 * gpu, abs=0.001)
    page = tmp_path / "cost.html"
    told = CliRunner().invoke(main, [*arguments, "--report", str(page)])
    assert told.exit_code == 0, told.output
    html = page.read_text()
    assert is_report(page)
    assert f"{total:,.2f} EUR" in html
    for group in GROUPS:
        assert f"Cost by {group}" in html
        assert all(name in html for name in sum_cost(store, group, refuse))
    assert CliRunner().invoke(main, [*arguments[:3], "--report", str(page)]).exit_code == 0
    assert "EUR" not in page.read_text(), "no price, no currency"


def test_without_a_label_it_is_the_login_name(open_pipeline, inline, store, monkeypatch):
    monkeypatch.setattr(provenance, "login_name", lambda: "somebody")
    execute(open_pipeline(), dispatch=inline)
    assert {m.telemetry["by"] for m in store.manifests("lines")} == {"somebody"}
