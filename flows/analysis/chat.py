"""A checkpoint or a release to write with: continued texts, and conversations of several turns.

Both are loaded as the decoder that was trained: a release through the names of its published
weights, so what answers is what was released.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from stages.engine.inputs import Input

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from stages.model.config import ModelConfig
    from stages.model.decoder import Decoder
    from stages.scoring.continuous import ContinuousBatch
    from stages.scoring.generation import Sampling, Written
    from stages.tokens.chat_template import Template

KINDS = ("checkpoint", "release")
SCORER = "reward_model"
"""Of outputs that hold a model with its tokenizer."""
Message = Mapping[str, str]
"""`role` (system, user, assistant) and `content`."""


class LanguageModel:
    """A model with its tokenizer and, where it was tuned on conversations, its chat template."""

    def __init__(self, model: Decoder, files: Input, template: Template | None) -> None:
        """`files` holds tokenizer.json and tokenizer_config.json; InputError where one is wrong."""
        from stages.model.files import read_tokenizer
        from stages.scoring.generation import Generator
        from stages.tokens.vocabulary import SpecialTokens

        self.template = template
        self.tokenizer: Tokenizer = read_tokenizer(files)
        self.described: dict[str, Any] = files.read_json("tokenizer_config.json")
        self.special = SpecialTokens.from_config(self.tokenizer, self.described)
        self.context = model.config.context
        self._generator = Generator(model, self.tokenizer)

    def encode_text(self, text: str) -> list[int]:
        """Ids of the beginning of a document, as training shows it."""
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids
        return [self.special.context, *ids]

    def encode_plain(self, text: str) -> list[int]:
        """The same of a text by somebody else: what spells a special token stays a text."""
        from stages.scoring.likelihood import encode_texts

        return [self.special.context, *encode_texts(self.tokenizer, [text])[0]]

    def encode_chat(
        self, messages: Sequence[Mapping[str, Any]], tools: str | None = None
    ) -> list[int]:
        """Ids after which the model answers `messages`; `tools` is JSON text of what it may call.

        UsageError without a chat template.
        """
        from stages.tokens.chat_template import encode_prompt

        if self.template is None:
            raise UsageError(
                "the model was never tuned on conversations: it has no chat template",
                hint="`ingot complete` continues a text",
            )
        return encode_prompt(self.tokenizer, self.template, messages, self.described, tools)[1]

    def spelled_token(self, messages: Sequence[Mapping[str, Any]]) -> str | None:
        """A special token that a message spells and that the template would make one of; or None.

        ChatML is written in parts, and so makes none.
        """
        from stages.tokens.chat import CHAT_TEMPLATE

        if self.template == CHAT_TEMPLATE:
            return None
        added = self.tokenizer.get_added_tokens_decoder().values()
        texts = [str(one["content"]) for one in messages]
        special = [token.content for token in added if token.special]
        return next((one for one in special if any(one in text for text in texts)), None)

    def write(self, ids: Sequence[int], sampling: Sampling, max_new_tokens: int) -> Iterator[str]:
        """The text that follows `ids`, in pieces of whole characters, as soon as there are some.

        It ends with the token that ends a document or a turn, or after `max_new_tokens`.
        """
        from tokenizers.decoders import DecodeStream

        stream = DecodeStream(ids=list(ids), skip_special_tokens=True)
        for token in self._generator.stream(
            ids, sampling, max_new_tokens=max_new_tokens, stop_ids=self.special.ends
        ):
            if piece := stream.step(self.tokenizer, token):
                yield piece

    def open_batch(self, places: int) -> ContinuousBatch:
        """A batch of texts that end as those of `write`, for the thread that writes them."""
        from stages.scoring.continuous import ContinuousBatch

        return ContinuousBatch(self._generator, places=places, stop_ids=self.special.ends)

    def write_many(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        max_new_tokens: int,
        *,
        samples: int,
        first_number: int = 0,
    ) -> list[Written]:
        """`samples` answers to each prompt, written side by side; see `Generator.write`."""
        if not prompts:
            return []
        return self._generator.write(
            prompts,
            sampling,
            max_new_tokens=max_new_tokens,
            stop_ids=self.special.ends,
            samples=samples,
            first_number=first_number,
        )


@dataclass
class Conversation:
    """Turns with a model. The oldest are left out where the context cannot hold them all."""

    model: LanguageModel
    sampling: Sampling
    max_new_tokens: int
    messages: list[Message] = field(default_factory=list)
    skipped: int = 0
    """Messages that the model no longer saw when it answered last."""

    def ask(self, text: str) -> Iterator[str]:
        """The answer to `text`, in pieces. What was written counts as said, also if it is cut."""
        self.messages.append({"role": "user", "content": text})
        ids, self.skipped = self._fitting()
        pieces: list[str] = []
        try:
            for piece in self.model.write(ids, self.sampling, self.max_new_tokens):
                pieces.append(piece)
                yield piece
        finally:
            self.messages.append({"role": "assistant", "content": "".join(pieces)})

    def _fitting(self) -> tuple[list[int], int]:
        """Ids of the turns that fit with room for an answer, and how many messages do not.

        The system message and the last question always stay.
        """
        system = [one for one in self.messages[:1] if one["role"] == "system"]
        dialogue = self.messages[len(system) :]
        room = self.model.context - min(self.max_new_tokens, self.model.context // 2)
        first = 0
        while True:
            ids = self.model.encode_chat([*system, *dialogue[first:]])
            following = [
                n for n in range(first + 1, len(dialogue)) if dialogue[n]["role"] == "user"
            ]
            if len(ids) <= room or not following:
                return ids, first
            first = following[0]


def find_model(store: Store, ref: str) -> tuple[Manifest, str]:
    """The artifact that `REF[:output]` names, and its output that holds a model.

    UsageError if it has none; the error lists refs of this store that have one.
    """
    manifest, output = store.resolve(ref)
    known = [name for name, one in manifest.outputs.items() if one.kind in KINDS]
    if output in known:
        return manifest, output
    if output is None and len(known) == 1:
        return manifest, known[0]
    refs = [
        name
        for name, one in sorted(store.refs().items())
        if (there := store.manifest(one.stage, one.key)) is not None
        and any(output.kind in KINDS for output in there.outputs.values())
    ]
    what = f"{ref}: {manifest.stage} {short(manifest.key)}"
    if known:
        raise UsageError(f"{what} has several models: {', '.join(known)}", hint="REF:OUTPUT")
    names = ", ".join(refs[:8]) or "none yet"
    scores = any(one.kind == SCORER for one in manifest.outputs.values())
    problem = "is a reward model, which writes no text" if scores else "has no model"
    raise UsageError(f"{what} {problem}", hint=f"models of this store: {names}")


def read_shape(store: Store, manifest: Manifest, output: str) -> ModelConfig:
    """The architecture of a checkpoint or a release; no weight is read."""
    from stages.model.files import read_config
    from stages.model.huggingface.families import from_config

    files = Input.from_manifest(store, manifest, output)
    if files.kind == "checkpoint":
        return read_config(files)
    return from_config(files.read_json("config.json"), where="config.json")


def load_model(store: Store, manifest: Manifest, output: str, device: str) -> LanguageModel:
    """Load a checkpoint or release in float32 on `device`.

    InputError for one without a tokenizer (a model that was imported without), CorruptArtifact for
    files that do not fit each other.
    """
    from stages.model.files import TOKENIZER_FILE, read_model
    from stages.tokens.chat_template import read_template

    files = Input.from_manifest(store, manifest, output)
    where = f"{files.kind} {short(files.key)}"
    if not files.has(TOKENIZER_FILE):
        raise InputError(
            "has no tokenizer, so nobody can write to it", where=where,
            hint="import the model with one (import_model's role `tokenizer`)",
        )  # fmt: skip
    model = read_model(files) if files.kind == "checkpoint" else _read_release(files, where)
    return LanguageModel(model.to(device), files, read_template(files))


def complete_by_vllm(
    store: Store, manifest: Manifest, output: str, prompt: str, sampling: Sampling, most: int
) -> str:
    """What vLLM writes after `prompt`, as the beginning of a document, with a release.

    UsageError for a checkpoint, and where vLLM is not installed.
    """
    from stages.model.files import read_tokenizer
    from stages.model.huggingface.families import from_config
    from stages.scoring.vllm_writing import VllmWriting
    from stages.tokens.vocabulary import SpecialTokens

    files = Input.from_manifest(store, manifest, output)
    if files.kind != "release":
        raise UsageError(
            f"vLLM reads releases, and {files.kind} {short(files.key)} is none",
            hint="export it, or write without vLLM",
        )
    folder = {path: files.local_path(path) for path in files.paths()}["config.json"].parent
    tokenizer = read_tokenizer(files)
    special = SpecialTokens.from_config(tokenizer, files.read_json("tokenizer_config.json"))
    ids = tokenizer.encode(prompt, add_special_tokens=False).ids
    config = from_config(files.read_json("config.json"), where="config.json")
    (written,) = VllmWriting(folder, context=config.context).write(
        [[special.context, *ids]],
        sampling,
        max_new_tokens=most,
        stop_ids=special.ends,
    )
    return written.text


def _read_release(files: Input, where: str) -> Decoder:
    from stages.model.files import WEIGHTS_FILE
    from stages.model.huggingface.families import from_weights
    from stages.model.tensor_files import open_tensors

    with open_tensors(files, WEIGHTS_FILE) as weights:
        return from_weights(files.read_json("config.json"), weights, where=where)
