"""The stage that has answers of two models compared in pairs by a judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError, UsageError
from stages.engine import Context, Inputs, Many, Maybe, Stage
from stages.judge.config import JudgeConfig, JudgeExecution

if TYPE_CHECKING:
    from stages.judge.journal import Answer, Journal
    from stages.judge.verdicts import Comparison, Pair

JOURNAL, KEPT = "answers.jsonl", "kept.jsonl"
ANSWERS = "answers"
"""Name under which a remote store has the journal."""
PUBLISHED_EVERY = 50
"""Answers after which those so far are published to a remote store."""


class Judge(Stage):
    """Ask a judge which of two answers is better, in both orders; measure first if people agree.

    The judge is a model behind an OpenAI-compatible endpoint, or a checkpoint. Pairs are answers of
    evaluations `a` and `b` to the same questions. A preference that changes with the order is a
    tie; an answer without a verdict counts on neither side. On `preferences`, which people have
    labelled, its agreement with them is measured before anything else. Each answer is on disk
    before the next step: a run that was killed asks for none again, and `answers` of an earlier run
    are used as they are.
    """

    name, version, reproducible = "judge", 1, "numerics"
    inputs = {
        "a": Maybe("evaluation"),
        "b": Maybe("evaluation"),
        "benchmarks": Many("benchmarks"),
        "preferences": Many("preferences"),
        "checkpoint": Maybe("checkpoint"),
        "answers": Many("judge_answers"),
    }
    outputs = {"evaluation": "evaluation", "answers": "judge_answers"}
    libraries = ("numpy", "pyarrow")
    Config, Execution = JudgeConfig, JudgeExecution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """UsageError for nothing to judge, or for two judges or none."""
        check_request(config, {role for role, values in inputs.items() if values})

    def run(self, context: Context) -> None:
        """Labelled pairs first, then those of the evaluations."""
        from stages.judge.pairs import evaluation_pairs, human_pairs
        from stages.judge.verdicts import draw

        config: JudgeConfig = context.config
        roles = ("a", "b", "preferences", "checkpoint")
        check_request(config, {role for role in roles if context.many(role)})
        labelled, single = human_pairs(context.many("preferences"), config.seed)
        if single:
            context.count(single_answers=single)
        labelled = draw(labelled, config.max_labelled, config.seed)
        pairs: list[Pair] = []
        a, b = context.maybe("a"), context.maybe("b")
        if a is not None and b is not None:
            pairs, alone = evaluation_pairs(a, b, context.many("benchmarks"))
            context.count(answers_without_partner=alone)
            pairs = draw(pairs, config.max_pairs, config.seed)
        if not labelled and not pairs:
            raise InputError(
                "no pair of answers to judge",
                where="judge",
                hint="a and b must have answered the same items (give their benchmarks), or have "
                "written after the same prompts",
            )
        journal = open_journal(context)
        earlier = _earlier_answers(context)
        journal.take(earlier)
        judge = _Judge(context, journal, frozenset(earlier))
        agreed = judge.compare(labelled)
        _write(context, agreed, judge.compare(pairs), judge)


def check_request(config: JudgeConfig, roles: set[str]) -> None:
    """UsageError for nothing to judge, one evaluation alone, two judges or none."""
    if ("a" in roles) != ("b" in roles):
        raise UsageError("one evaluation alone has no other to be compared with", where="judge")
    if not roles & {"a", "preferences"}:
        raise UsageError(
            "nothing to judge", where="judge", hint="give evaluations a and b, or preferences"
        )
    if (config.model is None) != ("checkpoint" in roles):
        both = config.model is not None
        raise UsageError(
            "two judges: `model` at an endpoint, and a checkpoint" if both else "no judge",
            where="judge",
            hint="name one: config `model` with execution.url, or role `checkpoint`",
        )


class _Judge:
    """Asks what is not known yet, and reads verdicts off the answers."""

    def __init__(self, context: Context, journal: Journal, earlier: frozenset[str]) -> None:
        self.context, self.journal, self.earlier = context, journal, earlier
        self.requests: dict[str, tuple[Pair, bool]] = {}
        """All that was asked: what, and in which order the two answers were shown."""

    def compare(self, pairs: Sequence[Pair]) -> list[Comparison]:
        """What both orders of each pair came to; equal answers are a tie, and nobody is asked."""
        from stages.judge.verdicts import Comparison, combine, parse_verdict

        bodies = {
            (n, swapped): self._body(pair, swapped)
            for n, pair in enumerate(pairs)
            if pair.a != pair.b
            for swapped in (False, True)
        }
        names = {place: _digest(body) for place, body in bodies.items()}
        self.requests |= {name: (pairs[n], swapped) for (n, swapped), name in names.items()}
        self._ask({names[place]: body for place, body in bodies.items()})
        answers = self.journal.answers
        self.context.count(pairs_equal=len(pairs) - len(bodies) // 2)
        return [
            Comparison(pair, "tie", False)
            if pair.a == pair.b
            else combine(
                pair,
                parse_verdict(answers[names[n, False]].text),
                parse_verdict(answers[names[n, True]].text),
            )
            for n, pair in enumerate(pairs)
        ]

    def _body(self, pair: Pair, swapped: bool) -> dict[str, Any]:
        """What is asked, and of whom: its digest names the answer."""
        from stages.judge.verdicts import BARE, REASONED, write_task

        config: JudgeConfig = self.context.config
        task = write_task(config.criterion, pair, swapped)
        checkpoint = self.context.maybe("checkpoint")
        if checkpoint is not None:
            prompt = BARE.format(task=task)
            return {"checkpoint": checkpoint.digest, "dtype": config.dtype, "prompt": prompt}
        parameters = {
            "temperature": config.temperature,
            "max_tokens": config.max_new_tokens,
            **config.parameters,
        }
        return {
            "model": config.model,
            "messages": [{"role": "user", "content": REASONED.format(task=task)}],
            **{name: value for name, value in parameters.items() if value is not None},
        }

    def _ask(self, bodies: Mapping[str, Mapping[str, Any]]) -> None:
        known = self.journal.answers
        left = {name: body for name, body in bodies.items() if name not in known}
        # Answers of a killed attempt at this run are its own: counts are those of an unbroken run.
        self.context.count(requests=len(bodies), answers_known=len(bodies.keys() & self.earlier))
        if not left:
            return
        try:
            if self.context.maybe("checkpoint") is not None:
                self._ask_checkpoint(bodies)
            else:
                self._ask_endpoint(left)
        finally:
            self._publish()

    def _ask_endpoint(self, left: Mapping[str, Mapping[str, Any]]) -> None:
        from stages.judge.endpoint import Endpoint, ask_all, check_answered, read_key

        execution = self.context.execution
        endpoint = Endpoint(execution, read_key(execution))
        self.context.layout(endpoint=endpoint.host)
        ask_all(endpoint, left, self._keep, self.context.check_stop)
        self.context.telemetry(attempts=endpoint.requests_made)
        answers = [self.journal.answers[name] for name in left]
        check_answered(len(left), sum(one.status == "refused" for one in answers))

    def _ask_checkpoint(self, bodies: Mapping[str, Mapping[str, Any]]) -> None:
        import torch

        from stages.judge.local_judge import LocalJudge, answer_all
        from stages.training.devices import choose_device, device_name

        context = self.context
        device = choose_device(context.execution.device)
        context.layout(
            device=device_name(device),
            dtype=context.config.dtype,
            threads=context.execution.threads,
            torch=str(torch.__version__),
        )
        prompts = {name: str(body["prompt"]) for name, body in bodies.items()}
        judge = LocalJudge(
            context.one("checkpoint"), context.execution, device, context.config.dtype
        )
        answer_all(judge, prompts, self.journal.answers, self._keep, context.check_stop)

    def _keep(self, answer: Answer) -> None:
        self.context.state.check(ask=False)  # A run that was succeeded pays for no more answers.
        self.journal.add(answer)
        done = len(self.journal.answers)
        self.context.progress(done, max(done, len(self.requests)), "answers")
        if done % PUBLISHED_EVERY == 0:
            self._publish()

    def _publish(self) -> None:
        if self.journal.path.exists():
            self.context.state.publish(ANSWERS, self.journal.path)


def open_journal(context: Context) -> Journal:
    """The answers of this machine, and those that another one has published in a remote store.

    What is here is set aside until it is joined with the others, so no kill loses any.
    """
    from stages.judge.journal import Journal

    path, kept = context.work / JOURNAL, context.work / KEPT
    if ANSWERS in context.state.published():
        if path.exists() and not kept.exists():
            path.rename(kept)
        context.state.fetch(ANSWERS)
    journal = Journal(path)
    if kept.exists():
        for request, answer in Journal(kept).answers.items():
            if request not in journal.answers:
                journal.add(answer)
        kept.unlink()
    return journal


def _digest(body: Mapping[str, Any]) -> str:
    from artifacts_schema.identity import canonical_sha256

    return canonical_sha256(dict(body))


def _earlier_answers(context: Context) -> dict[str, Answer]:
    """Answers of earlier runs; what got none is asked again."""
    from stages.judge.journal import Answer

    return {
        row["request"]: Answer(**{name: row[name] for name in Answer.__dataclass_fields__})
        for one in context.many("answers")
        for row in one.read_table("answers.parquet").to_pylist()
        if row["status"] == "answered"
    }


def _write(
    context: Context,
    labelled: Sequence[Comparison],
    judged: Sequence[Comparison],
    judge: _Judge,
) -> None:
    """Scores, items, answers. InputError where too many pairs have no verdict."""
    import pyarrow as pa

    from artifacts_schema.kinds import KINDS
    from stages.engine import check_bad_share
    from stages.judge.scores import comparison_rows, write_scores
    from stages.judge.verdicts import parse_verdict

    pairs = [*labelled, *judged]
    bad = [one for one in pairs if one.outcome is None]
    for one in bad:
        context.sample("no_verdict", f"{one.pair.benchmark}/{one.pair.item_id}")
    flipped = sum(one.flipped for one in pairs)
    context.count(pairs=len(pairs), pairs_without_verdict=len(bad), pairs_flipped=flipped)
    names = [f"{one.pair.benchmark}/{one.pair.item_id}" for one in bad]
    check_bad_share(len(bad), len(pairs), context.config.max_bad_share, names, where="judge")
    write_scores(context, labelled, judged)
    tables = KINDS["judge_answers"].tables
    rows = [
        {**row, "verdict": parse_verdict(row["text"]), "swapped": judge.requests[row["request"]][1],
         "benchmark": judge.requests[row["request"]][0].benchmark,
         "item_id": judge.requests[row["request"]][0].item_id}
        for row in judge.journal.rows(judge.requests)
    ]  # fmt: skip
    schema = tables["answers.parquet"].arrow()
    context.write_table("answers", "answers.parquet", pa.Table.from_pylist(rows, schema=schema))
    schema = tables["comparisons.parquet"].arrow()
    compared = pa.Table.from_pylist(comparison_rows(pairs), schema=schema)
    context.write_table("answers", "comparisons.parquet", compared)
