"""A tokenizer as llama.cpp reads it: tokens with their types, merges, and the ids with a role.

llama.cpp cuts text by a regex that it knows by name (`tokenizer.ggml.pre`), then merges. The name
is written from the tokenizer's own structure, so that no table of known models is asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError
from stages.tokens.chat_template import KEY
from stages.tokens.pre_tokenizers import NAMES, llama_cpp_name
from stages.tokens.vocabulary import SpecialTokens

if TYPE_CHECKING:
    from gguf import GGUFWriter
    from tokenizers import Tokenizer

NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5
"""`llama_token_type` of llama.cpp."""


@dataclass(frozen=True)
class Vocabulary:
    """What a GGUF file says of a tokenizer."""

    pre_tokenizer: str
    tokens: tuple[str, ...]
    types: tuple[int, ...]
    merges: tuple[str, ...]
    special: SpecialTokens
    adds_begin: bool
    adds_end: bool
    template: Any

    @classmethod
    def read(
        cls, tokenizer: Tokenizer, config: Mapping[str, Any], rows: int, *, where: str
    ) -> Vocabulary:
        """Of a tokenizer and its tokenizer_config.json, for a model with `rows` embeddings.

        InputError names what llama.cpp does not express. Rows without a token are filled with
        tokens that are not used, because a file has a token for each row.
        """
        content = json.loads(tokenizer.to_str())
        name = llama_cpp_name(tokenizer)
        if name is None:
            raise refusal(_difference(content), where=where)
        if tokenizer.get_vocab_size() > rows:
            raise InputError(
                f"the tokenizer has {tokenizer.get_vocab_size()} tokens, the model {rows}",
                where=where,
            )
        texts = {index: text for text, index in content["model"]["vocab"].items()}
        types = dict.fromkeys(texts, NORMAL)
        for added in content["added_tokens"]:
            strips = [side for side in ("lstrip", "rstrip", "single_word") if added.get(side)]
            if strips:
                text = f"the added token {added['content']!r} has {strips[0]}"
                raise refusal(text, where=where)
            texts[added["id"]] = added["content"]
            types[added["id"]] = CONTROL if added["special"] else USER_DEFINED
        beyond = [index for index in texts if index >= rows]
        if beyond:
            raise InputError(
                f"token {texts[beyond[0]]!r} has id {beyond[0]}, the model has {rows} rows",
                where=where,
            )
        used = set(texts.values())
        for row in range(rows):
            if row not in texts:
                texts[row], types[row] = _free_name(row, used), UNUSED
        bare, full = (tokenizer.encode("a", add_special_tokens=flag).ids for flag in (False, True))
        special = SpecialTokens.from_config(tokenizer, config)
        return cls(
            name,
            tuple(texts[row] for row in range(rows)),
            tuple(types[row] for row in range(rows)),
            tuple(_merge(one) for one in content["model"]["merges"]),
            special,
            len(full) > len(bare) and full[0] == special.begin,
            len(full) > len(bare) and full[-1] == special.end,
            config.get(KEY),
        )

    @property
    def unused(self) -> int:
        """Rows of the model that no token has."""
        return self.types.count(UNUSED)

    def add_to(self, writer: GGUFWriter) -> None:
        """Write it."""
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(self.pre_tokenizer)
        writer.add_token_list(list(self.tokens))
        writer.add_token_types(list(self.types))
        writer.add_token_merges(list(self.merges))
        special = self.special
        if special.begin is not None:
            writer.add_bos_token_id(special.begin)
        writer.add_eos_token_id(special.end)
        writer.add_pad_token_id(special.padding)
        if special.turn_end is not None:
            writer.add_eot_token_id(special.turn_end)
        middle = {"pre": special.fim_prefix, "mid": special.fim_middle, "suf": special.fim_suffix}
        for part, token in middle.items():
            if token is not None:
                writer.add_uint32(f"tokenizer.ggml.fim_{part}_token_id", token)
        writer.add_add_bos_token(self.adds_begin)
        writer.add_add_eos_token(self.adds_end)
        if self.template is not None:
            writer.add_chat_template(self.template)


def refusal(what: str, *, where: str) -> InputError:
    """The error about a vocabulary that llama.cpp does not express."""
    return InputError(
        f"llama.cpp cannot express this vocabulary: {what}",
        where=where,
        hint=f"it cuts a byte-level BPE by one of {', '.join(NAMES)}; `export` writes any",
    )


def _difference(content: Mapping[str, Any]) -> str:
    """Why a tokenizer.json has no name in llama.cpp, by its first part that differs."""
    model, normalizer = content["model"], content["normalizer"]
    if model["type"] != "BPE":
        return f"its model is {model['type']}, not a byte-level BPE"
    for field in ("byte_fallback", "continuing_subword_prefix", "end_of_word_suffix", "dropout"):
        if model.get(field):
            return f"its BPE has {field}"
    if normalizer is not None and normalizer.get("type") != "NFC":
        return f"it has a normalizer, {normalizer.get('type')}"
    cut = content["pre_tokenizer"]
    return f"its pre-tokenizer ({'none' if cut is None else cut.get('type')}) is none of the four"


def _merge(merge: Any) -> str:
    """`a b`; a byte-level alphabet has no space."""
    return merge if isinstance(merge, str) else " ".join(merge)


def _free_name(row: int, used: set[str]) -> str:
    name = f"[PAD{row}]"
    while name in used:
        name = f"[{name}]"
    used.add(name)
    return name
