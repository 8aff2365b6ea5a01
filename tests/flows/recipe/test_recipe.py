"""What a recipe may say, and the one clear error for each thing that it may not."""

from __future__ import annotations

import gc

import pytest

from artifacts_schema.errors import InputError, UsageError
from flows.recipe.execute import execute
from flows.recipe.recipe import BUNDLED, find_recipe, load_recipe
from flows.recipe.yaml_document import parse_yaml

HEAD = "snapshots:\n  crawl: {files: ['data/a/*.txt']}\nsteps:\n"
READ = "  read: {stage: lines, inputs: {snapshot: crawl}}\n"
MEASURE = HEAD + READ + "  m: {stage: measure, inputs: {documents: "
CHOOSE = HEAD + READ + "  c: {stage: choose, inputs: {documents: read}, "


@pytest.fixture
def bind(project, open_pipeline):
    """`bind(text, *overrides)`: a recipe of this text beside the demo data."""

    def write(text, *overrides, **more):
        (project / "given.yaml").write_text(text)
        return open_pipeline(*overrides, recipe=project / "given.yaml", **more)

    return write


def test_scalars_are_yaml_1_2():
    # YAML 1.1 reads no as false, 010 as 8, 1:30 as 90, 3e-3 as text and a date as an object.
    values = parse_yaml(
        "a: [no, 010, 1:30, 3e-3, 2024-01-31, 1_000, 0x1F, true, ~, .5]", "x"
    ).values
    assert values["a"] == ["no", 10, "1:30", 0.003, "2024-01-31", 1000, 31, True, None, 0.5]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\na: 2", "x.yaml:2: key 'a' is written twice (first in line 1)"),
        ("a: {b: 1, b: 2}", "x.yaml:1: key 'b' is written twice (first in line 1)"),
        ("- a", "x.yaml:1: expected keys and values"),
        ("a: [1", "x.yaml:1: not YAML"),
        ("1: a", "x.yaml:1: key 1 is not text (put it in quotes)"),
        ("a: &x [*x]", "x.yaml:1: an alias contains itself"),
        ("a: @name", "put a value that begins with @ in quotes"),
        ("a: !!python/object/apply:os.system [ls]", "tag tag:yaml.org,2002:python"),
        ("a: " + "[" * 5000, "x.yaml"),
    ],
)
def test_what_is_not_plain_yaml_is_told_with_its_line(text, expected):
    gc.collect()  # At the end of the stack, what others left could not be finalised.
    with pytest.raises(UsageError) as error:
        parse_yaml(text, "x.yaml")
    assert expected in str(error.value)


def test_an_alias_bomb_is_refused():
    levels = "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9))
    with pytest.raises(UsageError, match="100,000"):
        parse_yaml(f"a0: &a0 [x]\n{levels}", "x.yaml")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("stepz: {}\nsteps:\n" + READ, "yaml:1: stepz: unknown key 'stepz', did you mean 'steps'?"),
        (HEAD + "  read: {stge: lines}\n",
         "steps.read.stge: unknown key 'stge', did you mean 'stage'?"),
        (HEAD + "  read: {stage: line}\n", "no stage 'line', did you mean 'lines'?"),
        (HEAD + "  read: {inputs: {snapshot: crawl}}\n", "steps.read: needs a stage"),
        (HEAD + "  read: {stage: lines}\n", "lines needs input 'snapshot' (snapshot)"),
        (HEAD + "  read: {stage: lines, inputs: {snapshot: crwl}}\n", "did you mean 'crawl'?"),
        (HEAD + "  read: {stage: lines, inputs: {snapshots: crawl}}\n",
         "no input 'snapshots', did you"),
        (MEASURE + "crawl}}\n",
         "role 'documents' takes documents, 'crawl' makes snapshot"),
        (MEASURE + "'read:rejected'}}\n",
         "role 'documents' takes documents, 'read:rejected' is rejected"),
        (MEASURE + "'read:document'}}\n",
         "'read' has no output 'document', did you mean 'documents'?"),
        (MEASURE + "[read, read]}}\n",
         "'documents' takes one, got 2: read, read"),
        (MEASURE + "'read[x]'}}\n", "'read' does not repeat"),
        (MEASURE + "each}}\n", "'each' is valid only"),
        (MEASURE + "'a b'}}\n", "'a b' is not a reference"),
        (MEASURE + "'@gone'}}\n", "no ref 'gone'"),
        (MEASURE + "0123456789abcdef}}\n", "no artifact"),
        (CHOOSE + "config: {lest: {}}}\n",
         "unknown key 'lest', did you mean 'least'?"),
        (CHOOSE + "config: {least: {characters: -1}}}\n",
         "least.characters: input should be greater than or equal to 0 (got -1)"),
        (CHOOSE + "config: {workers: 2}}\n",
         "unknown key 'workers': it says how a stage runs, so write execution.workers"),
        (CHOOSE + "execution: {workers: 0}}\n",
         "workers: input should be greater than or equal to 1"),
        (HEAD + "  read: {stage: lines, for_each: [], inputs: {snapshot: each}}\n",
         "nothing to repeat over"),
        (HEAD + "  read: {stage: lines, for_each: [crawl, crawl], inputs: {snapshot: each}}\n",
         "two items"),
        (HEAD + "  read: {stage: lines, for_each: [crow], inputs: {snapshot: each}}\n",
         "steps.read.for_each: no step or snapshot 'crow', did you mean 'crawl'?"),
        (HEAD + "  read: {stage: lines, for_each: snapshots, inputs: {snapshot: each}}\n"
         "  m: {stage: measure, for_each: [read], inputs: {documents: each}}\n",
         "'read' itself repeats"),
        (HEAD + "  crawl: {stage: lines, inputs: {snapshot: crawl}}\n",
         "both a step and a snapshot"),
        (HEAD + "  each: {stage: lines, inputs: {snapshot: crawl}}\n", "cannot be a name"),
        (HEAD + "  a.b: {stage: lines, inputs: {snapshot: crawl}}\n", "cannot be a name"),
        ("snapshots: {crawl: {file: x}}\nsteps:\n" + READ, "'file', did you mean 'files'?"),
        ("snapshots: {crawl: {}}\nsteps:\n" + READ, "snapshots.crawl: needs files"),
        ("steps: [a]\n", "expected keys and values"),
        ("name: demo\n", "a recipe needs steps"),
        ("", "a recipe needs steps"),
    ],
)  # fmt: skip
def test_a_wrong_recipe_is_one_clear_error(bind, text, expected):
    with pytest.raises(UsageError) as error:
        bind(text)
    assert expected in str(error.value)
    assert "given.yaml" in str(error.value)


def test_every_problem_is_told_at_once_with_its_line(bind):
    text = (
        HEAD
        + READ
        + (
            "  m: {stage: mesure, inputs: {documents: read}}\n"
            "  c:\n    stage: choose\n    config:\n      least: {characters: many}\n"
            "    inputs:\n      documents: m\n      signal: m\n"
        )
    )
    with pytest.raises(UsageError) as error:
        bind(text)
    told = str(error.value)
    assert told.count("\n") == 3
    assert "3 problems:" in told
    assert "given.yaml:5: steps.m.stage: " in told
    assert "given.yaml:8: steps.c.config: least.characters: " in told
    assert "given.yaml:12: steps.c.inputs.signal: " in told


def test_a_circle_is_named(bind):
    text = HEAD + (
        "  a: {stage: choose, inputs: {documents: b}}\n"
        "  b: {stage: choose, inputs: {documents: a}}\n"
    )
    with pytest.raises(UsageError, match=r"(a → b → a|b → a → b)"):
        bind(text)


def test_a_step_that_reads_its_own_output_is_a_circle(bind):
    with pytest.raises(UsageError, match="a → a"):
        bind(HEAD + "  a: {stage: choose, inputs: {documents: a}}\n")


def test_steps_may_be_written_in_any_order(bind):
    text = HEAD + "  c: {stage: choose, inputs: {documents: read}}\n" + READ
    assert [step.instance for step in bind(text).plan().steps] == ["read", "c"]


REPEAT = """\
snapshots:
  A: {files: ['data/a/one.txt']}
  B: {files: ['data/a/two.txt']}
  C: {files: ['data/b/three.txt']}
steps:
  read: {stage: lines, for_each: snapshots, inputs: {snapshot: each}}
"""


def nodes(pipeline, instance, role="documents"):
    return [source.node for source in pipeline.graph.instances[instance].inputs[role]]


def test_steps_that_repeat_alike_meet_one_to_one_and_others_get_all(bind):
    pipeline = bind(
        REPEAT
        + "  m: {stage: measure, for_each: snapshots, inputs: {documents: read}}\n"
        + "  two: {stage: measure, for_each: [C, A], inputs: {documents: 'read[each]'}}\n"
        + "  all: {stage: choose, inputs: {documents: read}}\n"
        + "  one: {stage: choose, inputs: {documents: ['read[C]', 'read[A]']}}\n"
    )
    assert nodes(pipeline, "m[B]") == ["read[B]"]
    assert nodes(pipeline, "two[C]") == ["read[C]"]
    assert nodes(pipeline, "all") == ["read[A]", "read[B]", "read[C]"]
    assert nodes(pipeline, "one") == ["read[C]", "read[A]"]


def test_a_pattern_in_for_each_means_the_snapshots_that_match_in_order(bind):
    pipeline = bind(REPEAT.replace("for_each: snapshots", "for_each: '[CB]'"))
    assert list(pipeline.graph.instances) == ["read[B]", "read[C]"]
    with pytest.raises(UsageError, match=r"for_each: .*crawl-\*"):
        bind(REPEAT.replace("for_each: snapshots", "for_each: crawl-*"))


def test_previous_and_earlier_are_those_before_in_the_order_of_for_each(bind):
    pipeline = bind(
        REPEAT
        + "  c: {stage: choose, for_each: snapshots, inputs: {documents: [read, 'c[previous]']}}\n"
        + "  d: {stage: choose, for_each: snapshots, "
        + "inputs: {documents: ['read[earlier]', read]}}\n"
    )
    assert nodes(pipeline, "c[A]") == ["read[A]"]
    assert nodes(pipeline, "c[C]") == ["read[C]", "c[B]"]
    assert nodes(pipeline, "d[C]") == ["read[A]", "read[B]", "read[C]"]


def test_a_role_that_needs_one_has_none_for_the_first_of_previous(bind):
    with pytest.raises(UsageError, match=r"steps\.\w+.*'documents'"):
        bind(
            REPEAT
            + "  m: {stage: measure, for_each: snapshots, inputs: {documents: 'read[previous]'}}"
        )


def test_each_may_be_one_output_of_a_step(bind):
    text = HEAD + READ + "  c: {stage: choose, inputs: {documents: read}}\n"
    text += "  m: {stage: measure, for_each: [read, 'c:documents'], inputs: {documents: each}}\n"
    assert nodes(bind(text), "m[documents]") == ["c"]


def test_a_ref_and_a_key_of_the_store_are_inputs(bind, inline, store):
    execute(bind("name: first\n" + HEAD + READ), dispatch=inline)
    key = store.ref("first/read").key
    store.set_ref("mine", "lines", key)
    store.set_ref("mine@2.0B", "lines", key)
    stored = ("'@first/read'", "first/read", "first/read:documents", "mine", "mine@2.0B:documents")
    for reference in (*stored, "'@mine'", key[:12], f"'{key}:documents'"):
        pipeline = bind(f"steps:\n  m: {{stage: measure, inputs: {{documents: {reference}}}}}\n")
        assert pipeline.plan().step("m").is_ready


def test_a_step_comes_before_a_name_of_the_store(bind, inline, store):
    execute(bind("name: first\n" + HEAD + READ), dispatch=inline)
    store.set_ref("read", "snapshot", store.ref("first/crawl").key)
    text = HEAD + READ + "  m: {stage: measure, inputs: {documents: read}}\n"
    assert bind(text).graph.instances["m"].waits_for == ["read"]
    with pytest.raises(UsageError, match="takes documents"):
        bind(text.replace("documents: read", "documents: '@read'"))
    with pytest.raises(UsageError, match=r"'first/raed'.*'first/read'"):
        bind(text.replace("documents: read", "documents: first/raed"))


@pytest.mark.parametrize(
    "name", ["quickstart", "flows/recipes/quickstart.yaml", "../flows/recipes/quickstart.yaml"]
)
def test_a_recipe_that_comes_with_ingot_is_found_from_every_folder(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_recipe(name) == BUNDLED / "quickstart.yaml"
    mine = tmp_path / "elsewhere" / "mine.yaml"
    mine.parent.mkdir()
    mine.write_text(f"extends: {name}\nsteps: {{pack: {{config: {{sequence_length: 128}}}}}}\n")
    recipe = load_recipe(mine)
    assert (recipe.name, recipe.steps["pack"].config["sequence_length"]) == ("mine", 128)
    assert "pretrain" in recipe.steps


def test_a_file_comes_before_a_recipe_that_comes_with_ingot_and_a_folder_does_not(tmp_path):
    (tmp_path / "quickstart").mkdir()
    assert find_recipe("quickstart", tmp_path) == BUNDLED / "quickstart.yaml"
    own = tmp_path / "flows" / "recipes" / "quickstart.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("steps: {}")
    assert find_recipe("flows/recipes/quickstart.yaml", tmp_path) == own
    with pytest.raises(UsageError, match="'quickstart'"):
        find_recipe("quickstrat", tmp_path)
    mine = tmp_path / "mine.yaml"
    mine.write_text("extends: quickstrat\n")
    with pytest.raises(UsageError, match=r"mine\.yaml:1: extends: .*'quickstart'"):
        load_recipe(mine)


def test_a_model_by_its_name_takes_no_number_of_the_base(tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.write_text(
        "extends: quickstart\n"
        "steps: {pretrain: {config: {model: {preset: smollm2-135m, context: 256}}}}\n"
    )
    written = {"preset": "smollm2-135m", "context": 256}
    assert load_recipe(mine).steps["pretrain"].config["model"] == written
    overrides = ("pretrain.model.preset=smollm2-135m", "pretrain.model.context=256")
    for order in (overrides, overrides[::-1]):  # What is set beside a preset is not lost.
        changed = load_recipe(find_recipe("quickstart"), order)
        assert changed.steps["pretrain"].config["model"] == written


def test_extends_merges_deeply_and_null_removes(bind, project):
    (project / "base.yaml").write_text(
        "name: base\n"
        + HEAD
        + READ
        + "  c: {stage: choose, config: {note: base, least: {characters: 2}}, "
        "inputs: {documents: read}}\n  m: {stage: measure, inputs: {documents: read}}\n"
    )
    pipeline = bind(
        "extends: base.yaml\nsteps:\n  c: {config: {least: {characters: 3}}}\n  m: null\n"
    )
    assert list(pipeline.graph.instances) == ["read", "c"]
    assert pipeline.graph.recipe.steps["c"].config == {"note": "base", "least": {"characters": 3}}
    assert pipeline.name == "given"


def test_a_null_removes_a_step_from_the_lists_that_name_it(bind, project):
    (project / "base.yaml").write_text(
        HEAD + READ + "  other: {stage: lines, inputs: {snapshot: crawl-A}}\n"
        "  m: {stage: measure, for_each: [read, other], inputs: {documents: each}}\n"
        "  c: {stage: choose, inputs: {documents: [read, 'other:documents'], "
        "signals: ['m[read]', 'm[other]']}}\n"
    )
    graph = bind("extends: base.yaml\nsteps:\n  other: null\n  c: {inputs: {signals: m}}\n").graph
    assert list(graph.instances) == ["read", "m[read]", "c"]
    assert graph.recipe.steps["c"].inputs["documents"] == ("read",)


def test_a_step_that_reads_nothing_but_what_a_null_removed_is_an_error(bind, project):
    (project / "base.yaml").write_text(
        HEAD + READ + "  c: {stage: choose, inputs: {documents: read}}\n"
    )
    with pytest.raises(UsageError, match=r"base\.yaml:\d+: .*'read'"):
        bind("extends: base.yaml\nsteps:\n  read: null\n")


def test_lines_of_a_base_are_its_own(bind, project):
    (project / "base.yaml").write_text(
        HEAD + READ + "  c: {stage: chose, inputs: {documents: read}}\n"
    )
    with pytest.raises(UsageError, match=r"base\.yaml:5: steps\.c\.stage: .*'chose'"):
        bind("extends: base.yaml\n")


def test_a_base_whose_snapshots_are_a_list_is_replaced_by_a_mapping(bind, project):
    (project / "base.yaml").write_text("snapshots: [data]\nsteps:\n" + READ)
    pipeline = bind("extends: base.yaml\nsnapshots: {crawl: {files: [data/a]}}\n")
    assert list(pipeline.snapshots) == ["crawl"]


def test_a_base_that_is_missing_or_extends_back_is_told(bind, project):
    with pytest.raises(InputError, match=r"none\.yaml"):
        bind("extends: none.yaml\n")
    (project / "other.yaml").write_text("extends: given.yaml\n")
    with pytest.raises(UsageError, match=r"given\.yaml → other\.yaml → given\.yaml"):
        bind("extends: other.yaml\n")


def test_set_changes_one_value_before_validation(bind, project):
    text = HEAD + READ + "  c: {stage: choose, inputs: {documents: read}}\n"
    pipeline = bind(
        text,
        "c.least.characters=0x10",
        "c.note=no",
        f"snapshots.crawl.root={project / 'data'}",
        "snapshots.crawl.files=[b]",
    )
    assert pipeline.graph.recipe.steps["c"].config == {"least": {"characters": 16}, "note": "no"}
    assert pipeline.snapshots["crawl"].counts["files"] == 1


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("cc.note=x", "--set cc.note=x: no step 'cc'"),
        ("c=x", "--set c=x: name a config value: c.field=value"),
        ("c.note", "--set c.note: expected path=value"),
        ("c.nte=x", "with --set c.nte=x: unknown key 'nte', did you mean 'note'?"),
        ("c.least.chars=1", "unknown key 'least.chars', did you mean 'characters'?"),
        (
            "c.least.characters=lots",
            "with --set c.least.characters=lots: least.characters: input should",
        ),
        ("c.note.deep=1", "config.note is 'text' and has no 'deep'"),
        ("snapshots.crow.files=x", "no snapshot 'crow', did you mean 'crawl'?"),
        ("snapshots.crawl.fils=x", "a snapshot has no 'fils', did you mean 'files'?"),
        ("c.note={", "--set c.note={"),
    ],
)
def test_a_wrong_set_is_told_with_what_is_near(bind, override, expected):
    text = HEAD + READ + "  c: {stage: choose, config: {note: text}, inputs: {documents: read}}\n"
    with pytest.raises(UsageError) as error:
        bind(text, override)
    assert expected in str(error.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("job: 2", "unknown key 'job', did you mean 'jobs'?"),
        ("jobs: 0", "expected a number of 1 or more"),
        ("stages: {lines: 3}", "p.yaml:1: stages.lines: expected keys and values, got 3"),
        ("stages: [lines]", "p.yaml:1: stages: expected keys and values, got ['lines']"),
        ("stages: {chose: {workers: 1}}", "no stage 'chose', did you mean 'choose'?"),
        ("default: {wrkers: 1}", "unknown key 'wrkers', did you mean 'workers'?"),
        ("resources: {chose: {cpus: 1}}", "p.yaml:1: resources.chose: no stage 'chose', did you"),
        ("resources: {lines: {cpu: 1}}", "resources.lines: unknown key 'cpu', did you mean 'cpus'"),
        ("resources: {lines: {pool: big}}", "p.yaml:1: resources.lines: no pool 'big'"),
        ("resources: {lines: {time: 4 hours}}", "'4 hours' is no time of a minute or more"),
        ("resources: {lines: {memory: much}}", "resources.lines"),
        ("pools: {big: {partition: a}}", "pools.big: a pool needs a type"),
        ("pools: {local: {type: slurm}}", "pools.local: this name is taken"),
        ("resources: {lines: {cpus: 2}}\ndefault: {workers: 4}", "4 workers of 1 threads on 2"),
        ("resources: {lines: {cpus: 2}}\ndefault: {workers: no}", "workers: input should be a"),
    ],
)
def test_a_wrong_profile_is_told(bind, project, text, expected):
    (project / "p.yaml").write_text(text)
    with pytest.raises(UsageError) as error:
        bind(HEAD + READ, profile=str(project / "p.yaml"))
    assert expected in str(error.value)


def test_a_recipe_that_is_not_there_or_not_text_is_told(tmp_path):
    with pytest.raises(InputError, match=r"none\.yaml"):
        load_recipe(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"a: \xff\xfe")
    with pytest.raises(InputError, match="byte 3"):
        load_recipe(tmp_path / "binary.yaml")
    with pytest.raises(InputError, match=str(tmp_path)):
        load_recipe(tmp_path)
