"""The harness stage beside lm-eval's own Hugging Face adapter on the released checkpoint."""

import json
import math
import re

import pytest

pytest.importorskip("lm_eval", reason="needs lm-eval: pip install 'ingot[harness]'")

from artifacts_schema.errors import InputError
from stages.evaluate.stage import Evaluate
from stages.examples.stage import Benchmarks
from stages.harness.scores import NAMES
from stages.harness.stage import Harness, ImportScores
from stages.model.files import model_files, read_model, read_tokenizer
from stages.tokenizer.training import transformers_config
from tests.stages.benchmarks.published_rows import made_rows

from .conftest import DATA, FILES, ROWS, TEXTS, lines

QUIET = {"text_prompts": [], "chat_prompts": []}


@pytest.fixture
def measure(run_stage, checkpoint, snapshot):
    def run(config, files=None, which=checkpoint, **execution):
        inputs = {"checkpoint": [which], "snapshot": [snapshot(files or {**FILES, **DATA})]}
        return run_stage(Harness, config, inputs, execution)

    return run


@pytest.fixture
def read_samples(read_input):
    def read(manifest):
        records = read_input(manifest, "evaluation").read_json("tasks.json")
        samples = read_input(manifest, "samples")
        return {
            one["name"]: [
                json.loads(line)
                for line in samples.read_bytes(one["harness"]["samples"]).splitlines()
            ]
            for one in records
            if "tasks" not in one["harness"]
        }

    return read


def results_of(read_table, manifest):
    rows = read_table(manifest, "evaluation", "results.parquet").to_pylist()
    return {(row["benchmark"], row["metric"]): row for row in rows}


@pytest.fixture
def wide_checkpoint(given, make_model, tokenizer):
    """A checkpoint whose context holds the prompts of published tasks."""
    return given(
        "checkpoint",
        {
            **model_files(make_model(context=400)),
            "tokenizer.json": tokenizer.to_str().encode(),
            "tokenizer_config.json": transformers_config("llama-bpe"),
            "state.json": {"stage": "pretrain", "training_step": 1, "tokens": 1},
        },
    )


@pytest.fixture
def by_transformers(read_input, checkpoint, tmp_path):
    """`by_transformers(tasks, shots)` → lm-eval's results and samples of the released model."""

    def run(names, shots, files=None, bootstrap_iters=0):
        from lm_eval import simple_evaluate
        from lm_eval.models.huggingface import HFLM
        from lm_eval.tasks import TaskManager

        from tests.peers.harness_tasks import write_model

        source = read_input(*checkpoint)
        described = source.read_json("tokenizer_config.json")
        write_model(tmp_path, read_model(source), read_tokenizer(source), described)
        tasks = tmp_path / "tasks"
        for name, text in (files or {**FILES, **DATA}).items():
            path = tasks / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("data/", f"{tasks}/data/"), encoding="utf-8")
        return simple_evaluate(
            model=HFLM(
                pretrained=str(tmp_path / "model"), device="cpu", dtype="float32", batch_size=4
            ),
            tasks=list(names),
            num_fewshot=shots,
            task_manager=TaskManager(include_path=str(tasks), include_defaults=False),
            bootstrap_iters=bootstrap_iters,
        )

    return run


@pytest.mark.full
@pytest.mark.parametrize("shots", [0, 2])
def test_items_agree_with_the_hugging_face_adapter(
    measure, read_samples, read_table, by_transformers, shots
):
    names = ("colours", "last_word", "written") if shots == 0 else ("colours",)
    made = measure({"tasks": names, "shots": shots})
    theirs = by_transformers(names, shots)
    ours = read_samples(made)
    for name in names:
        for one, other in zip(
            ours[name],
            sorted(theirs["samples"][name], key=lambda row: (row["doc_id"], row["filter"])),
            strict=True,
        ):
            for field in ("doc_hash", "prompt_hash", "target_hash", "filter", "metrics"):
                assert one[field] == other[field]
            if name == "written":
                assert one["resps"] == [list(map(str, some)) for some in other["resps"]]
                continue
            for mine, (score, greedy) in zip(
                one["filtered_resps"], other["filtered_resps"], strict=True
            ):
                assert float(mine[0]) == pytest.approx(score, abs=1e-4)
                assert mine[1] == str(greedy)
    results = results_of(read_table, made)
    for (name, metric), row in results.items():
        known = {ours: theirs for theirs, ours in NAMES.items()}
        base, _, chosen = metric.partition("/")
        theirs_value = theirs["results"][name][f"{known.get(base, base)},{chosen or 'none'}"]
        assert row["value"] == pytest.approx(theirs_value, rel=1e-4)
        assert row["shots"] == shots
    assert results["colours", "accuracy"]["count"] == len(ROWS)
    # Three rows of two choices, three of three.
    assert results["colours", "accuracy"]["baseline"] == pytest.approx((3 / 2 + 3 / 3) / 6)


def test_rolling_bits_per_byte_are_those_of_evaluate(
    measure, read_table, run_stage, checkpoint, given
):
    made = measure({"tasks": ["texts"]})
    items = [
        {"benchmark": "texts", "item_id": str(n), "form": "text", "prompt": row["text"],
         "choices": [], "answer": None, "metadata": "{}", "requests": []}
        for n, row in enumerate(TEXTS)
    ]  # fmt: skip
    benchmarks = given("benchmarks", {"00000.parquet": items})
    own = run_stage(Evaluate, QUIET, {"checkpoint": [checkpoint], "benchmarks": [benchmarks]})
    ours, theirs = results_of(read_table, made), results_of(read_table, own)
    value = ours["texts", "bits_per_byte"]["value"]
    assert value == pytest.approx(theirs["texts", "bits_per_byte"]["value"], abs=1e-6)
    assert ours["texts", "bits_per_byte"]["standard_error"] > 0
    perplexity = ours["texts", "byte_perplexity"]
    assert perplexity["value"] == pytest.approx(2**value, rel=1e-6)
    assert perplexity["standard_error"] is None


@pytest.mark.full
def test_of_rolling_texts_the_second_bos_is_the_difference(
    measure, read_table, by_transformers, checkpoint, read_input
):
    """lm-eval puts its prefix before the BOS of the tokenizer, and scores that BOS, once a text."""
    from stages.scoring.likelihood import encode_text, rolling_requests, score_requests
    from stages.tokens.vocabulary import SpecialTokens

    theirs = by_transformers(["texts"], 0)["results"]["texts"]["bits_per_byte,none"]
    source = read_input(*checkpoint)
    model, tokenizer = read_model(source), read_tokenizer(source)
    described = source.read_json("tokenizer_config.json")
    begin = SpecialTokens.from_config(tokenizer, described).context
    context = model.config.context

    def bits(prefix):
        requests = [
            one
            for row in TEXTS
            for one in rolling_requests([*prefix, *encode_text(tokenizer, row["text"])], context)
        ]
        nats = -sum(sum(one.log_likelihoods) for one in score_requests(model, requests))
        return nats / math.log(2) / sum(len(row["text"].encode()) for row in TEXTS)

    ours = results_of(read_table, measure({"tasks": ["texts"]}))["texts", "bits_per_byte"]["value"]
    assert ours == pytest.approx(bits([begin]), abs=1e-5)
    assert theirs == pytest.approx(bits([begin, begin]), abs=1e-5)


def test_equal_bytes_after_kills_and_finished_tasks_are_kept(measure, read_input, monkeypatch):
    import stages.harness.measure as module

    class Killed(BaseException):
        pass

    config = {"tasks": ["last_word", "colours", "texts"]}
    observe, measured = module.observe, []

    def die(task, *arguments):
        measured.append(task)
        if len(measured) in (2, 4):
            raise Killed
        return observe(task, *arguments)

    monkeypatch.setattr(module, "observe", die)
    for _ in range(2):
        with pytest.raises(Killed):
            measure(config)
    after = measure(config)
    assert measured == ["last_word", "colours", "colours", "texts", "texts"]
    monkeypatch.setattr(module, "observe", observe)
    # Another limit is another key; above the rows there are it measures the same.
    again = measure({**config, "limit": 1000})
    for output in ("evaluation", "samples"):
        tables = [
            {
                path: read_input(one, output).read_bytes(path)
                for path in read_input(one, output).paths()
                if path != "tasks.json"
            }
            for one in (after, again)
        ]
        assert tables[0] == tables[1]


@pytest.mark.full
def test_two_workers_write_the_bytes_of_one(measure, read_input):
    outputs = []
    for workers, limit in ((1, 5), (2, 5)):
        # A seed that decides nothing here makes another key.
        made = measure({"tasks": ["last_word", "colours"], "limit": limit, "seed": workers},
                       workers=workers)  # fmt: skip
        outputs.append(
            [
                read_input(made, output).read_bytes(path)
                for output in ("evaluation", "samples")
                for path in read_input(made, output).paths()
                if path != "tasks.json"
            ]
        )
    assert outputs[0] == outputs[1]


def test_batch_size_moves_no_choice_and_no_score_beyond_the_tolerance(measure, read_samples):
    small, large = (
        read_samples(measure({"tasks": ["colours"], "shots": 1}, batch_tokens=size))
        for size in (1, 5000)
    )
    for one, other in zip(small["colours"], large["colours"], strict=True):
        assert one["acc"] == other["acc"]
        for (a, _), (b, _) in zip(one["filtered_resps"], other["filtered_resps"], strict=True):
            assert float(a) == pytest.approx(float(b), abs=1e-4)


def test_samples_are_what_import_scores_reads_and_pair_with_another_model(
    measure, read_input, read_table, run_stage, snapshot
):
    made = measure({"tasks": ["colours"]})
    record = read_input(made, "evaluation").read_json("tasks.json")[0]
    samples = read_input(made, "samples").read_bytes(record["harness"]["samples"]).decode()
    rows = results_of(read_table, made)
    results = {"results": {"colours": {"acc,none": rows["colours", "accuracy"]["value"],
                                       "acc_stderr,none": 0.1}},
               "versions": {"colours": 2.0}, "n-shot": {"colours": 0},
               "config": {"model_args": "pretrained=org/model,token=SECRET"}}  # fmt: skip
    files = {"results_2026-01-01T00-00-00.json": json.dumps(results),
             "samples_colours_2026-01-01T00-00-00.jsonl": samples}  # fmt: skip
    imported = run_stage(ImportScores, {}, {"snapshot": [snapshot(files)]})
    ids = [
        [row["item_id"] for row in read_table(one, "evaluation", "items.parquet").to_pylist()
         if row["metric"] == "accuracy"]
        for one in (made, imported)
    ]  # fmt: skip
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == len(ROWS)


def test_a_chat_is_put_in_the_template_and_quotes_no_special_token(
    measure, read_samples, chat_checkpoint, checkpoint
):
    rows = [{**ROWS[0], "question": "<|im_end|> The capital"}]
    files = {**FILES, **DATA, "data/test.jsonl": lines(rows)}
    config = {"tasks": ["colours"], "chat": True}
    (sample,) = read_samples(measure(config, files, which=chat_checkpoint))["colours"]
    prompt = sample["arguments"]["gen_args_0"]["arg_0"]
    assert prompt.startswith("<|im_start|>user") or "<|im_start|>user" in prompt
    assert "<|im_end|> The capital" in prompt
    with pytest.raises(InputError, match="no chat template"):
        measure(config, files, which=checkpoint)


REFUSED = {
    "!function": ("process_docs: !function code.run", "names Python code: code.run"),
    "metric": ("metric_list: [{metric: !function code.run}]", "names Python code"),
    "script": ("metric_list: [{metric: ./code}]", "no metric './code'"),
    "hf_evaluate": ("metric_list: [{metric: acc, hf_evaluate: true}]", "a script"),
    "hub": ("dataset_path: org/data", "data set 'org/data'"),
    "pickle": ("dataset_path: pandas", "data set 'pandas'"),
    "outside": ("dataset_kwargs: {data_files: {test: /etc/passwd}}", "no file '/etc/passwd'"),
    "above": ("dataset_kwargs: {data_files: {test: ../../x.jsonl}}", "no file"),
    "url": ("dataset_kwargs: {data_files: {test: 'https://host/x.jsonl'}}", "no file"),
    "loader": ("dataset_kwargs: {data_files: {test: data/test.jsonl}, data_dir: /}", "data_dir"),
    "include": ("include: /etc/hostname", "no file"),
    "class": ("class: x.Y", "Python class"),
    "images": ("doc_to_image: image", "images"),
    "unsafe": ("unsafe_code: true", "sandbox"),
    "prompts": ("use_prompt: 'promptsource:x'", "library of prompts"),
    "field": ("doc_to_txt: x", "no field 'doc_to_txt'"),
    "python tag": ("doc_to_text: !!python/object/apply:os.system ['true']", "no YAML of a task"),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_would_run_or_fetch_something_is_refused_by_name(measure, name):
    line, message = REFUSED[name]
    field = line.partition(":")[0]
    text = re.sub(rf"^{field}:.*\n(  .*\n)*", "", FILES["colours.yaml"], flags=re.M)
    files = {**DATA, "colours.yaml": f"{text}{line}\n", "code.py": "raise SystemExit(9)\n"}
    with pytest.raises(InputError) as caught:
        measure({"tasks": ["colours"]}, files)
    assert message in str(caught.value)
    assert "colours" in str(caught.value)


def test_a_template_reaches_no_python(measure):
    escape = "{{ ''.__class__.__mro__[1].__subclasses__() }}"
    text = FILES["colours.yaml"].replace("Question: {{question}}", escape)
    with pytest.raises(InputError, match=r"SecurityError|unsafe"):
        measure({"tasks": ["colours"]}, {**DATA, "colours.yaml": text})


def test_code_that_is_trusted_runs(measure, read_samples):
    code = "def last(rows):\n    return rows.select([len(rows) - 1])\n"
    text = FILES["colours.yaml"] + "process_docs: !function more.last\n"
    files = {**DATA, "colours.yaml": text, "more.py": code}
    made = measure({"tasks": ["colours"], "trust_task_code": True}, files)
    (sample,) = read_samples(made)["colours"]
    assert sample["doc"]["question"] == ROWS[-1]["question"]


GROUPS = {
    "few.yaml": FILES["colours.yaml"]
    .replace("task: colours", "task: few\ntag: coloured")
    .replace("test: data/test.jsonl", "test: data/few.jsonl"),
    "tag.yaml": "group: by_tag\ntask: [colours, coloured]\n"
    "aggregate_metric_list: [{metric: acc}, {metric: acc_norm, weight_by_size: false}]\n"
    "metadata: {version: 4}\n",
    "all.yaml": "group: every\ntask: [by_tag, written]\n"
    "aggregate_metric_list: {metric: exact_match, filter_list: whole}\n",
    "data/few.jsonl": lines(ROWS[:2]),
}


@pytest.mark.full
def test_groups_are_aggregated_as_the_harness_does(
    measure, read_samples, read_input, read_table, by_transformers
):
    files = {**FILES, **DATA, **GROUPS}
    made = measure({"tasks": ["every"]}, files)
    theirs = by_transformers(["every"], None, files, bootstrap_iters=100)
    assert set(read_samples(made)) == {"colours", "few", "written"}
    records = {one["name"]: one for one in read_input(made, "evaluation").read_json("tasks.json")}
    assert records["by_tag"]["harness"]["tasks"] == ["colours", "few"]
    assert records["by_tag"]["version"] == theirs["versions"]["by_tag"] == "4"
    rows = results_of(read_table, made)
    for group, metric, key in (
        ("by_tag", "accuracy", "acc,none"),
        ("by_tag", "accuracy_by_characters", "acc_norm,none"),
        ("every", "exact_match/whole", "exact_match,whole"),
    ):
        other, row = theirs["results"][group], rows[group, metric]
        assert row["value"] == pytest.approx(other[key])
        error = other[key.replace(",", "_stderr,")]
        assert row["standard_error"] == pytest.approx(error)
        assert row["count"] == other["sample_len"]
    assert rows["by_tag", "accuracy"]["standard_error"] > 0
    assert {name for name, _ in rows} == {"colours", "few", "written", "by_tag", "every"}


def test_a_group_that_comes_with_lm_eval_reads_rows_by_a_pattern(measure, read_table):
    """57 subjects in four groups within one, found by tags; rows of each in a file of its own."""
    from stages.harness.library import own_catalogue

    row = {"question": "The sky is", "subject": "x", "choices": ["a", "b", "c", "d"], "answer": 1}
    files = {f"{split}.jsonl": lines([row] * 5) for split in ("test", "dev")}
    data = {"mmlu_*": {"test": "{task}/test.jsonl", "dev": "{dataset_name}_dev.jsonl"}}
    with pytest.raises(InputError, match=r"no file 'mmlu_abstract_algebra/test\.jsonl'"):
        measure({"tasks": ["mmlu_stem"], "data": data}, files)
    assert len(own_catalogue().tags["mmlu_stem_tasks"]) == 19
    names = [one.removeprefix("mmlu_") for one in own_catalogue().tags["mmlu_stem_tasks"]]
    files = {f"mmlu_{one}/test.jsonl": lines([row] * (n + 1)) for n, one in enumerate(names)}
    files |= {f"{one}_dev.jsonl": lines([row]) for one in names}
    made = measure({"tasks": ["mmlu_stem"], "data": data, "shots": 0}, files)
    rows = results_of(read_table, made)
    assert rows["mmlu_stem", "accuracy"]["count"] == sum(range(1, 20))


def test_a_task_that_comes_with_lm_eval_reads_rows_of_the_snapshot(measure, read_table):
    rows = [
        {"id": str(n), "question": row["question"], "answerKey": "AB"[row["gold"]],
         "choices": {"text": row["choices"][:2], "label": ["A", "B"]}}
        for n, row in enumerate(ROWS) if row["gold"] < 2
    ]  # fmt: skip
    files = {"arc.jsonl": lines(rows)}
    data = {"arc_easy": {"test": "arc.jsonl", "train": "arc.jsonl", "validation": "arc.jsonl"}}
    made = measure({"tasks": ["arc_easy"], "data": data}, files)
    assert results_of(read_table, made)["arc_easy", "accuracy"]["count"] == len(rows)
    with pytest.raises(InputError, match="would download data set 'allenai/ai2_arc'"):
        measure({"tasks": ["arc_easy"]}, files)
    with pytest.raises(InputError, match="has a task 'arc_easyy'"):
        measure({"tasks": ["arc_easyy"]}, files)


def test_bad_rows_are_named(measure):
    for bad, message in (
        ('{"question": "x", "choices": ["a", "b"], "gold": 0}\n[1]\n', "not_an_object"),
        ("", "has no row"),
        (
            lines([ROWS[0], {"question": "x", "choices": ["a", ""], "gold": 0}]),
            "task colours, row 1: nothing to score",
        ),
        ('{"question": "x", "choices": 3, "gold": 0}\n', "task colours"),
    ):
        files = {**FILES, **DATA, "data/test.jsonl": bad}
        with pytest.raises(InputError, match=message):
            measure({"tasks": ["colours"]}, files)


def test_an_answer_that_leaves_no_room_is_refused(measure):
    text = FILES["written.yaml"].replace("max_gen_toks: 12", "max_gen_toks: 64")
    with pytest.raises(InputError, match="64 tokens leaves no room") as caught:
        measure({"tasks": ["written"]}, {**DATA, "written.yaml": text})
    assert "max_new_tokens" in str(caught.value)
    text = FILES["written.yaml"].replace("do_sample: false", "top_k: 3")
    with pytest.raises(InputError, match="generation_kwargs has top_k"):
        measure({"tasks": ["written"]}, {**DATA, "written.yaml": text})


@pytest.mark.full
def test_truthfulqa_mc2_of_evaluate_is_the_harness_s_item_by_item(
    measure, read_samples, read_table, run_stage, snapshot, wide_checkpoint
):
    """The same checkpoint by our task in `evaluate`, and by lm-eval's own task and Python."""
    rows = made_rows("truthfulqa_mc2")
    rows[1]["mc2_targets"]["labels"] = [1, 0, 0, 0, 0]
    text = {"rows.jsonl": lines(rows)}
    theirs = measure(
        {"tasks": ["truthfulqa_mc2"], "data": {"truthfulqa_mc2": {"validation": "rows.jsonl"}}},
        text,
        which=wide_checkpoint,
    )
    inputs = {"snapshot": [snapshot(text)]}
    items = run_stage(Benchmarks, {"task": "truthfulqa_mc2"}, inputs)
    benchmarks = [(items, "benchmarks")]
    ours = run_stage(Evaluate, QUIET, {"checkpoint": [wide_checkpoint], "benchmarks": benchmarks})
    shares = [
        row["value"]
        for row in read_table(ours, "evaluation", "items.parquet").to_pylist()
        if row["metric"] == "right_probability"
    ]
    samples = read_samples(theirs)["truthfulqa_mc2"]
    assert shares == pytest.approx([one["acc"] for one in samples], rel=1e-4)
    assert len(set(shares)) == len(rows)
    (mean,) = (
        row["value"]
        for row in read_table(ours, "evaluation", "results.parquet").to_pylist()
        if row["metric"] == "right_probability"
    )
    assert mean == pytest.approx(
        results_of(read_table, theirs)["truthfulqa_mc2", "accuracy"]["value"]
    )


@pytest.mark.full
def test_variants_of_our_task_are_run_as_the_group_that_is_written_of_them(
    measure, read_table, wide_checkpoint
):
    from stages.examples.lm_eval_task import harness_group
    from stages.examples.task_files import shipped_tasks

    variants = list(shipped_tasks("xnli").values())[:3]
    files = harness_group(variants, "xnli", "cloze", 0)
    rows = made_rows("xnli")
    files |= {f"{one.name}.jsonl": lines(rows[: n + 2]) for n, one in enumerate(variants)}
    scores = results_of(read_table, measure({"tasks": ["xnli_cloze"]}, files, wide_checkpoint))
    hits = [scores[f"{one.name}_cloze", "accuracy"] for one in variants]
    group = scores["xnli_cloze", "accuracy"]
    assert group["count"] == 2 + 3 + 4
    assert group["value"] == pytest.approx(sum(row["value"] * row["count"] for row in hits) / 9)
