"""The dashboard for Grafana: every query names metrics and labels that `ingot metrics` has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from flows.interchange.metrics import METRICS

FILE = Path(__file__).parents[2] / "deploy" / "grafana" / "ingot.json"
DASHBOARD = json.loads(FILE.read_text(encoding="utf-8"))
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
NAME = re.compile(r"\bingot_[a-z0-9_]+")


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_names_metrics_that_exist_by_labels_that_they_have(query):
    names = NAME.findall(query)
    assert names
    assert set(names) <= METRICS.keys()
    labels = {label for name in names for label in METRICS[name].labels}
    selected = re.findall(r"[{,]\s*([a-z_]+)\s*=", query)
    grouped = [
        label.strip()
        for group in re.findall(r"\b(?:by|on|ignoring) \(([^)]*)\)", query)
        for label in group.split(",")
    ]
    assert set(selected) | set(grouped) <= labels
    assert query.count("(") == query.count(")")


def test_only_counters_have_rates():
    rated = {name for query in QUERIES for name in re.findall(r"rate\((\w+)", query)}
    assert rated
    assert all(METRICS[name].counts for name in rated)


def test_legends_name_labels_of_their_query():
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            first = NAME.findall(target["expr"])[0]
            used = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert used <= set(METRICS[first].labels), panel["title"]


def test_panels_have_places_of_their_own_and_the_variables_exist():
    places = {(one["gridPos"]["x"], one["gridPos"]["y"]) for one in DASHBOARD["panels"]}
    assert len(places) == len(DASHBOARD["panels"]) == len({p["id"] for p in DASHBOARD["panels"]})
    variables = {one["name"] for one in DASHBOARD["templating"]["list"]}
    text = FILE.read_text(encoding="utf-8")
    assert set(re.findall(r"\$\{?(\w+)\}?", text)) == variables
    assert set(NAME.findall(json.dumps(DASHBOARD["templating"]))) <= METRICS.keys()
