"""The recipes that write published shapes out are those shapes."""

from __future__ import annotations

import pytest
import yaml
from docs_pages import DOCS, ROOT, blocks

from flows.recipe.recipe import load_recipe
from stages.model.config import ModelShape, preset
from stages.model.presets import PRESETS

PAGE = DOCS / "how-to" / "published-model.md"
NAMES = {name.replace(".", "-"): name for name in PRESETS}  # no dots in the name of a recipe
WRITTEN = {
    NAMES[name]: block.text
    for block in blocks(PAGE, "yaml")
    if (name := yaml.safe_load(block.text)["name"]) in NAMES
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_recipe_has_the_shape_of_the_published_model(name, tmp_path):
    (tmp_path / "flows").symlink_to(ROOT / "flows")
    path = tmp_path / f"{name}.yaml"
    path.write_text(WRITTEN[name])
    config = load_recipe(path).steps["pretrain"].config
    assert ModelShape.parse(config["model"], where=name) == preset(name)


def test_each_family_is_written_out_once():
    assert len(WRITTEN) == 5


def test_every_shape_is_listed():
    assert all(f"| `{name}` |" in PAGE.read_text() for name in PRESETS)
