"""What a block looks like and where it is, as integers.

Every feature is an integer (counts, shares in thousandths, bits), so that the same page gives the
same features on every machine. The functions return the names of the features and their values
[feature, block]; the weights of the model name them in the same order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stages.ingest.extraction.blocks import Blocks
from stages.ingest.extraction.vocabulary import BLOCK, BLOCK_TAGS, PLACES

Ints = NDArray[Any]  # of int32 or int64
LEVELS: Final = 5  # how many of the containers around a block are looked at
_END: Final = {**dict.fromkeys(":;'’)]", 1), **dict.fromkeys('.!?…。！？।؟"”»', 2)}
_FACTS: Final = (
    "characters", "words", "linked", "commas", "stops", "ends", "breaks", "marks", "colons",
    "title", "in_description",
)  # fmt: skip
LEXICON_FEATURES: Final = (
    "names_low", "names_high", "names_low_all", "names_high_all", "names_sum_all", "names_low_up",
    "names_high_up", "names_low_up2", "names_high_up2", "words_low", "words_high", "words_mean",
)  # fmt: skip
_TITLE_CHARACTERS: Final = 300
_DESCRIPTION_CHARACTERS: Final = 1_000
_SHORT: Final = 20  # characters below which a block's punctuation is not counted
_PARAGRAPH_WORDS: Final = 8
_ARTICLE_CHARACTERS: Final = 250
_FAR: Final = 999
_NO_MARK: Final = -9999
_WIDE: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
_KINDS: Final = "p li td th div figcaption dd dt pre blockquote label button".split()  # noqa: SIM905
_KIND: Final = np.full(len(BLOCK_TAGS) + 1, 9, np.int32)  # 1 to 6: headings; 9: other; 0: none
_KIND[0] = 0
for _tag, _code in BLOCK.items():
    if _tag in _KINDS:
        _KIND[_code] = 10 + _KINDS.index(_tag)
    elif _tag[0] == "h" and _tag[1:].isdigit():
        _KIND[_code] = int(_tag[1:])


class Page:
    """A page's blocks and containers as arrays; what both passes of the model read."""

    def __init__(self, blocks: Blocks) -> None:
        held = blocks.containers
        self.count = len(blocks.text)
        self.facts = _text_facts(blocks)
        self.container = np.array(blocks.container, np.int32)
        self.first = np.array(held.first_block, np.int32)
        self.last = _last_blocks(held.parent, held.first_block, blocks.container)
        wider = np.array([*_wider(held.parent, (self.last - self.first).tolist()), -1], np.int32)
        levels = [self.container]
        for _ in range(1, LEVELS):
            levels.append(wider[levels[-1]])
        self.levels: Ints = np.array(levels)  # [level, block]: containers, each wider; -1 for none
        tags = np.array([*held.tag, 0], np.int32)[self.container]
        self.kind = _KIND[tags]
        self.top = tags == BLOCK["h1"]
        self.index = np.arange(self.count)

    def within(self, amounts: Ints) -> Ints:
        """Sums of amounts [amount, block] over the containers around: [amount, level, block]."""
        sums = np.zeros((len(amounts), self.count + 1), np.int64)
        np.cumsum(amounts, axis=1, out=sums[:, 1:])
        held = np.empty((len(amounts), len(self.first) + 1), np.int64)
        held[:, :-1] = sums.take(self.last, axis=1) - sums.take(self.first, axis=1)
        held[:, -1] = sums[:, -1]  # -1, above the root, counts the whole page
        return held.take(self.levels, axis=1)


class _Rows:
    """Features as they are added."""

    def __init__(self, count: int) -> None:
        self.names: list[str] = []
        self.values: list[Ints] = []
        self._count = count

    def add(self, names: Iterable[str], values: Ints) -> None:
        """Several features, [feature, …, block]."""
        added = [*names]
        self.names += added
        self.values.append(values.reshape(len(added), self._count))

    def add_page(self, facts: dict[str, int]) -> None:
        """Features that all blocks of the page share."""
        column = np.array([*facts.values()], np.int64)[:, None]
        self.add(facts, np.broadcast_to(column, (len(facts), self._count)))

    def done(self) -> tuple[list[str], NDArray[np.int32]]:
        joined = np.concatenate(self.values, dtype=np.int32, casting="unsafe")
        return self.names, joined


def _wider(parent: list[int], size: list[int]) -> list[int]:
    """The nearest ancestor of each container that holds more blocks; -1 where there is none."""
    out = [-1] * len(parent)
    for index, above in enumerate(parent):
        if above >= 0:
            out[index] = above if size[above] != size[index] else out[above]
    return out


def _last_blocks(parent: list[int], first: list[int], container: list[int]) -> Ints:
    """The index after the last block inside each container."""
    last = first[:]
    for block, index in enumerate(container):
        if index >= 0:
            last[index] = block + 1
    for index in range(len(parent) - 1, 0, -1):
        above = parent[index]
        if above >= 0 and last[index] > last[above]:
            last[above] = last[index]
    return np.array(last, np.int32)


def _text_facts(blocks: Blocks) -> Ints:
    """Facts of each block's text: [fact, block]."""
    rows: list[int] = []
    title = blocks.title[:_TITLE_CHARACTERS].lower()
    descriptions = " ".join(blocks.descriptions)[:_DESCRIPTION_CHARACTERS]
    for text, linked in zip(blocks.text, blocks.link_characters, strict=True):
        characters = len(text)
        words = text.count(" ") + 1
        breaks = commas = stops = colons = 0
        if characters >= _SHORT:
            breaks, colons = text.count("\n"), text.count(":")
            commas, stops = text.count(","), text.count(". ")
        if not text.isascii():
            words += len(_WIDE.findall(text)) // 2
            commas += text.count("、") + text.count("，")
            stops += text.count("。")
        named = 0
        if 8 < characters < _TITLE_CHARACTERS:
            named = 2 * (text.lower() in title) + text.isupper()
        rows += (
            characters,
            words + breaks,
            linked,
            commas,
            stops,
            _END.get(text[-1], 0),
            breaks,
            ("©" in text) + 2 * ("|" in text),
            colons,
            named,
            characters > 24 and text[:80] in descriptions,
        )
    return np.array(rows, np.int32).reshape(-1, len(_FACTS)).T.copy()


def _share(part: Ints, whole: Ints | int) -> Ints:
    """Thousandths, 0 where the whole is nothing."""
    return part.astype(np.int64) * 1000 // np.maximum(whole, 1)


def first_features(page: Page, blocks: Blocks, marks: Ints) -> tuple[list[str], NDArray[np.int32]]:
    """What the first pass sees of each block; `marks` are those of its words, by the lexicon."""
    rows = _Rows(page.count)
    characters, words, linked = page.facts[:3]
    ends = page.facts[_FACTS.index("ends")]
    link_share = _share(linked, characters)
    heading = (page.kind > 0) & (page.kind < 9)
    prose = (link_share < 350) & (((words >= _PARAGRAPH_WORDS) & (ends > 0)) | (words > 24))
    good = np.where(prose, characters, 0)
    rows.add(_FACTS, page.facts)
    rows.add(("link_share", "kind"), np.array([link_share, page.kind]))
    places = np.array([*blocks.containers.places, 0], np.int32)[page.container]
    bits = np.arange(len(PLACES), dtype=np.int32)[:, None]
    rows.add((f"in_{name}" for name in PLACES), (places >> bits) & 1)
    depth = np.array([*blocks.containers.depth, 0], np.int32)[page.container]
    rows.add(("depth",), depth)
    rows.add(LEXICON_FEATURES, marks)
    _add_neighbours(rows, page, np.array([characters, link_share, good, ends, page.kind]))
    _add_containers(rows, page, np.array([characters, linked, good, heading]))
    _add_alike(rows, page, blocks, good)
    _add_articles(rows, page, blocks, good)
    _add_position(rows, page, characters, good, heading)
    total, total_good = int(characters.sum()), int(good.sum())
    rows.add_page(
        {
            "page_characters": total,
            "page_good": total_good,
            "page_good_share": total_good * 1000 // max(total, 1),
            "page_blocks": page.count,
            "page_link_share": int(linked.sum()) * 1000 // max(total, 1),
            "page_tops": int(page.top.sum()),
        }
    )
    return rows.done()


_OFFSETS: Final = np.array([-3, -2, -1, 1, 2, 3])


def _around(values: Ints, offsets: Ints) -> Ints:
    """Values [fact, block] of the blocks so much further on: [fact, offset, block]; -1 for none."""
    count = values.shape[1]
    padded = np.full((len(values), count + 6), -1, np.int64)
    padded[:, 3:-3] = values
    return padded.take(offsets[:, None] + np.arange(3, count + 3), axis=1)


def _add_neighbours(rows: _Rows, page: Page, facts: Ints) -> None:
    for names, values, offsets in (
        (("characters", "link_share"), facts[:2], _OFFSETS),
        (("good", "ends"), facts[2:4], _OFFSETS[2:4]),
        (("kind",), facts[4:], _OFFSETS[1:5]),
    ):
        labels = [f"{name}{offset:+d}" for name in names for offset in offsets.tolist()]
        rows.add(labels, _around(values, offsets))


def _add_containers(rows: _Rows, page: Page, amounts: Ints) -> None:
    """Amounts in the containers around the block."""
    ones = np.ones((1, page.count), np.int64)
    blocks, size, link, good, headings = page.within(np.concatenate([ones, amounts]))
    values = [blocks, size, good, headings, _share(link, size), _share(good, size)]
    names = ["blocks", "characters", "good", "headings", "link_share", "good_share", "page_share"]
    values.append(_share(good, int(amounts[2].sum())))
    labels = (f"{name}@{level}" for name in names for level in range(LEVELS))
    rows.add(labels, np.array(values))


def _add_alike(rows: _Rows, page: Page, blocks: Blocks, good: Ints) -> None:
    """Containers with the same tag and names: how many, and the prose in earlier and later ones."""
    held = blocks.containers
    kinds: dict[tuple[int, str], int] = {}
    kind = np.array(
        [kinds.setdefault(key, len(kinds)) for key in zip(held.tag, held.names, strict=True)],
        np.int64,
    )
    sums = np.zeros(page.count + 1, np.int64)
    np.cumsum(good, out=sums[1:])
    prose = sums[page.last] - sums[page.first]
    order = np.argsort(kind, kind="stable")
    ordered = prose[order]
    running = np.cumsum(ordered)
    ends = np.cumsum(np.bincount(kind, minlength=len(kinds)))
    through = np.concatenate([[0], running])[ends]  # prose up to the end of each kind
    before = np.concatenate([[0], through[:-1]]) if len(kinds) else through
    table = np.zeros((3, len(kind) + 1), np.int64)  # last column: no container
    if len(kinds):
        table[0, :-1] = np.bincount(kind)[kind]
        table[1, order] = running - ordered - before[kind[order]]
        table[2, order] = through[kind[order]] - running
    labels = (f"{name}@{level}" for name in ("alike", "earlier", "later") for level in range(4))
    rows.add(labels, table.take(page.levels[:4], axis=1))


def _add_articles(rows: _Rows, page: Page, blocks: Blocks, good: Ints) -> None:
    """The rank of the block's outermost `article` among those of the page that hold prose."""
    article = np.array([*blocks.containers.article, -1], np.int64)[page.container]
    none = len(page.first)
    slot = np.where(article < 0, none, article)
    prose = np.zeros(none + 1, np.int64)
    np.add.at(prose, slot, good)
    held = prose[slot]
    prose[none] = 0
    ordinal = np.cumsum(prose >= _ARTICLE_CHARACTERS)
    rows.add(
        ("article", "article_prose", "article_share"),
        np.array([np.where(article < 0, -1, ordinal[slot]), held, _share(held, int(good.sum()))]),
    )
    rows.add_page({"articles": int(ordinal[-1])})


def _add_position(rows: _Rows, page: Page, characters: Ints, good: Ints, heading: Ints) -> None:
    index = page.index
    named = page.facts[_FACTS.index("title")] >= 2
    values = [
        index,
        _share(index, page.count),
        _share(np.cumsum(characters), int(characters.sum())),
        _share(np.cumsum(good), int(good.sum())),
        _since(heading, index, -1),
        _since(good > 0, index, _FAR),
        _until(good > 0, index),
        np.cumsum(page.top),
    ]
    names = ["index", "index_share", "characters_left", "good_left", "since_heading"]
    names += ["since_good", "until_good", "tops"]
    for name, marked in (("h1", np.flatnonzero(page.top)), ("title", np.flatnonzero(named))):
        first, last = (int(marked[0]), int(marked[-1])) if len(marked) else (-1, -1)
        none = np.full(page.count, _NO_MARK)
        values.append(index - first if first >= 0 else none)
        values.append(index - last if last >= 0 else none)
        values.append(_level_around(page, first))
        names += [f"since_first_{name}", f"since_last_{name}", f"level_of_{name}"]
    rows.add(names, np.array(values))


def _since(marked: Ints, index: Ints, none: int) -> Ints:
    """Blocks since the last marked one, itself included; `none` before the first."""
    last = np.maximum.accumulate(np.where(marked, index, -1))
    return np.where(last >= 0, index - last, none)


def _until(marked: Ints, index: Ints) -> Ints:
    """Blocks until the next marked one, itself included, at most 999."""
    after = np.minimum.accumulate(np.where(marked, index, 1 << 30)[::-1])[::-1]
    return np.minimum(after - index, _FAR)


def _level_around(page: Page, mark: int) -> Ints:
    """The nearest level around each block whose container holds block `mark`; -1 for no mark."""
    if mark < 0:
        return np.full(page.count, -1)
    inside = np.ones(len(page.first) + 1, bool)
    inside[:-1] = (page.first <= mark) & (mark < page.last)
    held = inside[page.levels]
    return np.where(held.any(axis=0), held.argmax(axis=0), LEVELS)


def second_features(page: Page, scores: Ints) -> tuple[list[str], NDArray[np.int32]]:
    """What the second pass sees in addition to the first's features; scores are 0 to 1000."""
    rows = _Rows(page.count)
    index = page.index
    weights = np.minimum(page.facts[0], 2000).astype(np.int64)
    product = scores * weights
    main = np.where(scores >= 500, weights, 0)
    total_main, total = int(main.sum()), int(weights.sum())
    rows.add(("score",), scores)
    labels = [f"score{offset:+d}" for offset in _OFFSETS.tolist()]
    rows.add(labels, _around(scores[None], _OFFSETS))

    inside, scored, mine = page.within(np.array([weights, product, main]))
    values = [
        scored // np.maximum(inside, 1),
        mine,
        _share(mine, total_main),
        (scored - product) // np.maximum(inside - weights, 1),
    ]
    names = ("score", "main", "main_share", "others")
    rows.add((f"{name}@{level}" for name in names for level in range(LEVELS)), np.array(values))

    sums = np.zeros((2, page.count + 1), np.int64)
    np.cumsum([product, weights], axis=1, out=sums[:, 1:])
    for width in (5, 12):
        low, high = np.maximum(index - width, 0), np.minimum(index + width + 1, page.count)
        start, here, after, end = sums[:, low], sums[:, :-1], sums[:, 1:], sums[:, high]
        spans = np.array([end - start, here - start, end - after])
        labels = [f"{name}{width}" for name in ("window", "before", "after")]
        rows.add(labels, spans[:, 0] // np.maximum(spans[:, 1], 1))
    sure = scores >= 700
    rows.add(
        ("main_before", "since_main", "until_main"),
        np.array(
            [
                _share(np.cumsum(main) - main, total_main),
                _since(sure, index, _FAR),
                _until(sure, index),
            ]
        ),
    )
    confidence = int((np.abs(2 * scores - 1000) * weights).sum()) // max(total, 1)
    rows.add_page({"page_main": total_main, "page_confidence": confidence})
    return rows.done()
