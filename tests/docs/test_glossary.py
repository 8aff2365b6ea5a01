"""The glossary of docs/concepts.md: short, sorted, and of words that are in use."""

from __future__ import annotations

import re

from docs_pages import DOCS

HEADING = "\n## Glossary\n"
MOST_TERMS = 60
PRODUCT = ("artifacts_schema", "stages", "flows")


def glossary() -> dict[str, str]:
    section = (DOCS / "concepts.md").read_text().partition(HEADING)[2]
    rows = [
        re.split(r"(?<!\\)\|", line)[1:3] for line in section.splitlines() if line.startswith("| ")
    ]
    return {term.strip(): meaning.strip() for term, meaning in rows[2:]}


def test_the_glossary_is_short_and_sorted():
    terms = glossary()
    assert 40 <= len(terms) <= MOST_TERMS
    assert list(terms) == sorted(terms)
    assert all(terms.values())


def test_every_term_is_used_outside_the_glossary():
    """On the pages, or in the product's code and its docstrings."""
    pages = list(DOCS.rglob("*.md"))
    code = [path for name in PRODUCT for path in (DOCS.parent / name).rglob("*.py")]
    texts = [path.read_text().partition(HEADING)[0] for path in pages + code]
    text = " ".join(" ".join(texts).lower().split())
    unused = [term for term in glossary() if not re.search(rf"\b{re.escape(term)}", text)]
    assert unused == []
