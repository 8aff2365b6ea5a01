"""Texts of documents shards to token ids, by `tokenizers` or by gigatoken.

Documents are read a little text at a time, so that neither table nor row group is held, and
encoded as one flat array for many documents. Both encoders read special tokens in a text as
plain characters, and add none. gigatoken has no switch for that: it loads the tokenizer
without its special tokens.

A fast encoder is used only if its ids equal those of `tokenizers`: they are compared on texts that
tokenizers have disagreed on before (apostrophes, digits, white space, marks, scripts, joiners,
special tokens spelt out, long runs), on the first documents of the run, and in each process on
the first documents of each shard.
"""

from __future__ import annotations

import json
import logging
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from artifacts_schema.errors import UsageError
from artifacts_schema.kinds import kind_named
from stages.engine.arrays import PAGES_BYTES, rows_at_once, text_cuts
from stages.pack.plan import Plan

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from stages.engine import Input, Shard


@dataclass(frozen=True)
class DocumentShard:
    """A shard of one of several documents inputs, with an id that is unique over all of them."""

    id: str
    shard: Shard


def document_shards(documents: Sequence[Input]) -> list[DocumentShard]:
    """The shards of all inputs, in order."""
    return [
        DocumentShard(f"{place:03d}-{shard.id}", shard)
        for place, one in enumerate(documents)
        for shard in one.shards()
    ]


def batches(shard: Shard, columns: Sequence[str], text_bytes: int) -> Iterator[pa.RecordBatch]:
    """Rows in order, so many that their `text` takes `text_bytes` at most, and at least one."""
    with shard.input.open(shard.path) as file:
        parquet = pq.ParquetFile(file, buffer_size=PAGES_BYTES, pre_buffer=False)
        table = kind_named(shard.input.kind).table_for(shard.path)
        if table is not None:
            table.check(parquet.schema_arrow, where=shard.path)
        for group in range(parquet.num_row_groups):
            for batch in parquet.iter_batches(
                batch_size=rows_at_once(parquet.metadata.row_group(group), text_bytes),
                row_groups=[group],
                columns=list(columns),
                use_threads=False,
            ):
                for begin, end in text_cuts(batch["text"], text_bytes):
                    yield batch.slice(begin, end - begin)


@dataclass(frozen=True)
class Encoded:
    """Token ids of texts, one after the other; text i is ids[starts[i]:starts[i + 1]]."""

    ids: npt.NDArray[Any]
    starts: npt.NDArray[np.int64]


class Encoder(Protocol):
    """What turns texts into ids."""

    text_bytes: int
    """Bytes of text that a call should get, about."""

    def __call__(self, texts: pa.StringArray) -> Encoded:
        """The ids (uint32) of each text; no special token among them."""


class TokenizersEncoder:
    """`tokenizers` itself, which every other encoder must equal.

    It takes some 100 bytes for each token of a batch.
    """

    text_bytes = 1 << 20

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def __call__(self, texts: pa.StringArray) -> Encoded:
        """The ids of each text."""
        ids = array("I")
        starts = np.zeros(len(texts) + 1, dtype=np.int64)
        encode = self._tokenizer.encode_batch_fast
        for number, encoding in enumerate(encode(texts.to_pylist(), add_special_tokens=False)):
            ids.fromlist(encoding.ids)  # Three times as fast as an array made of each list.
            starts[number + 1] = len(ids)
        return Encoded(np.frombuffer(ids, dtype=np.uintc).astype(np.uint32, copy=False), starts)


class GigatokenEncoder:
    """gigatoken (github.com/marcelroed/gigatoken): text and ids pass without Python objects.

    UsageError if it is not installed or has no such tokenizer. A call takes a few milliseconds,
    whatever its size.
    """

    text_bytes = 1 << 23

    def __init__(self, description: str) -> None:
        try:
            import gigatoken
        except ImportError as problem:
            raise UsageError(
                "gigatoken is not installed",
                where="execution.encoder",
                hint="pip install 'ingot[gigatoken]', or set encoder: tokenizers",
            ) from problem
        try:
            self._tokenizer = gigatoken.Tokenizer.from_json(_without_special(description))
        except (RuntimeError, ValueError) as problem:
            reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
            raise UsageError(
                f"gigatoken can not load this tokenizer: {reason}",
                where="execution.encoder",
                hint="set encoder: tokenizers",
            ) from problem

    def __call__(self, texts: pa.StringArray) -> Encoded:
        """The ids of each text."""
        if not len(texts):
            return Encoded(np.empty(0, dtype=np.uint32), np.zeros(1, dtype=np.int64))
        layout = self._tokenizer.encode_batch(_awkward(texts), parallel=False).layout
        starts = np.asarray(layout.offsets.data, dtype=np.int64)
        ids = np.asarray(layout.content.data, dtype=np.uint32)
        return Encoded(ids[starts[0] : starts[-1]], starts - starts[0])


def _awkward(texts: pa.StringArray) -> Any:
    """The same strings as an Awkward array; nothing is copied but the offsets."""
    import awkward
    from awkward.contents import ListOffsetArray, NumpyArray
    from awkward.index import Index64

    width = "<i8" if pa.types.is_large_string(texts.type) else "<i4"
    _, offsets, data = texts.buffers()
    held = np.frombuffer(offsets, width)[texts.offset : texts.offset + len(texts) + 1]
    characters = np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)
    return awkward.Array(
        ListOffsetArray(
            Index64(held.astype(np.int64)),
            NumpyArray(characters, parameters={"__array__": "char"}),
            parameters={"__array__": "string"},
        )
    )


def _without_special(description: str) -> str:
    content = json.loads(description)
    added = content.get("added_tokens") or []
    content["added_tokens"] = [token for token in added if not token.get("special")]
    content["post_processor"] = None
    return json.dumps(content, ensure_ascii=False)


HOSTILE: tuple[str, ...] = (
    "",
    " ",
    "  ",
    "   ",
    "\n",
    "\r\n",
    "\n\n\n",
    " \n",
    "\n ",
    " \n\n \t\n  ",
    "\t\tx",
    "a  b   c",
    "line\r\n\r\nline\rline",
    "trailing   ",
    "   leading",
    "x \u00a0 y",
    "x\u3000y\u2003z\u200a",
    "\u0085\u2028\u2029",
    "\x00\x01\x1f\x7f",
    "\ufeffbom",
    "zero\u200bwidth\u200djoin\u200cer\u2060",
    "don't DON'T we'll WE'LL I'm I'M you've it's IT'S he'd they're 'tis ''s 'S'",
    "\u017f'\u017f 'ſs",
    "it’s don’t L’été",
    "1 12 123 1234 12345 123456789012345678901234567890",
    "3.14159 1,000,000 1e-9",
    "0x1F 2² ½ Ⅷ ① ٣٤٥ १२३ 五六七 ໒ 𝟙𝟚",
    "a1b2c3 x86_64 v1.2.3-rc4",
    "$€£¥₿ +-*/=<>&|^~%",
    "...!!!???———",
    "(((([[[[{{{{",
    "_____ -----=====~~~~~ #####",
    "/usr/local/bin https://a.b/c?d=e&f=%20#g",
    "a@b.co",
    "<|begin_of_text|>",
    "<|im_start|>user\n<|im_end|>",
    "x<|end_of_text|>y <|pad|>",
    "<s></s><unk>",
    "<|endoftext|><|fim_prefix|><|fim_suffix|>",
    "[CLS] [SEP] [MASK]",
    "▁under ▁bar",
    "Ġ Ċ ġ",
    "naïve café re\u0301sume\u0301 ﬁ ﬀ ĳ ß ẞ İ ı ǅ",
    "ΑΒΓ αβγ ς Σίσυφος",
    "Привет, мир! Ёё Ђђ",
    "שָׁלוֹם עולם",
    "مرحبا بالعالم ـــ لا إله",
    "नमस्ते दुनिया क्षत्रिय",
    "สวัสดีชาวโลก ภาษาไทย",
    "你好，世界！这是一个测试。",
    "こんにちは世界 カタカナ ﾊﾝｶｸ",
    "안녕하세요 세계 \u1112\u1161\u11ab",
    "ខ្មែរ မြန်မာ ລາວ",
    "ⴰⵣⵓⵍ አማርኛ ქართული հայերեն",
    "𐍈𝒜𝔅 𠜎𠜱 🂡",
    "😀 👩‍👩‍👧‍👦 🏳️‍🌈 🇺🇦 👍🏽 ☺️",
    "\U000e0001\U0010ffff\ue000\uffff",
    "e\u0301\u0301\u0301\u0327 a\u20dd",
    "\u202eright to left\u202c",
    "Ａｂｃ １２３",
    "aaaaaaaaaaaaaaaaaaaaaaaa" * 20,
    "ab" * 300,
    " " * 300,
    "\n" * 300,
    "- " * 200,
    "0" * 300,
    "é" * 200,
    "漢" * 300,
    "😀" * 100,
    "def f(x):\n    return {'a': [1, 2], \"b\": None}\n\n\nclass A:\n\tpass\n",
    "if (a&&b||!c){d++;}//e\n",
    "<p class='x'>T&amp;C</p>\n\n| a | b |\n|---|---|\n",
    "CamelCaseAndHTTPServer snake_case kebab-case",
    "\\frac{a}{b} $$x^2$$ \\n \\u00e9",
    "word " * 400,
)


RUN_BYTES, SHARD_BYTES = 1 << 16, 1 << 14
"""Of the first documents of a run, and of each shard."""
_EXCERPT = 40


@lru_cache(maxsize=1)
def load_encoder(plan: Plan) -> Encoder:
    """The encoder that the plan names: one for all shards of a process, as loading takes a while
    and some remember words."""
    if plan.encoder == "gigatoken":
        return GigatokenEncoder(plan.description)
    return TokenizersEncoder(plan.tokenizer())


@lru_cache(maxsize=1)
def _reference(plan: Plan) -> TokenizersEncoder:
    return TokenizersEncoder(plan.tokenizer())


def choose_encoder(
    wanted: str, plan: Plan, shards: Sequence[DocumentShard], log: logging.Logger
) -> str:
    """`tokenizers` or `gigatoken`: the encoder for `wanted`, after it was tried.

    UsageError if gigatoken is required but not installed, has no such tokenizer, or gives other
    ids: the first difference is named.
    """
    if wanted == "tokenizers":
        return wanted
    try:
        fast = GigatokenEncoder(plan.description)
        check_ids(fast, plan, pa.array(HOSTILE, pa.string()), "a probe text")
        for shard in shards[:1]:
            for batch in batches(shard.shard, ["text"], RUN_BYTES):
                check_ids(fast, plan, batch["text"], "one of the first documents")
                break
    except UsageError as problem:
        if wanted == "gigatoken":
            raise
        log.info("encoded by tokenizers: %s", problem.what)
        return "tokenizers"
    return "gigatoken"


def check_ids(encoder: Encoder, plan: Plan, texts: pa.StringArray, what: str) -> None:
    """UsageError that names the first of `texts` of which `tokenizers` gives other ids."""
    reference = _reference(plan)(texts)
    encoded = encoder(texts)
    if np.array_equal(encoded.starts, reference.starts) and np.array_equal(
        encoded.ids, reference.ids
    ):
        return
    for row in range(len(texts)):
        theirs, ours = (
            one.ids[one.starts[row] : one.starts[row + 1]].tolist() for one in (encoded, reference)
        )
        if theirs != ours:
            text = texts[row].as_py()
            excerpt = text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"
            pairs = enumerate(zip_longest(theirs, ours, fillvalue="missing"))
            place, (their_id, our_id) = next((n, pair) for n, pair in pairs if pair[0] != pair[1])
            raise UsageError(
                f"gigatoken gives other ids than tokenizers for {what}, {excerpt!r}: token {place} "
                f"is {their_id}, not {our_id}",
                where="execution.encoder",
                hint="set encoder: tokenizers",
            )
