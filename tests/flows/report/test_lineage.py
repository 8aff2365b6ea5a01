"""The graph: every box once, none over another, children below their parents."""

from __future__ import annotations

import itertools
import random

import pytest

from flows.report.lineage import ACROSS, HEIGHT, WIDTH, lay_out, lineage_svg, lineage_table
from flows.report.subject import Step


def graph(seed: int, count: int) -> dict[str, list[str]]:
    rng = random.Random(seed)
    return {
        str(i): [str(j) for j in rng.sample(range(i), min(i, rng.randint(0, 3)))]
        for i in range(count)
    }


@pytest.mark.parametrize("seed", range(8))
def test_boxes_do_not_overlap_and_edges_lead_down(seed):
    print("seed", seed)
    parents = graph(seed, 25)
    layout = lay_out(parents)
    assert layout.nodes.keys() == parents.keys()
    for one, other in itertools.combinations(layout.nodes.values(), 2):
        assert abs(one.x - other.x) >= WIDTH + ACROSS - 1e-6 or abs(one.y - other.y) > HEIGHT
    assert len(layout.edges) == sum(map(len, parents.values()))
    for points in layout.edges.values():
        assert all(a.y < b.y for a, b in itertools.pairwise(points))
    assert all(WIDTH / 2 <= p.x <= layout.width - WIDTH / 2 for p in layout.nodes.values())


def test_edges_that_pass_a_layer_keep_off_its_boxes():
    layout = lay_out({"a": [], "b": ["a"], "c": ["b"], "d": ["c", "a"]})
    for point in layout.edges["a", "d"][1:-1]:
        beside = [node for node in layout.nodes.values() if node.y == point.y]
        assert all(abs(node.x - point.x) > WIDTH / 2 for node in beside)


def test_two_chains_do_not_cross():
    layout = lay_out({"a": [], "b": [], "c": ["b"], "d": ["a"]})
    assert (layout.nodes["a"].x < layout.nodes["b"].x) == (
        layout.nodes["d"].x < layout.nodes["c"].x
    )


def test_nothing_and_unknown_parents_are_fine():
    assert lay_out({}).nodes == {}
    assert lay_out({"a": ["elsewhere"]}).edges == {}


def test_boxes_lead_to_their_steps_and_names_are_only_text():
    steps = [
        Step("<b>one</b>", "stage", "a" * 64, "made"),
        Step("two", "st&ge", None, "waiting", parents=("<b>one</b>",)),
    ]
    svg = lineage_svg(steps, label='a "graph"')
    assert "<b>" not in svg
    assert f'href="#{steps[0].anchor}"' in svg
    assert "st&amp;ge · waiting" in svg
    assert lineage_table(steps).rows[1] == ("two", "st&ge", "", "waiting", "<b>one</b>")
