"""Fill in the middle: turned documents give their text back, as often and in the order asked."""

from __future__ import annotations

import math
import random

import pytest

from artifacts_schema.errors import UsageError
from stages.pack.config import FillInTheMiddle
from stages.pack.documents import split_for_fim, takes_part
from stages.tokens.vocabulary import SpecialTokens

BEGIN, END, PREFIX, MIDDLE, SUFFIX = 0, 1, 5, 6, 7


def code(documents, words=20):
    draw = random.Random(1)
    return [
        {
            "doc_id": f"{n:032x}",
            "source": "code/python" if n % 2 else "web",
            "language": "en",
            "text": " ".join(
                draw.choices(["def", "naïve", "你好", "12", "x", "\n", "😀"], k=words)
            ),
        }
        for n in range(documents)
    ]


def undone(ids, tokenizer):
    """(order, text) of the ids of a turned document; ("", text) of any other."""
    assert (ids[0], ids[-1]) == (BEGIN, END)
    body = ids[1:-1]

    def text(part):
        return tokenizer.decode(part, skip_special_tokens=False)

    if PREFIX not in body:
        return "", text(body)
    assert body[0] == PREFIX
    suffix, middle = body.index(SUFFIX), body.index(MIDDLE)
    assert suffix < middle
    if suffix == 1:
        return "spm", text(body[middle + 1 :]) + text(body[2:middle])
    between = text(body[suffix + 1 : middle])
    return "psm", text(body[1:suffix]) + text(body[middle + 1 :]) + between


def test_undoing_gives_the_text_and_shares_are_those_asked_for(pack, read_documents, tokenizer):
    rows = code(1600)
    settings = {"rate": 0.4, "spm_rate": 0.25, "sources": ["code*"]}
    manifest = pack([rows], fim=settings, sequence_length=256, held_out_share=0.1)
    texts = {row["doc_id"]: row for row in rows}
    orders = []
    for name, ids in read_documents(manifest, "train").items():
        order, text = undone(ids, tokenizer)
        assert text == texts[name]["text"]
        assert texts[name]["source"] != "web" or not order
        if texts[name]["source"] != "web":
            orders.append(order)
    for ids in read_documents(manifest, "held_out").values():
        assert not undone(ids, tokenizer)[0], "what is held out stays comparable"
    n, some = len(orders), [order for order in orders if order]
    assert abs(len(some) - 0.4 * n) < 4 * math.sqrt(n * 0.4 * 0.6)
    spm = some.count("spm")
    assert abs(spm - 0.25 * len(some)) < 4 * math.sqrt(len(some) * 0.25 * 0.75)
    assert manifest.counts["fim_documents"] == len(some)


def test_a_character_of_several_bytes_is_never_split(tokenizer):
    tokens = SpecialTokens(BEGIN, END, 2, None, None, PREFIX, MIDDLE, SUFFIX)
    settings = FillInTheMiddle(rate=1.0)
    places = set()
    for n in range(400):
        parts = split_for_fim(f"{n:032x}", "aé😀b", settings, tokens, 0)
        assert parts is not None
        assert sorted("".join(part.text for part in parts)) == sorted("aé😀b")
        places.add(tuple(len(part.text) for part in parts))
    assert (0, 0, 4) in places or (4, 0, 0) in places, "a part may be empty"


def test_a_document_that_would_be_torn_stays_as_it_is(pack, read_documents, tokenizer):
    """At 64 tokens a sequence, documents of some 100 words would be cut within."""
    rows = code(60, words=100) + [
        {**row, "doc_id": f"{9:01x}{n:031x}"} for n, row in enumerate(code(60))
    ]
    manifest = pack([rows], fim={"rate": 1.0, "sources": ["*"]}, held_out_share=0.0)
    texts = {row["doc_id"]: row["text"] for row in rows}
    for name, ids in read_documents(manifest, "train").items():
        order, text = undone(ids, tokenizer)
        assert text == texts[name]
        assert not order or len(ids) <= 64
        assert order or len(ids) > 64 - 3 - 6, "at rate 1 only what would not fit stays"
    assert 0 < manifest.counts["fim_documents"] < 120


def test_the_draw_is_the_documents_own(pack, read_documents):
    """Whatever shard a document is in, and whatever lies beside it."""
    rows = code(100)
    settings = {"rate": 0.5, "sources": ["*"]}
    one = read_documents(pack([rows], fim=settings, held_out_share=0.0), "train")
    apart = pack([rows[:7], rows[60:], rows[7:60]], fim=settings, held_out_share=0.0)
    assert read_documents(apart, "train") == one
    other = read_documents(pack([rows], fim=settings, held_out_share=0.0, seed=1), "train")
    assert other != one


def test_sources_and_languages_choose():
    settings = FillInTheMiddle(sources=("code*", "notebooks"), languages=("python",))
    assert takes_part("code/rust", None, settings)
    assert takes_part("notebooks", "en", settings)
    assert takes_part("web", "python", settings)
    assert not takes_part("web", None, settings)
    assert not takes_part("notebooks2", "en", settings)


def test_a_tokenizer_without_the_tokens_is_refused(pack, tokenizer_files, tokenizer):
    files = tokenizer_files(tokenizer)
    renamed = files["tokenizer.json"].replace(b"<|fim_middle|>", b"<|filler|>")
    with pytest.raises(UsageError, match=r"<\|fim_prefix\|>"):
        pack([code(4)], fim={}, files={**files, "tokenizer.json": renamed})


def test_fim_of_nothing_is_refused(pack):
    with pytest.raises(UsageError, match="sources or languages"):
        pack([code(4)], fim={"sources": []})


def test_a_source_that_is_not_there_is_a_warning(pack, caplog):
    manifest = pack([code(4)], fim={"sources": ["cobol"]})
    assert manifest.counts["fim_documents"] == 0
    assert "no document was turned to fill in the middle" in caplog.text
