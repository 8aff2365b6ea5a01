"""`ingot collect REF SNAPSHOT --into FOLDER`: people rank a model's answers; pairs come of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.identity import canonical_sha256, short
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.analysis.artifacts import open_store, refs_by_artifact
from flows.cli.options import combine, json_option, store_option
from flows.cli.output import Column, echo, print_json, print_table, size
from flows.cli.progress import print_line

if TYPE_CHECKING:
    from flows.analysis.chat import LanguageModel
    from flows.collecting.collection import Collection, Settings
    from flows.collecting.judgements import Judgements
    from flows.collecting.outcome import Agreement, Choice
    from stages.engine.inputs import Input

PORT = 8001
VERDICTS = ("ranked", "neither", "skipped")
LONGEST = 256
"""Tokens of an answer, where the context has twice as many."""

sampling_options = combine(
    click.option(
        "--answers", type=click.IntRange(2, 9), default=4, show_default=True, metavar="N",
        help="Answers sampled for each prompt.",
    ),
    click.option(
        "--prompts", type=click.IntRange(1), metavar="N",
        help="The first N prompts of the snapshot; by default all.",
    ),
    click.option(
        "--max-tokens", type=click.IntRange(1), metavar="N",
        help=f"Most tokens of an answer; by default {LONGEST}, or half the context if that is "
        "less.",
    ),
    click.option(
        "--temperature", type=click.FloatRange(0, 10), default=1.0, show_default=True,
        help="Lower ones make answers alike; equal answers are shown once.",
    ),
    click.option(
        "--top-p", type=click.FloatRange(0, 1), default=1.0, show_default=True,
        help="Draw from the likeliest tokens that have this probability together.",
    ),
    click.option(
        "--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True,
        help="Of the draws, of the order on the page, and of which prompts two people get.",
    ),
    click.option(
        "--twice", type=click.FloatRange(0, 1), default=0.1, show_default=True, metavar="SHARE",
        help="Share of prompts that two people rank, to measure their agreement.",
    ),
    click.option(
        "--device", metavar="NAME", help="cpu, cuda or cuda:N; by default a GPU if there is one."
    ),
)  # fmt: skip


@click.command("collect")
@click.argument("ref", required=False)
@click.argument("snapshot", required=False)
@click.option(
    "--into", "folder", required=True, metavar="FOLDER",
    help="Holds answers and judgements; its name is that of the snapshot of pairs.",
)  # fmt: skip
@sampling_options
@click.option("--only-sample", is_flag=True, help="Sample answers, and serve no page.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: a free one."
)
@click.option(
    "--key-file",
    metavar="FILE",
    help="Holds the key that people paste, for its owner alone; made where it is missing. By "
    "default `collect.key` in $INGOT_HOME.",
)
@click.option("--status", is_flag=True, help="Print what was judged so far, by whom.")
@click.option("--finish", is_flag=True, help="Write the pairs so far as snapshots/NAME.")
@click.option(
    "--pairs",
    type=click.Choice(["best", "all"]),
    default="best",
    show_default=True,
    help="With --finish, of each ranking: the best answer with the worst, or all pairs.",
)
@store_option
@json_option
def collect(
    ref: str | None,
    snapshot: str | None,
    folder: str,
    only_sample: bool,
    port: int,
    key_file: str | None,
    status: bool,
    finish: bool,
    pairs: Choice,
    store: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Sample answers of REF to the prompts of SNAPSHOT, and let people rank them on a page.

    \b
    ingot collect assistant/sft snapshots/questions --into helpful
    ingot collect --into helpful              # the page alone; no model is loaded
    ingot collect --into helpful --finish     # snapshots/helpful, for `preferences`

    REF is a checkpoint or release that was tuned on conversations. The same command continues
    where it was stopped. The page is on 127.0.0.1 alone; Ctrl-C ends it.
    """
    from flows.collecting.collection import Collection

    if sum((status, finish, only_sample)) > 1:
        raise UsageError("--only-sample, --status and --finish exclude each other")
    if (ref is None) != (snapshot is None):
        raise UsageError("name a model and a snapshot of prompts, or neither")
    if ref is None and only_sample:
        raise UsageError("name a model and a snapshot of prompts", where="--only-sample")
    if ref is not None and (status or finish):
        raise UsageError("REF and SNAPSHOT are for sampling", hint="leave them out")
    if as_json and not (status or finish):
        raise UsageError("--json goes with --status and --finish")
    path = Path(folder)
    if status:
        _print_status(Collection.open(path), as_json)
    elif finish:
        _finish(Collection.open(path), open_store(store), pairs, as_json)
    elif only_sample:
        _sample(open_store(store), ref, snapshot, path, **options)
    else:
        _serve(port, key_file, lambda: _prepare(store, ref, snapshot, path, **options))


def _prepare(
    store: str, ref: str | None, snapshot: str | None, path: Path, **options: Any
) -> Collection:
    """The collection to serve: with a model, once its prompts have answers."""
    from flows.collecting.collection import Collection

    if ref is None:
        return Collection.open(path)
    return _sample(open_store(store), ref, snapshot, path, **options)


def _sample(
    store: Store,
    ref: str | None,
    snapshot: str | None,
    folder: Path,
    *,
    device: str | None,
    **options: Any,
) -> Collection:
    """The collection, once all its prompts have answers."""
    from flows.analysis.chat import find_model, load_model
    from flows.cli.chat import choose_device
    from flows.collecting.collection import Collection
    from flows.collecting.prompts import read_prompts
    from flows.collecting.sampling import sample_answers

    assert ref is not None
    assert snapshot is not None
    _check_name(folder)
    manifest, output = find_model(store, ref)
    source = _find_snapshot(store, snapshot)
    prompts, reasons = read_prompts(source, options["prompts"])
    model = load_model(store, manifest, output, choose_device(device))
    settings = _settings(store, (manifest, output), model, source, **options)
    collection = Collection.begin(folder, settings)
    if reasons:
        print_line(f"rows without a prompt of their own: {_counts(reasons)}")
    sample_answers(collection, model, prompts, _print_progress)
    collection = Collection.open(folder)
    excluded = collection.excluded
    note = f"; left out: {_counts(excluded)}" if excluded else ""
    print_line(f"{len(collection.questions):,} prompts have answers to rank{note}")
    return collection


def _settings(
    store: Store,
    artifact: tuple[Manifest, str],
    model: LanguageModel,
    source: Input,
    *,
    max_tokens: int | None,
    **options: Any,
) -> Settings:
    from flows.collecting.collection import Settings
    from stages.engine.sources import snapshot_name

    manifest, output = artifact
    if model.template is None:
        raise UsageError(
            "the model was never tuned on conversations: it has no chat template",
            hint="tune it first: `sft`",
        )
    names = refs_by_artifact(store).get(manifest.name)
    return Settings(
        model=names[0] if names else f"{manifest.stage}-{short(manifest.key)}",
        checkpoint=f"{manifest.stage}/{manifest.key}:{output}",
        digest=manifest.output(output).digest,
        snapshot=snapshot_name(source),
        snapshot_digest=source.digest,
        max_tokens=max_tokens or min(LONGEST, model.context // 2),
        **options,
    )


def _find_snapshot(store: Store, ref: str) -> Input:
    from stages.engine.inputs import Input

    manifest, _ = store.resolve(ref)
    if manifest.stage != "snapshot":
        raise UsageError(
            f"'{ref}' is no snapshot but {manifest.stage}",
            hint="pin the files of prompts: ingot snapshot add NAME FILES",
        )
    return Input.from_manifest(store, manifest, "snapshot")


def _check_name(folder: Path) -> str:
    """The folder's name, which is that of the snapshot; UsageError where it cannot be one."""
    from flows.recipe.recipe import SNAPSHOT_NAME

    name = folder.resolve().name
    if not SNAPSHOT_NAME.fullmatch(name):
        raise UsageError(
            f"'{name}' cannot be the name of a snapshot",
            where="--into",
            hint="use letters, digits, . _ and -",
        )
    return name


def _print_progress(done: int, total: int) -> None:
    print_line(f"answers to {done:,} of {total:,} prompts")


def _serve(port: int, key_file: str | None, prepare: Callable[[], Collection]) -> None:
    """Serve the page once `prepare` is done; a port in use or a bad key ends it before that."""
    from flows.collecting.app import make_app
    from flows.collecting.collection import JUDGEMENTS
    from flows.collecting.desk import Desk
    from flows.collecting.lines import DurableLines
    from flows.serving.loopback import host_names, key_path, listen, read_key, run_server

    path = key_path(key_file, "collect.key")
    key = read_key(path)
    with listen(port) as listener:
        collection = prepare()
        if not collection.questions:
            raise InputError(
                "no prompt has two answers that differ",
                where=str(collection.folder),
                hint="sample first, or at a higher temperature into another folder",
            )
        settings = collection.settings
        with DurableLines(collection.folder / JUDGEMENTS) as lines:
            desk = Desk(collection.questions, lines, twice=settings.twice, seed=settings.seed)
            app = make_app(desk, collection.name, hosts=host_names(listener), key=key)
            echo(f"{collection.name}: http://127.0.0.1:{listener.getsockname()[1]}/")
            echo(f"the key is in {path}; Ctrl-C ends it")
            run_server(app, listener)


def _print_status(collection: Collection, as_json: bool) -> None:
    from flows.collecting.outcome import measure_agreement

    judgements = _judgements(collection)
    by_person: dict[str, Counter[str]] = {}
    for one in judgements.holding():
        by_person.setdefault(one.who, Counter())[one.verdict] += 1
    agreement = measure_agreement(collection.questions, judgements)
    judged = sum(bool(judgements.on(prompt)) for prompt in collection.questions)
    if as_json:
        print_json(
            {
                "model": collection.settings.model,
                "prompts": len(collection.questions),
                "judged": judged,
                "excluded": dict(collection.excluded),
                "people": {who: dict(counts) for who, counts in sorted(by_person.items())},
                "agreement": agreement.as_json(),
            }
        )
        return
    echo(f"{collection.name}: {judged:,} of {len(collection.questions):,} prompts judged")
    rows = [(who, *(counts[v] for v in VERDICTS)) for who, counts in sorted(by_person.items())]
    if rows:
        print_table([Column("who"), *(Column(one, right=True) for one in VERDICTS)], rows)
    echo(_format_agreement(agreement))


def _format_agreement(agreement: Agreement) -> str:
    if agreement.interval is None or agreement.share is None:
        return "no two answers were ranked by two people"
    low, high = agreement.interval
    doubt = f"; too few: {agreement.doubt}" if agreement.doubt else ""
    tied = f"; {agreement.tied:,} pairs tied" if agreement.tied else ""
    return (
        f"two people agree on {agreement.share:.3f} [{low:.3f}, {high:.3f}] of "
        f"{agreement.pairs:,} pairs of answers, to {agreement.prompts:,} prompts{tied}{doubt}"
    )


def _finish(collection: Collection, store: Store, choice: Choice, as_json: bool) -> None:
    """Write the pairs under a folder of their digest, and pin that as snapshots/NAME."""
    from artifacts_schema.files import write_whole
    from artifacts_schema.store.storage_errors import translate_errors
    from flows.collecting.outcome import make_pairs
    from flows.recipe.recipe import snapshot_entry
    from flows.recipe.snapshots import take_snapshot

    name = _check_name(collection.folder)
    rows, counts = make_pairs(
        collection.questions, _judgements(collection), collection.settings, choice
    )
    if not rows:
        raise InputError(
            f"no pair yet ({_counts(counts) or 'nothing is ranked'})",
            where=str(collection.folder),
            hint="rank answers first",
        )
    target = collection.folder / "snapshots" / canonical_sha256(rows)[:12]
    with translate_errors(str(target)):
        target.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    write_whole(target / f"{name}.jsonl", lambda path: path.write_text(text, encoding="utf-8"))
    entry = snapshot_entry(
        name,
        {"root": str(target.resolve()), "files": [f"{name}.jsonl"]},
        str(collection.folder),
    )
    ref = f"snapshots/{name}"
    manifest = take_snapshot(store, entry)
    while not store.name(ref, manifest):  # Collected before it was named.
        manifest = take_snapshot(store, entry)
    if as_json:
        print_json({"ref": ref, "key": manifest.key, "pairs": len(rows), "without": dict(counts)})
        return
    without = f"; without a pair: {_counts(counts)}" if counts else ""
    total = size(manifest.counts["bytes"])
    echo(f"{ref} {short(manifest.key)}: {len(rows):,} pairs, {total}{without}")


def _judgements(collection: Collection) -> Judgements:
    from flows.collecting.collection import JUDGEMENTS
    from flows.collecting.judgements import Judgements
    from flows.collecting.lines import read_lines

    return Judgements(read_lines(collection.folder / JUDGEMENTS))


def _counts(reasons: Counter[str]) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items()))
