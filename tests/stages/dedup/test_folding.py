"""What a text folds to: by hand, and against whole-string decompositions by `unicodedata`."""

from __future__ import annotations

import re
import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_shingles import folded_words

from stages.dedup import folding
from stages.dedup.folding import EXPANSION, PADDING, FoldTable, fold_bytes, fold_character

_TABLE = FoldTable()

WRITING = (
    "abcXYZ 0189_.,'\"-\t\n\0“”‘’«»—…‑\u00ad\u200b\u200d\ufeff\u0301\u0308\u0327\u20dd\u0345"
    "éÉñßẞİıſςΣάᾳℌ™²½①ﬁﬀĳŉＡｂ９％　ｶﾞー中文漢㐀𠀀々〆〇かがガッ한글각한〮"
    "नमस्ते कि को 10 १०ไทยภาษา๒ນ້ຳខ្មែរ២မြန်မာཀ்ོகொঢ়ো১بِسْمﷺ㌖㈝⒇\u115f🙂\U000e0041"
)
TEXTS = st.one_of(st.text(), st.text(st.sampled_from(WRITING)))


def fold_words(text: str | bytes, table: FoldTable = _TABLE) -> list[str]:
    """The words in the bytes that the kernel writes, by the rule it states for ASCII."""
    content = text if isinstance(text, bytes) else text.encode()
    data = np.frombuffer(content + bytes(PADDING), dtype=np.uint8)
    folded = np.empty(EXPANSION * len(content) + PADDING, dtype=np.uint8)
    while (n := fold_bytes(data, 0, len(content), table.entries, table.pool, folded)) < 0:
        table.learn(-1 - n)
    lowered = folded[:n].tobytes().lower().decode()
    return re.findall(r"[a-z0-9\x80-\U0010FFFF]+", lowered)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("“Don’t” — she said…", "don t she said"),
        ("Ｆｕｌｌ　Ｗｉｄｔｈ １２", "full width 12"),
        ("ﬁrst oﬃce ĳs", "first office ijs"),
        ("CAFÉ cafe\u0301 ÇA", "cafe cafe ca"),
        ("STRASSE Straße ΣΊΣΥΦΟΣ σίσυφος", "strasse strasse σισυφοσ σισυφοσ"),
        ("İstanbul ıslak", "istanbul ıslak"),
        ("zero\u200bwidth soft\u00adhyphen \ufeffmark", "zerowidth softhyphen mark"),
        ("keycap 1\ufe0f\u20e3 x\u20ddy", "keycap 1 xy"),
        ("snake_case a+b 3.14 1,000", "snake case a b 3 14 1 000"),
        ("½ m² ①", "1 2 m2 1"),
        ("中文a中b１2", "中 文 a 中 b12"),
        ("日本語のコンピュータ・ゲーム", "日 本 語 の コ ン ヒ ュ ー タ ケ ー ム"),
        ("ｺﾝﾋﾟｭｰﾀｹﾞｰﾑ", "コ ン ヒ ュ ー タ ケ ー ム"),
        ("二〇二四年 2024年", "二 〇 二 四 年 2024 年"),
        ("ไทย ๒๕๖๗", "ไ ท ย 2567"),
        ("٢٠٢٤ ۲۰۲۴ २०२४ ２０２４ ២០២៤ 𝟚𝟘𝟚𝟜", "2024 2024 2024 2024 2024 2024"),
        ("မာကျော", "မာ ကျော"),
        ("किताब को", "किताब को"),
        ("don\u02bct", "donʼt"),
        ("㌖", "キ ロ メ ー ト ル"),
        ("🙂!?—\0", ""),
        ("", ""),
    ],
)
def test_a_text_folds_to_the_words_a_reader_would_call_the_same(text: str, words: str) -> None:
    kept = [unicodedata.normalize("NFKD", word) for word in words.split()]
    assert fold_words(text) == ["".join(c for c in w if c != "\u3099") for w in kept]


def test_a_curly_apostrophe_parts_a_word_as_a_straight_one_does() -> None:
    assert fold_words("don’t “quote” it’s") == fold_words("don't \"quote\" it's")


@settings(max_examples=500, deadline=None)
@given(TEXTS)
def test_the_kernel_folds_as_the_definition_says(text: str) -> None:
    assert fold_words(text) == folded_words(text)


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_texts_that_are_compatibly_equal_fold_alike(text: str, form: str) -> None:
    assert fold_words(unicodedata.normalize(form, text)) == fold_words(text)


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_a_fold_folds_to_itself(text: str) -> None:
    words = fold_words(text)
    assert fold_words(" ".join(words)) == words


@settings(max_examples=100, deadline=None)
@given(TEXTS, TEXTS)
def test_what_was_met_before_changes_nothing(first: str, second: str) -> None:
    fresh, used = FoldTable(), FoldTable()
    fold_words(first, used)
    assert fold_words(second, fresh) == fold_words(second, used)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40))
def test_bytes_that_are_no_utf8_neither_fail_nor_leave_the_text(content: bytes) -> None:
    assert fold_words(content + b" end")[-1] == "end"


@pytest.mark.parametrize("cut", [b"\xc3", b"\xe4\xb8", b"\xf0\x9f\x99", b"\xff", b"\x80"])
def test_a_sequence_that_is_cut_short_parts_words(cut: bytes) -> None:
    assert fold_words(b"one" + cut + b"two" + cut) == ["one", "two"]


@pytest.mark.parametrize("letter", ["é", "中", "𠀀"])
def test_a_text_that_is_cut_short_takes_nothing_from_the_next(letter: str) -> None:
    data = np.frombuffer(letter.encode() + bytes(PADDING), dtype=np.uint8)
    folded = np.empty(2 * PADDING, dtype=np.uint8)
    _TABLE.learn(0)
    for end in range(1, len(letter.encode())):
        assert fold_bytes(data, 0, end, _TABLE.entries, _TABLE.pool, folded) == end
        assert folded[:end].tobytes() == b" " * end


def test_every_character_that_folding_changes_is_as_defined_beside_every_kind_of_letter() -> None:
    changed = [
        char
        for char in map(chr, range(sys.maxunicode + 1))
        if not 0xD800 <= ord(char) < 0xE000 and unicodedata.category(char) not in ("Cn", "Co")
        if fold_character(char) != char or not char.isalpha()
    ]
    assert len(changed) > 25_000
    text = "".join(f"a{char}b中{char}文{char}1 " for char in changed)
    assert fold_words(text) == folded_words(text)


@pytest.mark.full
def test_every_fold_fits_the_room_that_is_kept_for_it() -> None:
    table = FoldTable()
    most = 0.0
    for first in range(0, sys.maxunicode + 1, folding._BLOCK):
        table.learn(first)
    lengths = table.entries >> np.uint64(48) & np.uint64(63)
    for first, last, size in ((0, 0x80, 1), (0x80, 0x800, 2), (0x800, 0x10000, 3)):
        most = max(most, float(lengths[first:last].max() / size))
    most = max(most, float(lengths[0x10000:].max() / 4))
    assert most == 11.0  # U+FDFA, eighteen code points of Arabic
    # A letter after one that stands alone costs one byte more.
    assert most + 1 <= EXPANSION
    assert lengths.max() < 63
