"""A strict reader of reports, figures of every kind, and pages made of given figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import pytest

from stages.engine.page import (
    Axis,
    BarFigure,
    Bars,
    Column,
    CurveFigure,
    Estimate,
    Figure,
    HistogramFigure,
    IntervalFigure,
    Mark,
    MatrixFigure,
    Pair,
    PairsFigure,
    Part,
    Sample,
    SamplesFigure,
    Series,
    TableFigure,
    TextFigure,
    number,
)

VOID = {"meta", "br", "hr", "img", "link", "input", "wbr"}
REQUESTS = {"src", "srcset", "action", "data", "poster", "background", "formaction", "xlink:href"}


@dataclass
class Read(HTMLParser):
    """A parsed page; wrong nesting, requests and anything that could run are errors."""

    tags: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    marked: dict[str, list[str]] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def __hash__(self) -> int:
        return id(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "iframe", "object", "embed", "base", "form", "link"), tag
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), f"<{tag} {name}>"
            value = value or ""
            if name == "id":
                self.ids.append(value)
            if name == "href":
                self.links.append(value)
            assert name not in REQUESTS or value.startswith("#"), f"<{tag} {name}={value}>"
            assert "url(" not in value.replace("url(#", ""), value
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1:] == [tag], f"</{tag}> inside {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)
        if self.open and self.open[-1] in ("del", "ins", "mark", "small"):
            self.marked.setdefault(self.open[-1], []).append(data)

    @property
    def text(self) -> str:
        """All of the text a reader can come to see."""
        return "".join(self.texts)


@pytest.fixture
def read_page() -> Callable[[str], Read]:
    """`read_page(html)`: the page, once it is found well formed, closed in itself and inert."""

    def read(html: str) -> Read:
        page = Read()
        page.feed(html)
        page.close()
        assert not page.open
        assert len(page.ids) == len(set(page.ids)), "ids are unique"
        assert all(link.startswith("#") for link in page.links)
        assert {link[1:] for link in page.links} <= set(page.ids), "every link leads somewhere"
        assert "default-src 'none'" in html
        return page

    return read


@pytest.fixture
def given_pages(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`given_pages(choose=[figure, …])`: what the pages of these stages give; the others nothing.

    Instead of a list, an exception is raised by that page, and a function is called with the
    artifact.
    """

    def give(**pages: Any) -> None:
        def page_of(stage: Any, artifact: Any) -> Sequence[Figure]:
            found = pages.get(stage.name, ())
            if isinstance(found, Exception):
                raise found
            return found(artifact) if callable(found) else found

        monkeypatch.setattr("flows.report.subject.make_page", page_of)
        monkeypatch.setattr("flows.report.subject.make_summary", lambda stage, artifact: ())

    return give


def every_kind(text: str = "name") -> list[Figure]:
    """A figure of each kind, with `text` wherever a figure takes one."""
    axis = Axis(f"{text} axis")
    bars = (Bars(f"{text} one", (3.0, None, 1.5)), Bars(f"{text} two", (1.0, 2.0, 0.0)))
    x = tuple(range(20))
    return [
        TableFigure(f"{text} table", (Column(text), number("n")), ((text, 1200), (text, 7)), text),
        TextFigure(f"{text} text", text, text),
        CurveFigure(
            f"{text} curve", axis, axis,
            (
                Series(
                    f"{text} a", x, tuple(v * 0.5 for v in x),
                    low=tuple(v * 0.4 for v in x), high=(*(v * 0.6 for v in x[:-1]), None),
                ),
                Series(text, (3,), (4.0,)),
            ),
            (Mark(4, f"{text} mark"),), text,
        ),
        BarFigure(f"{text} bars", (f"{text} 1", f"{text} 2", "3"), axis, bars, note=text),
        BarFigure(f"{text} stack", (f"{text} 1", f"{text} 2", "3"), axis, bars, stacked=True),
        HistogramFigure(f"{text} histogram", axis, (0, 1, 2, 3), bars, text, text),
        MatrixFigure(f"{text} matrix", (text, "b"), ("c", text), ((1, None), (-2, 0)), note=text),
        IntervalFigure(
            f"{text} scores", axis, (Estimate(text, 0.5, 0.4, 0.6, 0.25, 9, ((text, 0.3),)),), text
        ),
        SamplesFigure(f"{text} samples", (Sample(text, text, text, ((text, text),)),), text),
        PairsFigure(
            f"{text} pairs",
            (Pair(text, text, text, (Part(text), Part(text, True)), (Part(text),), ((text, 1),)),),
            text,
        ),
    ]  # fmt: skip


@pytest.fixture
def kinds() -> Callable[..., list[Figure]]:
    """`kinds("text")`: a figure of each kind, that text in every place a text can stand."""
    return every_kind
