"""The extend_vocabulary stage: a checkpoint to one with a larger vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from artifacts_schema.config import MapExecution
from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.identity import short
from stages.engine import Context, Inputs, Many, One, Shard, Stage
from stages.extend_vocabulary.config import ExtendConfig

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor

    from stages.engine import ShardResult
    from stages.extend_vocabulary.continued_bpe import Extension
    from stages.model.config import ModelConfig


MATRICES = ("embedding.weight", "head.weight")
"""Weights of the decoder with a row for each token; `head` only where it is not tied."""


@dataclass(frozen=True)
class TextShard:
    """A shard of documents; `id` sorts in the order of the inputs and their shards."""

    id: str
    shard: Shard


class ExtendVocabulary(Stage):
    """Give a checkpoint more tokens, learnt from documents or listed, to train it on with them.

    A byte-level BPE is continued: new merges after the old ones, new ids after the old ones. A text
    is cut as before but where a new token applies. The rows of a new token, in the embedding and
    in the output layer, are the mean of its old pieces' rows. The checkpoint goes to `pretrain`,
    and the tokenizer, which it carries too, to `pack`.
    """

    name, version, reproducible = "extend_vocabulary", 1, "bytes"
    inputs = {"checkpoint": One("checkpoint"), "documents": Many("documents")}
    outputs = {"checkpoint": "checkpoint", "tokenizer": "tokenizer"}
    libraries = ("numpy", "pyarrow", "safetensors", "tokenizers", "torch")
    worker_modules = ("stages.extend_vocabulary.sampling",)
    handles_documents = True
    Config, Execution = ExtendConfig, MapExecution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """Nothing to learn from, or documents that nothing is learnt from."""
        has_documents = bool(inputs.get("documents"))
        if not has_documents and not config.tokens:
            raise UsageError(
                "there are neither documents nor tokens", where="documents", hint="add one of them"
            )
        if has_documents and not config.new_tokens:
            raise UsageError(
                "is 0, so documents would not be read", where="new_tokens", hint="leave them out"
            )

    def run(self, context: Context) -> None:
        """Count words, learn merges, measure both tokenizers, write rows for the new tokens."""
        from stages.extend_vocabulary.continued_bpe import add_text, build, learn, start_extension
        from stages.extend_vocabulary.sampling import count_shard, measure_shard, sum_words
        from stages.tokens.vocabulary import pad_vocabulary

        config: ExtendConfig = context.config
        description, tokenizer, shape = _read_base(context)
        extension = start_extension(tokenizer)
        for place, text in enumerate(config.tokens):
            add_text(extension, tokenizer, text, f"tokens.{place}")
        from_list = len(extension.pieces)
        shards = [
            TextShard(f"{number:02d}-{shard.id}", shard)
            for number, documents in enumerate(context.many("documents"))
            for shard in documents.shards()
        ]
        shares: dict[str, Any] = {
            "sample_share": config.sample_share,
            "held_share": config.held_share,
        }
        counted = context.map(count_shard, shards, tokenizer=description, **shares)
        wanted = config.new_tokens if shards else 0
        learnt = learn(
            extension,
            tokenizer,
            sum_words(counted),
            wanted,
            config.min_frequency,
            context.check_stop,
        )
        if not extension.pieces:
            raise InputError("no two tokens come together often enough", where="documents")
        if learnt < wanted:
            context.log.warning("the text has pairs for only %d tokens", learnt)
        larger = build(description, extension, config.tokens)
        measured = context.map(measure_shard, shards, tokenizers=[description, larger], **shares)

        size = extension.first + len(extension.pieces)
        rows = max(shape.vocabulary_size, pad_vocabulary(size, config.pad_to_multiple_of))
        record = {
            "base": context.one("checkpoint").key,
            "listed": list(config.tokens),
            "tokens_between": from_list - len(config.tokens),
            "learnt": learnt,
            "merges": len(extension.merges),
            "vocabulary_size": [extension.first, size],
            "rows": [shape.vocabulary_size, rows],
            "documents": sum(one.value["documents"] for one in counted),
            "bytes": sum(one.value["bytes"] for one in counted),
        }
        _write_weights(context, extension, rows)
        _write_files(context, larger, shape, record)
        _write_training(context, larger, extension, record, measured)
        context.count(new_tokens=len(extension.pieces), vocabulary_size=size, rows=rows)
        _conserve(context, shards, record["documents"], measured)


def extend_rows(
    weight_RD: Tensor, pieces: Sequence[tuple[int, ...]], vocabulary_size: int, rows: int
) -> Tensor:
    """The weight with `rows` rows, in its own type; those of the old vocabulary are unchanged.

    The row of a new token is the mean of its pieces' (Gee et al. 2022, "Fast Vocabulary Transfer
    for Language Model Compression", arXiv 2402.09977). Rows beyond the new vocabulary, which no
    text reaches, keep what they held; those that had none are the mean of the old vocabulary's.

    Shapes: R rows, D width.
    """
    import torch

    old = weight_RD.shape[0]
    # NumPy adds rows in one order, whatever the number of threads.
    known_RD = weight_RD[:vocabulary_size].float().numpy()
    result_RD = torch.empty((rows, weight_RD.shape[1]), dtype=weight_RD.dtype)
    result_RD[:old] = weight_RD
    result_RD[old:] = torch.from_numpy(known_RD.mean(0, dtype="float64")).to(weight_RD.dtype)
    for number, parts in enumerate(pieces):
        mean_D = known_RD[list(parts)].mean(0, dtype="float64")
        result_RD[vocabulary_size + number] = torch.from_numpy(mean_D).to(weight_RD.dtype)
    return result_RD


def _read_base(context: Context) -> tuple[str, Tokenizer, ModelConfig]:
    """The checkpoint's tokenizer.json, its tokenizer and its architecture, checked."""
    from stages.extend_vocabulary.continued_bpe import read_extensible
    from stages.model.files import TOKENIZER_FILE, read_config
    from stages.tokens.chat_template import TOKENIZER_CONFIG
    from stages.tokens.vocabulary import SpecialTokens

    base = context.one("checkpoint")
    where = f"checkpoint {short(base.key)}"
    if not base.has(TOKENIZER_FILE):
        raise InputError(
            "carries no tokenizer", where=where, hint="give import_model the tokenizer of the model"
        )
    description = base.read_bytes(TOKENIZER_FILE).decode("utf-8")
    tokenizer = read_extensible(description, f"{where}/{TOKENIZER_FILE}")
    SpecialTokens.from_config(tokenizer, base.read_json(TOKENIZER_CONFIG))
    shape = read_config(base)
    if tokenizer.get_vocab_size() > shape.vocabulary_size:
        raise InputError(
            f"the tokenizer has {tokenizer.get_vocab_size():,} tokens, the model "
            f"{shape.vocabulary_size:,} rows",
            where=where,
        )
    return description, tokenizer, shape


def _write_weights(context: Context, extension: Extension, rows: int) -> None:
    """All weights, one at a time; those with a row for each token get the new rows."""
    from stages.model.files import WEIGHTS_FILE
    from stages.model.tensor_files import TensorSpec, open_tensors, specs_of, write_tensors

    with open_tensors(context.one("checkpoint"), WEIGHTS_FILE) as weights:
        specs = {
            name: TensorSpec(spec.dtype, (rows, *spec.shape[1:])) if name in MATRICES else spec
            for name, spec in specs_of(weights).items()
        }

        def tensor(name: str) -> Tensor:
            context.check_stop()
            weight = weights[name]
            if name not in MATRICES:
                return weight
            return extend_rows(weight, extension.pieces, extension.first, rows)

        write_tensors(partial(context.open, "checkpoint"), WEIGHTS_FILE, specs, tensor)


def _write_files(
    context: Context, larger: str, shape: ModelConfig, record: Mapping[str, Any]
) -> None:
    """Architecture and state of the checkpoint, and the files of the tokenizer in both outputs."""
    from stages.model.files import CONFIG_FILE, TOKENIZER_FILE
    from stages.tokens.chat_template import STATE, TOKENIZER_CONFIG, read_template_record

    base = context.one("checkpoint")
    _, rows = record["rows"]
    config = shape.model_copy(update={"vocabulary_size": rows})
    context.write_json("checkpoint", CONFIG_FILE, config.plain())
    for output in ("checkpoint", "tokenizer"):
        context.write_bytes(output, TOKENIZER_FILE, larger.encode("utf-8"))
        context.write_bytes(output, TOKENIZER_CONFIG, base.read_bytes(TOKENIZER_CONFIG))
    state = {
        "stage": context.attempt.stage,
        "training_step": 0,
        "tokens": 0,
        "chat_template": read_template_record(base),
        "extended": record,
    }
    context.write_json("checkpoint", STATE, state)


def _write_training(
    context: Context,
    larger: str,
    extension: Extension,
    record: Mapping[str, Any],
    measured: Sequence[ShardResult],
) -> None:
    """What the tokenizer is, which pieces each new token has, and fertility before and after."""
    from tokenizers import Tokenizer

    from stages.extend_vocabulary.sampling import sum_fertility
    from stages.tokens.chat_template import TOKENIZER_CONFIG
    from stages.tokens.pre_tokenizers import llama_cpp_name
    from stages.tokens.vocabulary import describe_tokenizer

    tokenizer = Tokenizer.from_str(larger)
    described = {
        **context.one("checkpoint").read_json(TOKENIZER_CONFIG),
        "pre_tokenizer": llama_cpp_name(tokenizer),
    }
    before, after = (sum_fertility(measured, number) for number in (0, 1))
    training = {
        **describe_tokenizer(tokenizer, described, algorithm="bpe", multiple=1),
        "padded_vocabulary_size": record["rows"][1],
        "extended": {**record, "pieces": [list(one) for one in extension.pieces]},
        "held_before": {source: one.plain() for source, one in before.items()},
        "held": {source: one.plain() for source, one in after.items()},
    }
    context.write_json("tokenizer", "training.json", training)


def _conserve(
    context: Context, shards: Sequence[TextShard], learnt: int, measured: Sequence[ShardResult]
) -> None:
    from stages.extend_vocabulary.sampling import sum_fertility

    used = learnt + sum(one.documents for one in sum_fertility(measured, 0).values())
    total = sum(one.shard.rows for one in shards)
    context.conserve(records_in=total, out=used, dropped={"not_drawn": total - used})
