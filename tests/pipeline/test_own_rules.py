"""`own-rule.md` prints a recipe with rules of its own and a command that runs it, as done here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from docs_pages import DOCS, blocks, ingot_commands

from flows.cli.main import main
from stages.engine.page import Artifact

TINY = Path(__file__).parent / "tiny.yaml"
PAGE = DOCS / "how-to" / "own-rule.md"


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's recipe on the tiny corpus, in the current folder."""
    (text,) = [b.text for b in blocks(PAGE, "yaml") if b.text.startswith("name: own_rules")]
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "own_rules.yaml"
    path.write_text(text.replace("extends: quickstart", f"extends: {TINY}"))
    return path


def run_page_command(first: str, store: Any, *options: str) -> Any:
    """The command of the page that begins so, on this store."""
    (words,) = [w for w in ingot_commands(PAGE) if " ".join(w).startswith(first)]
    return CliRunner().invoke(main, [*words, "--store", str(store), *options])


def test_a_rule_of_the_recipe_is_a_reason_in_ledger_and_report(copy: Any, recipe: Path) -> None:
    result = run_page_command("run own_rules.yaml", copy.folder, "--no-prefect")
    assert result.exit_code == 0, result.output
    manifest, _ = copy.store.resolve("own_rules/filter")
    assert manifest.conservation.dropped["few_sentences"] > 0
    ledger = [
        row
        for shard in Artifact(copy.store, manifest).output("ledger").shards("*/*.parquet")
        for row in shard.read().to_pylist()
    ]
    failing = [row for row in ledger if row["reason"] == "few_sentences"]
    assert {row["threshold"] for row in failing} == {12}
    assert all(row["value"] < 12 for row in failing)
    from stages.filter.page import page

    figures = page(Artifact(copy.store, manifest))
    (table,) = [figure for figure in figures if figure.title.startswith("Rules, thresholds")]
    names = [row[0] for row in table.rows]
    assert {"few_sentences", "other_script", "long_lines"} <= set(names)
    moved = run_page_command("what-if own_rules", copy.folder)
    assert moved.exit_code == 0, moved.output
    assert "few_sentences" in moved.output


@pytest.mark.parametrize(
    ("change", "value"),
    [
        (("signal: sentences", "signal: sentence"), "'sentences'"),
        (("name: few_sentences", "name: gopher_few_words"), "'gopher_few_words'"),
        (("minimum: 12", "minimun: 12"), "'minimum'"),
        (("allowed: [Latin]", "minimum: 1"), "'script'"),
        (("signal: code_max_line_length", "signal: perplexity"), "'perplexity'"),
    ],
)
def test_a_wrong_rule_is_refused_in_the_plan(
    change: tuple[str, str], value: str, ran: Any, recipe: Path
) -> None:
    recipe.write_text(recipe.read_text().replace(*change))
    result = CliRunner().invoke(main, ["plan", str(recipe), "--store", str(ran.folder)])
    assert result.exit_code == 2
    assert value in result.output
