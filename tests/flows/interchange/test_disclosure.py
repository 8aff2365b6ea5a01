"""A draft of what laws ask about training data: facts from the store, gaps named as such."""

from __future__ import annotations

import pytest

from artifacts_schema.errors import UsageError
from flows.analysis.cost import Cost
from flows.interchange.disclosure import (
    Disclosure,
    Source,
    describe_training_data,
    disclosure_page,
)
from flows.interchange.publication import TO_FILL
from stages.export.dataset import ExportDataset


def row(number, **changes):
    return {
        "doc_id": f"{number:032x}", "source": "web", "snapshot": "crawl", "metadata": "{}",
        "url": f"https://www.site{number % 3}.example.org/{number}", "language": "en",
        "date": f"2024-0{1 + number}-01T10:00:00Z", "text": "é" * (10 + number),
        "origin_file": "a", "origin_offset": number, "origin_length": 1, **changes,
    }  # fmt: skip


@pytest.fixture
def dataset(given, run_stage):
    """`dataset(rows)`: a data set of these documents, as a reference."""

    def make(rows):
        documents = given("documents", {"00000.parquet": rows})
        made = run_stage(ExportDataset, {"name": "corpus"}, {"documents": [documents]})
        return f"{made.key[:12]}:dataset"

    return make


def test_sources_are_counted_by_arithmetic(store, dataset):
    rows = [row(n) for n in range(4)]
    rows.append(row(5, snapshot="books", url=None, language=None, date=None, text="x" * 100))
    facts = describe_training_data(store, dataset(rows))
    books, crawl = facts.sources
    assert (books.snapshot, books.rows, books.text_bytes, books.dates) == ("books", 1, 100, None)
    assert (crawl.rows, crawl.text_bytes) == (4, 2 * (10 + 11 + 12 + 13))
    assert crawl.dates == ("2024-01-01", "2024-04-01")
    assert crawl.languages == {"en": 4}
    assert crawl.domains == {"example.org": 2 * (10 + 11 + 12 + 13)}
    assert books.languages == {"not declared": 1}


def test_the_page_has_both_forms_and_names_its_gaps(store, dataset):
    page = disclosure_page(describe_training_data(store, dataset([row(0), row(1)])))
    assert "Article 53(1)(d)" in page
    assert "section 3111" in page
    assert "- Latest date that a document declares: 2024-02-01" in page
    assert "Largest 1 of 1 registered domains, by bytes of text: example.org 42." in page
    assert all(f"{number}. " in page for number in range(1, 13))
    assert page.count(TO_FILL) > 12
    assert "section 3111" not in disclosure_page(
        describe_training_data(store, dataset([row(0)])), ["ai-act"]
    )


@pytest.mark.parametrize(
    ("tokens", "named"),
    [
        (0, TO_FILL),
        (999_999_999, "less than 1 billion tokens"),
        (10**9, "1 billion to 10 trillion tokens"),
        (10**13, "more than 10 trillion tokens"),
    ],
)
def test_sizes_are_those_of_the_template(tokens, named):
    facts = Disclosure("m", [Source("s", "k")], tokens, [], 0, False, Cost())
    assert f"- Size of the text: {named}" in disclosure_page(facts)


def test_energy_is_hours_times_power_times_the_overhead_of_a_data_centre():
    cost = Cost(gpu_seconds=3600 * 100, cpu_seconds=3600 * 50)
    facts = Disclosure("m", [], 0, [], 0, False, cost)
    assert facts.energy_kwh == pytest.approx((100 * 700 + 50 * 10) / 1000 * 1.56)


def test_what_was_made_of_no_documents_is_refused(store, given):
    manifest, output = given("tokenizer", {"tokenizer.json": {}})
    with pytest.raises(UsageError, match="made of no documents"):
        describe_training_data(store, f"{manifest.key[:12]}:{output}")
