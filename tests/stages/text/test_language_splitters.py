"""Splitters of languages: datatrove's tokens as frozen, hostile texts, and no library at all.

What needs the extra `splitters` is skipped without it; tests/peers/test_fineweb_2.py holds the same
libraries against datatrove itself.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from artifacts_schema.errors import UsageError
from stages.text.batch import place_tokens, split_texts
from stages.text.language_splitters import (
    cut_by_bytes,
    find_language_tokens,
    load_language_splitter,
)
from stages.text.splitters import LANGUAGE_LIBRARIES, SPACY_CODES, UNSUPPORTED

MODULES = ("jieba", "kiwipiepy", "pythainlp", "spacy", "sudachipy")
needs_extra = pytest.mark.skipif(
    not all(map(find_spec, MODULES)), reason="the extra `splitters` is not installed"
)

DATATROVE = {
    "zh": ("我们在北京大学学习。2024年，他说：\"你好！\"  IS 好\n第二行",
           "我们 在 北京大学 学习 。 2024 年 ， 他 说 ： \" 你好 ！ \" IS 好 第二行"),
    "ja": ("東京都に行きました。New York は大きい。　全角 スペース\n次",
           "東京 都 に 行き まし た 。 New_York は 大きい 。 全角 スペース 次"),
    "th": ("ผมรักประเทศไทย และ ชอบกินข้าว 1,234.50 บาท\nบรรทัดที่สอง",
           "ผม รัก ประเทศ ไทย และ ชอบ กินข้าว 1,234.50 บาท บรรทัด ที่สอง"),
    "ar": ("مرحبا بالعالم، كيف الحال؟ د. أحمد والكتاب",
           "مرحبا بالعالم ، كيف الحال ؟ د. أحمد والكتاب"),
    # Two morphemes in one syllable are two tokens; after a long number places are displaced.
    "ko": ("나는 어제 학교에 갔다. 했다 123456789012345678901234567890 그리고 왔다.\n둘째 줄",
           "나 는 어제 학교 에 갔 갔 다 . 했 했 다 234 6 6 7 8 01 3"),
}  # fmt: skip
"""Text and tokens of datatrove 0.10.1's splitter, `_` for a space within one; kiwipiepy 0.21.0,
pythainlp 5.4.0, SudachiPy 0.7.0 with sudachidict-core 20261015, jieba 0.42.1, spaCy 3.8.18."""


def tokens(text: str, language: str) -> list[str]:
    """The strings of the tokens."""
    return [text[start:end] for start, end in find_language_tokens(text, language)]


@needs_extra
@pytest.mark.parametrize("language", DATATROVE)
def test_tokens_are_those_of_datatrove(language: str) -> None:
    text, expected = DATATROVE[language]
    assert tokens(text, language) == [token.replace("_", " ") for token in expected.split()]


@needs_extra
@pytest.mark.parametrize("language", DATATROVE)
@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\u3000",
        "\x00",
        "a\ud800b",
        "😀👨\u200d👩 한",
        "。" * 5000,
        "1" * 5000,
        "กฺ\u0301" * 99,
    ],
)
def test_any_text_is_split_into_places_within_it(language: str, text: str) -> None:
    spans = find_language_tokens(text, language)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert not any(text[start:end] != text[start:end].strip() for start, end in spans)
    if language != "ko":  # Kiwi leaves out what it does not know, and long numbers.
        assert "".join(text[a:b] for a, b in spans) == "".join(text.split())


@needs_extra
def test_a_text_too_long_for_sudachi_is_cut_where_datatrove_cuts_it() -> None:
    """datatrove's `chunk_text_on_bytes(text, 40000)` gave these lengths for these texts."""
    texts = ["東京都に行きました。" * 3000, "abc " * 15_000 + "東" * 20_000, "é" * 25_000]
    cut = [[end - start for start, end in cut_by_bytes(t, 40_000)] for t in texts]
    assert cut == [[13_333, 13_333, 3_334], [39_996, 26_666, 13_326, 12], [20_000, 5_000]]
    assert len(tokens(texts[0], "ja")) > 20_000


@needs_extra
def test_a_name_inside_spacy_is_a_word_each_time() -> None:
    assert [tokens("في IS_ALPHA", "ar") for _ in range(3)] == [["في", "IS_ALPHA"]] * 3


@needs_extra
def test_no_library_writes_in_the_home_or_the_temporary_folder(tmp_path: Path) -> None:
    places = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME"), str(tmp_path))
    program = (
        "from stages.text.language_splitters import find_language_tokens\n"
        "for language in ('ar', 'ja', 'ko', 'th', 'zh'):\n"
        "    find_language_tokens('我们在 กิน', language)\n"
    )
    environment = {"PATH": "", "PYTHONDONTWRITEBYTECODE": "1", **places}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def no_libraries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if the extra was not installed."""
    for name in (*MODULES, "pythainlp.tokenize"):
        monkeypatch.setitem(sys.modules, name, None)
    load_language_splitter.cache_clear()
    yield
    load_language_splitter.cache_clear()


@pytest.mark.parametrize("language", ["ar", "ja", "ko", "th", "zh"])
@pytest.mark.usefixtures("no_libraries")
def test_a_missing_library_is_named_with_its_extra(language: str) -> None:
    with pytest.raises(UsageError) as error:
        find_language_tokens("text", language)
    assert LANGUAGE_LIBRARIES[language] in str(error.value)
    assert "ingot[splitters]" in str(error.value.hint)


def test_each_language_has_one_library_or_is_left_out_by_name() -> None:
    assert not LANGUAGE_LIBRARIES.keys() & UNSUPPORTED.keys()
    assert len(LANGUAGE_LIBRARIES) + len(UNSUPPORTED) == 95  # Of stages/filter/fineweb_2.json.
    assert SPACY_CODES.keys() < LANGUAGE_LIBRARIES.keys()


def test_tokens_that_overlap_are_placed_as_given() -> None:
    batch = place_tokens(["", "갔다", "ab c"], [[], [(0, 1), (0, 1), (1, 2)], [(0, 2), (3, 4)]])
    own = batch.tokens
    assert own.offsets.tolist() == [0, 0, 3, 5]
    assert own.starts.tolist() == [0, 0, 1, 2, 5]
    assert own.lengths.tolist() == [1, 1, 1, 2, 1]
    assert own.hashes[0] == own.hashes[1]
    whole = split_texts(["ab c"]).tokens
    assert own.hashes[3:].tolist() == whole.hashes.tolist()
    assert own.kinds[3:].tolist() == whole.kinds.tolist()


def test_nothing_to_place() -> None:
    assert place_tokens([], []).tokens.offsets.tolist() == [0]
    assert len(place_tokens(["a"], [[]]).tokens.hashes) == 0
