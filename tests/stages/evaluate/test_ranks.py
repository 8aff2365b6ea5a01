"""An evaluation on several ranks measures what one process does, and no rank holds the model."""

import json
import signal
import time
from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from rank_runs import start
from ranks import run_ranks

from artifacts_schema.errors import EXIT_RESUME, Stopped, UsageError
from artifacts_schema.store.gc import remove_artifact
from artifacts_schema.store.lease import local_work
from stages.engine.runner import run_stage as run_spec
from stages.engine.spec import StageSpec
from stages.evaluate import ranks as on_ranks
from stages.evaluate.benchmarks import Item, ItemRequest
from stages.evaluate.config import EvaluateConfig, EvaluateExecution
from stages.evaluate.parts import (
    BenchmarkPart,
    Evaluator,
    GenerationPart,
    HeldOutPart,
    Prompt,
)
from stages.evaluate.stage import Evaluate
from stages.evaluate.writing import AnswerSettings, answer_parts
from stages.model.files import read_model
from stages.parallel.boxes import is_spread, local
from stages.parallel.layout import Layout
from stages.parallel.ranks import CPU, Ranks
from stages.scoring.answers import to_table
from stages.scoring.dtypes import arithmetic
from stages.scoring.generation import Generator, Sampling
from stages.scoring.likelihood import encode_text, target_nll
from stages.training.start import read_spread

CONFIG = EvaluateConfig(max_new_tokens=6, temperature=1.0)
BATCH_TOKENS = 150
"""Of sequences with 64 tokens a rank takes two at a time."""


def items(count):
    """Multiple choice and a text that needs several windows."""
    choices = ("Paris", "Rome", "a dictionary of values")
    quiz = [
        Item("quiz", str(n), "multiple_choice", f"{'The man. ' * (n % 4)}Say", choices, n % 3)
        for n in range(count)
    ]
    return (
        *quiz,
        Item("quiz", "text", "text", "Keys are values, and the sky is blue. " * 9, (), 0),
    )


@pytest.fixture
def parts():
    """Numbers of rows that two ranks can not share evenly: 21 choices, 3 windows of a text."""
    prompts = (Prompt("text", "Keys", (0, 20, 30)), Prompt("text", "The", (0, 9)))
    return [
        BenchmarkPart("benchmark-0000", items(7)),
        HeldOutPart("held-out-0000", "even"),
        HeldOutPart("held-out-0001", "odd"),
        GenerationPart(prompts),
    ]


def measure_alone(checkpoint, held_out, parts, dtype="float32"):
    """What one process measures."""
    config = CONFIG.model_copy(update={"dtype": dtype})
    execution = EvaluateExecution(batch_tokens=BATCH_TOKENS)
    with arithmetic(CPU, dtype, 1):
        model = read_model(checkpoint)
        evaluator = Evaluator.open(
            model, checkpoint, held_out, config, execution, check_stop=lambda: None
        )
        return [evaluator.measure(part) for part in parts]


def measure_together(checkpoint, held_out, parts, layout, dtype="float32"):
    """The same on this rank."""
    config = CONFIG.model_copy(update={"dtype": dtype})
    execution = EvaluateExecution(batch_tokens=BATCH_TOKENS, layout=layout)
    ranks = Ranks.from_group(CPU, layout)
    with arithmetic(CPU, dtype, 1):
        model = read_spread(checkpoint, ranks)
        evaluator = Evaluator.open(
            model, checkpoint, held_out, config, execution, ranks=ranks, check_stop=lambda: None
        )
        return [evaluator.measure(part) for part in parts]


def assert_alike(results, expected, tolerance=1e-6):
    """The same observations in the same order, sums within a relative `tolerance`."""
    for result, one in zip(results, expected, strict=True):
        assert result.generations == one.generations
        assert result.bad == one.bad
        assert len(result.observed) == len(one.observed)
        for observed, other in zip(result.observed, one.observed, strict=True):
            assert observed.numerator == pytest.approx(other.numerator, rel=tolerance)
            assert asdict(observed) == {**asdict(other), "numerator": observed.numerator}


@pytest.mark.parametrize(
    "layout",
    [
        Layout(shard=2),
        Layout(data=2),
        pytest.param(Layout(shard=2, zero=1), marks=pytest.mark.full),
        pytest.param(Layout(data=2, shard=2), marks=pytest.mark.full),
        pytest.param(Layout(shard=3), marks=pytest.mark.full),
    ],
    ids=["shard", "data", "zero-1", "hybrid", "uneven-shards"],
)
def test_ranks_measure_what_one_process_does(checkpoint, packed, read_input, parts, layout):
    inputs = read_input(*checkpoint), [read_input(packed, "held_out")], parts
    expected = measure_alone(*inputs)
    assert len(expected[0].observed) == 3 * 7 + 1
    assert all(one.observed for one in expected[:3])
    for results in run_ranks(layout.world, measure_together, *inputs, layout):
        assert_alike(results, expected)


def test_reduced_precision_holds_on_ranks(checkpoint, packed, read_input, parts):
    """bfloat16 has 8 bits of mantissa: a part in 256 of each logit."""
    inputs = read_input(*checkpoint), [read_input(packed, "held_out")], parts[1:2]
    exact, expected = measure_alone(*inputs), measure_alone(*inputs, "bfloat16")
    for results in run_ranks(2, measure_together, *inputs, Layout(shard=2), "bfloat16"):
        assert_alike(results, expected, 1e-3)
        assert results[0].observed != exact[0].observed


def questions(count):
    """Items that are answered in free text."""
    request = ItemRequest("Keys are", (), "free", 0, ("values",))
    return [
        Item("asked", str(n), "free", "Keys are", (), 0, requests=(replace(request, prompt=text),))
        for n, text in enumerate(f"Keys {'and values ' * (n % 5)}are" for n in range(count))
    ]


@pytest.fixture
def answers(tokenizer):
    """Three parts for two ranks, of 16, 16 and 3 items, two samples of each."""
    settings = AnswerSettings(5, samples=2, temperature=1.0)

    def prompts(texts):
        return [Prompt("text", text, (0, *encode_text(tokenizer, text))) for text in texts]

    return answer_parts("answers-0000", questions(35), settings, prompts)


def answer_together(checkpoint, parts, folder, layout):
    """Results of this rank, and the rows of each of its forward passes."""
    context = stopped_context(checkpoint, (), folder, "never", layout)
    ranks, passes = Ranks.from_group(CPU, layout), []
    choose = Sampling.choose

    def counted(self, logits_BV, uniform_B):
        passes.append(len(logits_BV))
        return choose(self, logits_BV, uniform_B)

    Sampling.choose = counted
    try:
        return on_ranks.measure_on_ranks(context, parts, ranks), sum(passes)
    finally:
        Sampling.choose = choose


@pytest.mark.parametrize(
    "layout",
    [
        Layout(data=2),
        Layout(shard=2),
        pytest.param(Layout(shard=2, zero=1), marks=pytest.mark.full),
        pytest.param(Layout(data=2, shard=2), marks=pytest.mark.full),
    ],
    ids=["data", "shard", "zero-1", "hybrid"],
)
def test_answers_are_shared_out_and_are_those_of_one_process(
    checkpoint, read_input, answers, layout, tmp_path
):
    """Whole models: bit by bit. Parts of one, whose passes round otherwise: within 1e-5."""
    expected = measure_alone(read_input(*checkpoint), (), answers)
    made = run_ranks(
        layout.world, answer_together, read_input(*checkpoint), answers, tmp_path, layout
    )
    tokens = sum(len(a.token_log_probabilities) for one in expected for a in one.answers)
    assert tokens > 200
    for results, _ in made:
        for result, one in zip(results, expected, strict=True):
            assert result.observed == one.observed
            if layout.shard == 1:
                assert to_table(result.answers) == to_table(one.answers)
            for answer, other in zip(result.answers, one.answers, strict=True):
                assert answer.text == other.text
                np.testing.assert_allclose(
                    answer.token_log_probabilities, other.token_log_probabilities, atol=1e-5
                )
    # The first two parts are written by a rank each, the last one, alone in its group, by all.
    shares = sorted(tokens for _, tokens in made)
    assert shares[-1] <= 0.7 * tokens
    assert {path.stem for path in tmp_path.glob("*.json")} == {part.id for part in answers}


def answer_until_stopped(checkpoint, parts, folder, layout):
    """None where the rank was stopped: rank 1 is asked to after its third pass."""
    context, passes = stopped_context(checkpoint, (), folder, "asked", layout), []
    choose = Sampling.choose

    def counted(self, logits_BV, uniform_B):
        passes.append(len(logits_BV))
        if len(passes) == 3:
            (folder / "asked.json").touch()
        return choose(self, logits_BV, uniform_B)

    Sampling.choose = counted
    try:
        return on_ranks.measure_on_ranks(context, parts, Ranks.from_group(CPU, layout))
    except Stopped:
        return None
    finally:
        Sampling.choose = choose


def test_a_rank_that_is_asked_to_stop_stops_all_while_they_write(
    checkpoint, read_input, answers, tmp_path
):
    inputs = read_input(*checkpoint), answers, tmp_path, Layout(data=2)
    assert run_ranks(2, answer_until_stopped, *inputs) == [None, None]
    assert {path.stem for path in tmp_path.glob("*.json")} == {"asked"}


def score_rows(checkpoint, layout, numbers):
    """nll of batches with these numbers of rows, and how many rows each forward pass had."""
    ranks, passes = Ranks.from_group(CPU, layout), []
    model = read_spread(checkpoint, ranks)
    model.register_forward_pre_hook(lambda _, args: passes.append(len(args[0])))
    return [target_nll(model, *rows(number), ranks=ranks) for number in numbers], passes


def rows(number):
    """Tokens, targets of which some are not wanted, and documents that end in padding."""
    ids_BL = torch.randint(5, 300, (number, 13), generator=torch.Generator().manual_seed(number))
    targets_BL = ids_BL[:, 1:].clone()
    targets_BL[:, ::5] = -1
    documents_BL = torch.zeros(number, 12, dtype=torch.int64)
    documents_BL[-1, 6:], targets_BL[-1, 6:] = -1, -1
    return ids_BL[:, :-1], targets_BL, documents_BL


def test_every_rank_makes_one_forward_pass_for_a_batch_of_any_number_of_rows(
    checkpoint, read_input, model
):
    numbers = [4, 1, 5]
    expected = [target_nll(model, *rows(number)) for number in numbers]
    results = run_ranks(2, score_rows, read_input(*checkpoint), Layout(shard=2), numbers)
    for scores, passes in results:
        assert passes == [2, 1, 3]
        for nll_BL, expected_BL in zip(scores, expected, strict=True):
            np.testing.assert_allclose(nll_BL, expected_BL, rtol=1e-5)
            assert (nll_BL != 0).sum() == (expected_BL != 0).sum() > 0


def write(checkpoint):
    """What the model writes, by a seed that differs between ranks."""
    ranks = Ranks.from_group(CPU, Layout(data=2))
    model = read_spread(checkpoint, ranks)
    sampling = Sampling(1.0, top_p=1.0, seed=1 + ranks.rank)
    with Generator(model, ranks=ranks) as generator:
        return list(generator.stream([0], sampling, max_new_tokens=8))


def test_ranks_that_would_choose_other_tokens_take_those_of_rank_0(checkpoint, read_input, model):
    with Generator(model) as generator:
        expected, other = (
            list(generator.stream([0], Sampling(1.0, 1.0, seed), max_new_tokens=8))
            for seed in (1, 2)
        )
    assert expected != other
    assert run_ranks(2, write, read_input(*checkpoint)) == [expected, expected]


def count_elements(checkpoint, layout):
    """Elements that a rank holds: after reading, the most while blocks compute, and at the end."""
    ranks = Ranks.from_group(CPU, layout)
    model = read_spread(checkpoint, ranks)
    # Of a weight with a gradient autocast would keep a copy for as long as it is entered.
    assert not any(p.requires_grad for p in model.parameters())
    most = 0

    def held(*_):
        nonlocal most
        gathered = sum(p.numel() for p in model.parameters() if not is_spread(p))
        most = max(most, gathered)

    for block in model.blocks:
        block.attention.register_forward_hook(held)
    before = sum(local(p).numel() for p in model.parameters())
    target_nll(model, *rows(4), ranks=ranks)
    return before, most, sum(local(p).numel() for p in model.parameters())


def test_a_rank_holds_its_part_and_one_block_while_that_computes(
    given, make_model, tokenizer, read_input
):
    from stages.model.files import model_files

    model = make_model(layers=4)
    blob = given("checkpoint", model_files(model))
    whole = sum(p.numel() for p in model.parameters())
    block = sum(p.numel() for p in model.blocks[0].parameters())
    outside = whole - 4 * block
    for before, most, after in run_ranks(2, count_elements, read_input(*blob), Layout(shard=2)):
        assert before == after == whole // 2
        assert most == outside + block
    (before, most, after), _ = run_ranks(
        2, count_elements, read_input(*blob), Layout(shard=2, zero=2)
    )
    assert (before, most, after) == (whole // 2, whole, whole)


def stopped_context(checkpoint, held_out, folder, stop_after, layout):
    """A context of rank 1 that is asked to stop once a part is kept."""
    first = Ranks.from_group(CPU, layout).first

    class Context(SimpleNamespace):
        @property
        def stopping(self):
            return not first and (folder / f"{stop_after}.json").exists()

    nothing = SimpleNamespace(check=lambda: None, publish=lambda *_: True, fetch=lambda _: False)
    return Context(
        one=lambda role: checkpoint,
        many=lambda role: held_out,
        config=CONFIG,
        execution=EvaluateExecution(batch_tokens=BATCH_TOKENS, layout=layout),
        work=folder,
        state=nothing,
        progress=lambda *_: None,
    )


def measure_until_stopped(checkpoint, held_out, parts, folder, stop_after):
    """The parts of this rank's results; None where it was stopped."""
    ranks = Ranks.from_group(CPU, Layout(data=2))
    context = stopped_context(checkpoint, held_out, folder, stop_after, ranks.layout)
    try:
        return on_ranks.measure_on_ranks(context, parts, ranks)
    except Stopped:
        return None


def test_all_ranks_stop_when_one_is_asked_and_finished_parts_are_kept(
    checkpoint, packed, read_input, parts, tmp_path
):
    inputs = read_input(*checkpoint), [read_input(packed, "held_out")], parts
    expected = measure_alone(*inputs)
    assert run_ranks(2, measure_until_stopped, *inputs, tmp_path, parts[1].id) == [None, None]
    assert {path.stem for path in tmp_path.glob("*.json")} == {parts[0].id, parts[1].id}
    kept = tmp_path / f"{parts[0].id}.json"
    value = json.loads(kept.read_text())
    value["bad"] = [{"benchmark": "quiz", "item_id": "7", "reason": "kept"}]
    kept.write_text(json.dumps(value))
    for results in run_ranks(2, measure_until_stopped, *inputs, tmp_path, "never"):
        assert [one.reason for one in results[0].bad] == ["kept"]
        assert_alike(results[1:], expected[1:])


@pytest.mark.parametrize("name", ["tensor", "pipeline", "interleave", "context", "expert"])
def test_a_layout_that_shares_more_than_rows_and_parameters_is_refused_by_the_plan(name):
    execution = EvaluateExecution(layout={name: 2, "data": 2})
    with pytest.raises(UsageError) as caught:
        Evaluate.check_layout(EvaluateConfig(), execution, {})
    assert caught.value.where == f"execution.layout.{name}"
    assert Evaluate.ranks(EvaluateExecution(layout={"data": 2, "shard": 3, "zero": 1})) == 6


@pytest.mark.full
@pytest.mark.faults
def test_the_stage_on_two_ranks_writes_the_tables_of_one_process(
    store, run_stage, read_table, given, checkpoint, packed
):
    quiz = [{**asdict(item), "choices": list(item.choices), "metadata": "{}"} for item in items(5)]
    bad = {**quiz[0], "item_id": "bad", "answer": 7}
    truth = {"defect": "garbled", "doc_id": "x", "count": 1, "detail": "noise"}
    verdict = {"failing": [], "edits": 0, "characters": 10, "doc_id": "x", "verdict": "dropped"}
    inputs = {
        "checkpoint": [checkpoint],
        "benchmarks": [given("benchmarks", {"00000.parquet": [*quiz, bad]})],
        "held_out": [(packed, "held_out")],
        "truth": [given("truth", {"00000.parquet": [truth]})],
        "ledger": [given("ledger", {"aaaaaaaaaaaa/00000.parquet": [verdict]})],
    }
    prompts = {"text_prompts": ["Keys", "The"], "chat_prompts": [], "max_new_tokens": 6}
    config = {**prompts, "max_bad_share": 0.5}
    made, tables = [], []
    for layout in ({}, {"shard": 2}):
        execution = {"device": "cpu", "batch_tokens": BATCH_TOKENS, "layout": layout}
        manifest = run_stage(Evaluate, config, inputs, execution)
        names = ("results.parquet", "items.parquet", "generations.parquet")
        tables.append([read_table(manifest, "evaluation", name).to_pylist() for name in names])
        made.append(manifest)
        remove_artifact(store, manifest)
    alone, ranks = made
    assert ranks.key == alone.key
    assert "ranks" not in alone.layout
    assert ranks.layout == {**alone.layout, "ranks": Layout(shard=2).plain()}
    assert (ranks.counts, ranks.samples) == (alone.counts, alone.samples)
    results, expected = tables
    assert results[2] == expected[2]
    for table, other in zip(results[:2], expected[:2], strict=True):
        assert len(table) == len(other)
        for row, one in zip(table, other, strict=True):
            for name, value in one.items():
                same = pytest.approx(value, rel=1e-5) if isinstance(value, float) else value
                assert row[name] == same


def test_a_spec_with_such_a_layout_is_refused(store, checkpoint):
    """A stage on a node of a cluster has no plan, only its spec."""
    inputs = {"checkpoint": [store.reference(*checkpoint)]}
    spec = json.loads(StageSpec.make(Evaluate, {}, inputs, {}).to_json())
    spec["execution"]["layout"] = {"pipeline": 2}
    with pytest.raises(UsageError) as caught:
        StageSpec.from_json(json.dumps(spec).encode(), where="spec")
    assert caught.value.where == "execution.layout.pipeline"


@pytest.mark.full
@pytest.mark.faults
def test_a_run_on_ranks_that_is_stopped_goes_on_with_the_next_part(
    store, given, checkpoint, read_table, tmp_path
):
    quiz = [{**asdict(item), "choices": list(item.choices), "metadata": "{}"} for item in items(5)]
    inputs = {
        "checkpoint": [checkpoint],
        "benchmarks": [given("benchmarks", {"00000.parquet": quiz})],
    }
    references = {role: [store.reference(*one) for one in made] for role, made in inputs.items()}
    config = {"text_prompts": ["Keys", "The"] * 24, "chat_prompts": [], "max_new_tokens": 500}
    execution = {"device": "cpu", "layout": {"data": 2}}
    spec = StageSpec.make(Evaluate, config, references, execution)
    process = start(store, spec, tmp_path)
    folder = local_work(store.backend, spec.key, "state")
    while not (kept := list(folder.rglob("benchmark-0000-0000.json"))):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == EXIT_RESUME, output
    assert "stopped on request" in output
    value = json.loads(kept[0].read_text())
    for one in value["observed"]:
        one["numerator"] = 0.25
    kept[0].write_text(json.dumps(value))
    made = run_spec(store, spec).manifest
    results = read_table(made, "evaluation", "results.parquet").to_pylist()
    assert {row["value"] for row in results if row["metric"] == "accuracy"} == {0.25}
