"""Every link leads somewhere, and every page is led to."""

from __future__ import annotations

import pytest
from docs_pages import DOCS, PAGES, ROOT, anchors, links


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_links_lead_to_files_and_headings_that_exist(page):
    for link in links(page):
        if "://" in link:
            assert link.startswith("https://"), link
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name}: {link}"
        assert target.is_relative_to(ROOT), f"{page.name}: {link} leaves the project"
        if anchor:
            assert anchor in anchors(target), f"{page.name}: no heading for {link}"


def test_every_page_is_linked_from_the_map():
    index = DOCS / "index.md"
    mapped = {(DOCS / link.partition("#")[0]).resolve() for link in links(index)}
    assert {page for page in PAGES if page != index} <= mapped


def test_anchors_are_those_of_github(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# The `ingot up` page\n## What, and why?\n## A\n## A\n```\n# no heading\n```\n"
    )
    assert anchors(page) == {"the-ingot-up-page", "what-and-why", "a", "a-1"}
