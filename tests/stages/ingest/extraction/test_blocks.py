"""The pass over the tree: what a block is, and what is kept of it."""

from __future__ import annotations

import pytest
from selectolax.lexbor import LexborHTMLParser

from stages.ingest.extraction.blocks import Blocks, segment
from stages.ingest.extraction.nesting import PageTooLarge
from stages.ingest.extraction.vocabulary import BLOCK, PLACE_BIT


def blocks_of(html: str) -> Blocks:
    return segment(LexborHTMLParser(html))


def test_each_block_element_begins_a_block_and_inline_elements_do_not() -> None:
    html = "<div>loose <b>bo</b>ld<p>one <a href=x>li</a>nk</p>after<h2>head</h2></div>"
    assert blocks_of(html).text == ["loose bold", "one link", "after", "head"]


def test_one_break_is_a_line_and_two_are_a_new_block() -> None:
    assert blocks_of("<p>a<br>b<br> <br>c").text == ["a\nb", "c"]


def test_white_space_is_squeezed_but_not_in_preformatted_text() -> None:
    found = blocks_of("<p>a \n\t b\u00a0 c</p><pre>\n  if x:\n\treturn  1 \n\n</pre>")
    assert found.text == ["a b c", "  if x:\n    return  1"]
    assert found.preformatted == [False, True]


@pytest.mark.parametrize(
    "hidden",
    [
        "<script>var a = '<p>no</p>'</script>",
        "<style>p {}</style>",
        "<noscript>no</noscript>",
        "<template><p>no</p></template>",
        "<svg><title>no</title><text>no</text></svg>",
        "<select><option>no</option></select>",
        "<textarea>no</textarea>",
        '<span style="display: none">no</span>',
        "<span hidden>no</span>",
        "<!-- no -->",
        "<iframe>no</iframe>",
    ],
)
def test_what_is_not_shown_is_no_text(hidden: str) -> None:
    assert blocks_of(f"<p>yes{hidden} yes</p>").text == ["yes yes"]


def test_hidden_blocks_are_kept_and_marked() -> None:
    found = blocks_of('<div style="display:none"><p>a</div><p>b')
    hidden = [
        bool(found.containers.places[container] & PLACE_BIT["hidden"])
        for container in found.container
    ]
    assert (found.text, hidden) == (["a", "b"], [True, False])


def test_characters_in_links_are_counted() -> None:
    found = blocks_of("<p>see <a href=x>here</a></p><a href=y><div>all</div></a><p>none")
    assert list(zip(found.text, found.link_characters, strict=True)) == [
        ("see here", 4),
        ("all", 3),
        ("none", 0),
    ]


def test_places_come_from_tags_and_roles_of_all_ancestors() -> None:
    found = blocks_of("<nav><ul><li>x</ul></nav><div role=main><article><p>y")
    first, second = (found.containers.places[index] for index in found.container)
    assert first & PLACE_BIT["nav"]
    assert first & PLACE_BIT["list"]
    assert not first & PLACE_BIT["article"]
    assert second & PLACE_BIT["main"]
    assert second & PLACE_BIT["article"]


def test_containers_know_parent_row_item_and_outermost_article() -> None:
    found = blocks_of("<article><article><ul><li><p>a</ul><table><tr><td>b</table>")
    held = found.containers
    tags = {tag: held.tag.index(BLOCK[tag]) for tag in ("li", "tr", "article")}
    a, b = found.container
    assert (held.item[a], held.row[a], held.article[a]) == (tags["li"], -1, tags["article"])
    assert (held.item[b], held.row[b], held.article[b]) == (-1, tags["tr"], tags["article"])
    assert all(above < index for index, above in enumerate(held.parent))


def test_formulas_are_tex_between_dollar_signs_and_written_once() -> None:
    html = (
        '<p>so <math alttext="a^2"><mi>a</mi></math> and '
        '<span style="display:none"><math><semantics><mi>b</mi>'
        '<annotation encoding="application/x-tex">b_1</annotation></semantics></math></span>'
        '<script type="math/tex">c</script>.'
    )
    assert blocks_of(html).text == ["so $a^2$ and $b_1$$c$."]


def test_title_and_descriptions_are_kept_but_are_no_blocks() -> None:
    found = blocks_of(
        "<head><title> A  title</title><meta name=description content='What it is'></head>"
        "<body><svg><title>no</title></svg><p>x"
    )
    assert (found.title, found.descriptions, found.text) == ("A title", ["What it is"], ["x"])


def test_more_nodes_than_allowed_are_refused() -> None:
    tree = LexborHTMLParser("<p>x</p>" * 100)
    nodes = segment(tree).nodes
    assert segment(tree, nodes).nodes == nodes == 3 + 200  # html, head, body; p, text
    with pytest.raises(PageTooLarge) as refused:
        segment(tree, nodes - 1)
    assert refused.value.reason == "too_many_nodes"


def test_text_nodes_are_named_for_the_markdown_writer() -> None:
    tree = LexborHTMLParser("<p>a <b>b</b></p><p>c")
    found = segment(tree, text_nodes=True)
    texts = {
        node.mem_id: node.text_content
        for node in tree.root.traverse(include_text=True)  # type: ignore[union-attr]
        if node.is_text_node
    }
    assert [[texts[one] for one in ids] for ids in found.text_nodes] == [["a ", "b"], ["c"]]
