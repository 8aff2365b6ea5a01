"""The graph of a run's steps as a layered drawing, sources on top (Sugiyama et al., 1981)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate, pairwise, starmap

import numpy as np
from scipy.optimize import isotonic_regression

from flows.report.display import one_line
from flows.report.subject import Step, longest_paths
from stages.engine.page import TableFigure, make_table

WIDTH, HEIGHT, ACROSS, DOWN = 140, 44, 22, 40
"""Pixels of a box, and between boxes."""
SWEEPS = 8


@dataclass(frozen=True)
class Point:
    """Centre of a box, or of a bend where an edge passes a layer."""

    x: float
    y: float


@dataclass(frozen=True)
class Layout:
    """The position of each step, the points of each edge, and the size of the drawing."""

    nodes: dict[str, Point]
    edges: dict[tuple[str, str], list[Point]]
    width: float
    height: float


def lay_out(parents: Mapping[str, Sequence[str]]) -> Layout:
    """Lay out a graph (node → its parents); parents that are not nodes are ignored."""
    layer = _layers(parents)
    links, bends = _with_bends(parents, layer)
    rows = _ordered(links, layer | bends)
    x = _across(rows, links)
    low = min(x.values(), default=0.0)
    at = {
        name: Point(x[name] - low + WIDTH / 2 + 4, row * (HEIGHT + DOWN) + HEIGHT / 2 + 4)
        for row, names in enumerate(rows)
        for name in names
    }
    edges = {}
    for child, named in parents.items():
        for parent in named:
            if parent in layer:
                middle = [f"{parent}\0{child}\0{i}" for i in range(layer[parent] + 1, layer[child])]
                edges[parent, child] = [at[parent], *(at[name] for name in middle), at[child]]
    width = max((point.x for point in at.values()), default=0.0) + WIDTH / 2 + 4
    height = len(rows) * (HEIGHT + DOWN) - DOWN + 8
    return Layout({name: at[name] for name in layer}, edges, width, height)


def _layers(parents: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Below the lowest parent, then down to just above the highest child, for short edges."""
    layer = longest_paths(parents)
    for name in sorted(layer, key=lambda n: -layer[n]):
        children = [layer[child] for child, named in parents.items() if name in named]
        layer[name] = min(children, default=layer[name] + 1) - 1
    return layer


def _with_bends(
    parents: Mapping[str, Sequence[str]], layer: Mapping[str, int]
) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """Edges split at each layer that they pass, and the layer of each bend."""
    links, bends = [], {}
    for child, named in parents.items():
        for parent in named:
            if parent not in layer:
                continue
            upper = parent
            for row in range(layer[parent] + 1, layer[child]):
                bend = f"{parent}\0{child}\0{row}"
                bends[bend] = row
                links.append((upper, bend))
                upper = bend
            links.append((upper, child))
    return links, bends


def _ordered(links: Sequence[tuple[str, str]], layer: Mapping[str, int]) -> list[list[str]]:
    """Nodes of each layer from left to right, so that few edges cross.

    Sweeps by the mean position of the neighbours, then swaps of adjacent nodes.
    """
    rows: list[list[str]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for name, depth in layer.items():
        rows[depth].append(name)
    upper: dict[str, list[str]] = {name: [] for name in layer}
    lower: dict[str, list[str]] = {name: [] for name in layer}
    for a, b in links:
        upper[b].append(a)
        lower[a].append(b)
    best, least = [list(row) for row in rows], _crossings(rows, links)
    for sweep in range(2 * SWEEPS):
        near = upper if sweep % 2 == 0 else lower
        for row in rows if sweep % 2 == 0 else reversed(rows):
            place = {name: i for names in rows for i, name in enumerate(names)}
            means = {
                name: sum(place[n] for n in near[name]) / len(near[name])
                if near[name]
                else place[name]
                for name in row
            }
            row.sort(key=means.__getitem__)
        for row in rows:
            _swap(row, {name: i for names in rows for i, name in enumerate(names)}, upper, lower)
        crossings = _crossings(rows, links)
        if crossings < least:
            best, least = [list(row) for row in rows], crossings
    return best


def _swap(
    row: list[str],
    place: Mapping[str, int],
    upper: Mapping[str, Sequence[str]],
    lower: Mapping[str, Sequence[str]],
) -> None:
    """Swap neighbours in a row if their own edges then cross less often."""

    def crossed(left: str, right: str) -> int:
        return sum(
            place[a] > place[b] for near in (upper, lower) for a in near[left] for b in near[right]
        )

    for i in range(len(row) - 1):
        if crossed(row[i], row[i + 1]) > crossed(row[i + 1], row[i]):
            row[i], row[i + 1] = row[i + 1], row[i]


def _crossings(rows: Sequence[Sequence[str]], links: Sequence[tuple[str, str]]) -> int:
    place = {name: i for row in rows for i, name in enumerate(row)}
    depth = {name: i for i, row in enumerate(rows) for name in row}
    by_row: dict[int, list[tuple[int, int]]] = {}
    for a, b in links:
        by_row.setdefault(depth[a], []).append((place[a], place[b]))
    return sum(
        (first[0] - other[0]) * (first[1] - other[1]) < 0
        for pairs in by_row.values()
        for i, first in enumerate(pairs)
        for other in pairs[i + 1 :]
    )


def _across(rows: Sequence[Sequence[str]], links: Sequence[tuple[str, str]]) -> dict[str, float]:
    """x of every node: towards its neighbours as far as its row has room, bends most of all.

    Links weigh as in `dot` (Gansner et al., 1993), so that long edges run straight.
    """
    x = {
        name: (i - (len(row) - 1) / 2) * (WIDTH + ACROSS)
        for row in rows
        for i, name in enumerate(row)
    }
    near: dict[str, list[tuple[str, int]]] = {name: [] for name in x}
    for a, b in links:
        weight = (1, 2, 8)[_is_bend(a) + _is_bend(b)]
        near[a].append((b, weight))
        near[b].append((a, weight))
    for sweep in range(6 * SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            weights = [sum(weight for _, weight in near[name]) or 1 for name in row]
            wanted = [
                sum(x[other] * w for other, w in near[name]) / weight if near[name] else x[name]
                for name, weight in zip(row, weights, strict=True)
            ]
            x.update(zip(row, _spaced(row, wanted, weights), strict=True))
    return x


def _spaced(row: Sequence[str], wanted: Sequence[float], weights: Sequence[int]) -> list[float]:
    """Places nearest to the wanted ones (weighted least squares) that keep order and distance."""
    offsets = list(accumulate(starmap(_distance, pairwise(row)), initial=0.0))
    means = isotonic_regression(np.subtract(wanted, offsets), weights=weights).x
    return [float(place) for place in means + offsets]


def _is_bend(name: str) -> bool:
    return "\0" in name


def _distance(left: str, right: str) -> float:
    return (WIDTH + ACROSS, (WIDTH + ACROSS) / 2 + 4, 16.0)[_is_bend(left) + _is_bend(right)]


# Drawing -----------------------------------------------------------------------------------------


def lineage_svg(steps: Sequence[Step], *, label: str) -> str:
    """The graph as SVG for inside a report: each box leads to its step's section."""
    layout = lay_out({step.instance: step.parents for step in steps})
    lines = "".join(f'<path d="{_curve(points)}"/>' for points in layout.edges.values())
    boxes = "".join(_box(step, layout.nodes[step.instance]) for step in steps)
    width, height = round(layout.width), round(layout.height)
    return (
        f'<svg class="lineage" xmlns="http://www.w3.org/2000/svg" role="group" '
        f'aria-label="{escape(label)}" viewBox="0 0 {width} {height}" '
        f'style="--width:{width}px"><g class="edges" aria-hidden="true">{lines}</g>{boxes}</svg>'
    )


def _curve(points: Sequence[Point]) -> str:
    """From the foot of the first box to the head of the last, level where it passes a layer."""
    first, last = points[0], points[-1]
    stops = [
        Point(first.x, first.y + HEIGHT / 2),
        *points[1:-1],
        Point(last.x, last.y - HEIGHT / 2),
    ]
    path = f"M{stops[0].x:.0f} {stops[0].y:.0f}"
    for a, b in pairwise(stops):
        middle = (a.y + b.y) / 2
        path += f"C{a.x:.0f} {middle:.0f} {b.x:.0f} {middle:.0f} {b.x:.0f} {b.y:.0f}"
    return path


def _box(step: Step, at: Point) -> str:
    name, stage = one_line(step.instance, 19), one_line(step.stage, 22)
    lower = stage if step.state in ("made", "reused") else f"{one_line(stage, 12)} · {step.state}"
    left, top = at.x - WIDTH / 2, at.y - HEIGHT / 2
    return (
        f'<a href="#{step.anchor}" class="state-{step.state}">'
        f"<title>{escape(one_line(f'{step.instance}: {step.state}', 120))}</title>"
        f'<rect x="{left:.0f}" y="{top:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="7"/>'
        f'<text x="{at.x:.0f}" y="{at.y - 3:.0f}" class="name">{escape(name)}</text>'
        f'<text x="{at.x:.0f}" y="{at.y + 14:.0f}" class="stage">{escape(lower)}</text></a>'
    )


def lineage_table(steps: Sequence[Step]) -> TableFigure:
    """The same graph as a table."""
    rows = (
        (step.instance, step.stage, (step.key or "")[:12], step.state, ", ".join(step.parents))
        for step in steps
    )
    return make_table("Lineage", "step | stage | key | state | made of", rows)
