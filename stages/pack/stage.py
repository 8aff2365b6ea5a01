"""The pack stages: documents or conversations to token shards that training reads as they lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from artifacts_schema.config import MapExecution
from artifacts_schema.errors import InputError, UsageError
from stages.engine import (
    Context,
    Inputs,
    Many,
    Maybe,
    One,
    ShardResult,
    Stage,
    check_bad_share,
    source_names,
)
from stages.pack.config import PackChatConfig, PackConfig, PackExecution, PackPreferencesConfig

if TYPE_CHECKING:
    from stages.pack.conversations import Writing
    from stages.pack.plan import Plan

OUTPUTS = {"train": "token_shards", "held_out": "token_shards", "excluded": "excluded"}


class Pack(Stage):
    """Encode documents and lay them into sequences of one length, by source.

    A document is the tokenizer's begin token (if it has one), its tokens, and the end token. Each
    lies in `train` or in `held_out`, by its duplicate class. Documents of a source are packed
    together whatever shard they come from, many at a time, which fills the sequences; one such
    group is one token shard with an index that names the document of every piece, and its sequences
    are shuffled. Segments of documents that say the same over and over are left out; a table names
    all that is left out.
    """

    name, version, reproducible = "pack", 4, "bytes"
    inputs = {"documents": Many("documents", at_least=1), "tokenizer": One("tokenizer")}
    outputs = OUTPUTS
    worker_modules = ("stages.pack.shard",)
    libraries = ("tokenizers", "pyarrow", "numpy")
    handles_documents = True
    Config, Execution = PackConfig, PackExecution

    @classmethod
    def sources(cls, config: Any, inputs: Inputs) -> frozenset[str] | None:
        """Those of its documents."""
        return source_names(inputs["documents"])

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> Sequence[str]:
        """A note where fill in the middle can turn no document."""
        sources, fim = source_names(inputs["documents"]), config.fim
        if fim is None or fim.languages or sources is None:
            return ()
        if any(fnmatchcase(name, pattern) for name in sources for pattern in fim.sources):
            return ()
        wanted, known = ", ".join(fim.sources), ", ".join(sorted(sources))
        return (f"fim.sources ({wanted}) match no source (known here: {known})",)

    def run(self, context: Context) -> None:
        """Encode each documents shard, pack groups of them, then write what describes all."""
        from dataclasses import replace

        from stages.pack.documents import encode_shard
        from stages.pack.encoder import choose_encoder, document_shards
        from stages.pack.plan import Plan

        documents, tokenizer = context.many("documents"), context.one("tokenizer")
        plan = Plan.from_tokenizer(context.config, tokenizer)
        shards = document_shards(documents)
        encoder = choose_encoder(context.execution.encoder, plan, shards, context.log)
        encoded = context.map(encode_shard, shards, plan=replace(plan, encoder=encoder))
        packed = _pack_groups(context, plan, encoded)
        if plan.fim:
            turned = sum(result.value["fim"] for result in encoded)
            context.count(fim_documents=turned)
            if not turned:
                context.log.warning("no document was turned to fill in the middle")
        context.telemetry(encoder=encoder)
        context.conserve(
            records_in=sum(one.rows for one in documents),
            out=sum(result.value["documents"] for result in packed),
            dropped={
                "empty": sum(result.value["empty"] for result in encoded),
                "between_splits": sum(result.value["torn"] for result in encoded),
                "repetitive": sum(result.value["dropped_documents"] for result in packed),
            },
        )


class PackChat(Stage):
    """Write conversations in a chat format and lay them whole into sequences, by source.

    Beside the tokens lie marks: where each conversation begins, which tokens are learnt, who
    speaks. So training reads them like text, on the same sample clock, and may mix the two; and
    attention stays within a conversation. The format is the tokenizer's own chat template, or
    ChatML. Each conversation lies in `train` or in `held_out`, by a hash of its id; a table names
    those that are left out.
    """

    name, version, reproducible = "pack_chat", 3, "bytes"
    inputs = {
        "conversations": Many("conversations", at_least=1),
        "tokenizer": One("tokenizer"),
        "chat_template": Maybe("snapshot"),
    }
    outputs = OUTPUTS
    worker_modules = ("stages.pack.conversations", "stages.pack.shard")
    libraries = ("tokenizers", "transformers", "jinja2", "pyarrow", "numpy")
    Config, Execution = PackChatConfig, MapExecution

    def run(self, context: Context) -> None:
        """Encode each shard of conversations, pack groups of them, write what describes all."""
        from stages.pack.conversations import REASONS, Writing, encode_conversations
        from stages.pack.encoder import document_shards

        config = context.config
        plan = _chat_plan(context)
        template = _chat_template(context)
        writing = Writing(
            template,
            context.one("tokenizer").read_json("tokenizer_config.json"),
            config.date,
            config.learn,
            config.learn_pattern,
        )
        _check_writing(context, plan, writing)
        encoded = context.map(
            encode_conversations,
            document_shards(context.many("conversations")),
            plan=plan,
            writing=writing,
            too_long=config.too_long,
        )
        hint = "look at `learn_pattern`, and at the weights of messages"
        account = _account_for_rows(context, encoded, "conversations", REASONS, hint)
        _pack_groups(context, plan, encoded, marks=True, chat_template=template)
        by_turn = sum(result.value["by_turn"] for result in encoded)
        _report_rows(context, account, rows_by_turn=by_turn)


class PackPreferences(Stage):
    """Write preference pairs in a chat format and lay each whole into one sequence, by source.

    A pair is the chosen answer after its prompt, then the rejected one after the same prompt, as
    two conversations side by side: attention stays within each, and marks say which tokens are
    learnt. So training reads pairs on the sample clock, with mixtures, and `trace` leads to the
    pair. What is left out and why is what `preference` leaves out; each pair lies in `train` or in
    `held_out`, by a hash of its id.
    """

    name, version, reproducible = "pack_preferences", 1, "bytes"
    inputs = {
        "preferences": Many("preferences", at_least=1),
        "tokenizer": One("tokenizer"),
        "chat_template": Maybe("snapshot"),
    }
    outputs = OUTPUTS
    worker_modules = ("stages.pack.preferences", "stages.pack.shard")
    libraries = PackChat.libraries
    Config, Execution = PackPreferencesConfig, MapExecution

    def run(self, context: Context) -> None:
        """Encode each shard of pairs, pack groups of them, write what describes all."""
        from stages.pack.conversations import Writing
        from stages.pack.encoder import document_shards
        from stages.pack.preferences import encode_preferences
        from stages.pairs.encoding import DROPPED

        config = context.config
        plan = _chat_plan(context)
        template = _chat_template(context)
        described = context.one("tokenizer").read_json("tokenizer_config.json")
        writing = Writing(template, described, config.date, "assistant", None)
        _check_writing(context, plan, writing)
        encoded = context.map(
            encode_preferences,
            document_shards(context.many("preferences")),
            plan=plan,
            writing=writing,
            too_long=config.too_long,
        )
        account = _account_for_rows(
            context, encoded, "preferences", DROPPED, "look at the answers of the pairs"
        )
        _pack_groups(context, plan, encoded, marks=True, pairs=True, chat_template=template)
        _report_rows(context, account)


def _chat_plan(context: Context) -> Plan:
    """The plan of a stage that lays conversations whole into sequences."""
    from stages.pack.config import PackConfig
    from stages.pack.plan import Plan

    config = context.config
    settings = PackConfig(
        sequence_length=config.sequence_length,
        held_out_share=config.held_out_share,
        seed=config.seed,
        repetition=None,
    )
    return Plan.from_tokenizer(settings, context.one("tokenizer"))


def _check_writing(context: Context, plan: Plan, writing: Writing) -> None:
    """See `check_format`."""
    from stages.training.chat_format import check_format

    if not check_format(writing.format(plan)):
        context.log.info(
            "the template writes earlier turns otherwise later: one row for each answer"
        )


@dataclass(frozen=True)
class _RowAccount:
    """What became of conversations or pairs."""

    total: int
    kept: int
    learnt: int
    reasons: Counter[str]
    unused: Counter[str]
    dropped: Mapping[str, int]


def _account_for_rows(
    context: Context, encoded: Sequence[ShardResult], role: str, dropped: Sequence[str], hint: str
) -> _RowAccount:
    """InputError where too many are left out, or nothing is learnt of those that stay."""
    reasons, unused, lost = (_summed(encoded, name) for name in ("reasons", "unused", "lost"))
    for result in encoded:
        for reason, names in result.value["samples"].items():
            for name in names:
                context.sample(reason, name)
    total, kept, learnt = (
        sum(result.value[name] for result in encoded) for name in ("read", "packed", "learnt")
    )
    samples = [f"{why}: {name}" for why in lost for name in context.samples.get(why, ())]
    check_bad_share(lost.total(), total, context.config.max_bad_share, samples, where=role)
    if not learnt:
        raise InputError("no token would be learnt", where=role, hint=hint)
    counts = {reason: lost[reason] for reason in dropped if lost[reason]}
    return _RowAccount(total, kept, learnt, reasons, unused, counts)


def _report_rows(context: Context, account: _RowAccount, **more: int) -> None:
    """Counts of the manifest; warnings about fields that the format does not hold."""
    context.count(learnt_tokens=account.learnt, **more, **account.reasons, **account.unused)
    for field, count in sorted(account.unused.items()):
        what = field.removesuffix("_unused").replace("_", " ")
        context.log.warning("%s, which the chat format does not hold: %d", what, count)
    context.conserve(records_in=account.total, out=account.kept, dropped=account.dropped)


def _chat_template(context: Context) -> str:
    """What writes the conversations; InputError where an input is no template."""
    from stages.engine.sources import source_files
    from stages.tokens.chat import CHAT_TEMPLATE
    from stages.tokens.chat_template import (
        JINJA_FILE,
        JINJA_LIMIT,
        KEY,
        default_template,
        read_published_template,
    )

    snapshots = context.many("chat_template")
    if context.config.template == "chatml":
        if snapshots:
            raise UsageError("is chatml, but there is an input chat_template", where="template")
        return CHAT_TEMPLATE
    if snapshots:
        files = [file for file in source_files(snapshots[0]) if file.name.endswith(".jinja")]
        if len(files) != 1:
            raise InputError(
                f"has {len(files)} files *.jinja", where="chat_template", hint="give it one"
            )
        with files[0].open() as stream:
            content = stream.read(JINJA_LIMIT + 1)
        template = read_published_template({}, {JINJA_FILE: content}, where=files[0].name)
    else:
        config = context.one("tokenizer").read_json("tokenizer_config.json")
        template = config.get(KEY)
    return CHAT_TEMPLATE if template is None else default_template(template)


def _summed(results: Sequence[ShardResult], name: str) -> Counter[str]:
    """The counts that every shard has under a name."""
    sums = Counter[str]()
    for result in results:
        sums.update(result.value[name])
    return sums


def _pack_groups(
    context: Context, plan: Plan, encoded: Sequence[ShardResult], **more: Any
) -> list[ShardResult]:
    """Pack what was encoded, and write both splits; `more` goes into their shards.json."""
    from stages.pack.shard import make_groups, pack_group, shards_table, totals, train_counts
    from stages.tokens.vocabulary import count_token_bytes

    token_bytes = count_token_bytes(plan.tokenizer())
    packed = context.map(
        pack_group,
        make_groups(encoded, plan.sequence_length),
        plan=plan,
        token_bytes=token_bytes,
    )
    counts = train_counts(packed, plan.vocabulary_size).astype("<i8").tobytes()
    for split in ("train", "held_out"):
        table = shards_table(plan, context.one("tokenizer").digest, split, packed)
        if not table["sources"]:
            context.log.warning("nothing fell into '%s'", split)
        context.write_json(split, "shards.json", {**table, **more})
        context.write_bytes(split, "token_bytes.bin", token_bytes.astype("<u2").tobytes())
        context.write_bytes(split, "train_counts.bin", counts)
        context.count(**totals(split, packed))
    return packed
