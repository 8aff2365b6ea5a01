"""What the stage writes, and what it refuses before it writes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from published_shapes import LLAMA3, OWN, SHAPES

from artifacts_schema.errors import InputError, UsageError
from stages.engine.page import Artifact
from stages.engine.protocol import Upstream
from stages.export_gguf.architecture import NAMES, objection, rope_divisors
from stages.export_gguf.config import GgufConfig
from stages.export_gguf.page import page
from stages.export_gguf.stage import ExportGguf
from stages.pretrain.config import PretrainConfig
from stages.tokenizer.config import TokenizerConfig

REFUSED = {
    "qwen3 tied, windows": "window is 5",
    "smollm3 untied, windows": "window is 4",
    "deepseek_v3": "the family is deepseek_v3",
    "deepseek_v3 plain queries, no normalising": "the family is deepseek_v3",
    "deepseek_v3 yarn": "the family is deepseek_v3",
    "deepseek_v3 without experts": "the family is deepseek_v3",
    "smollm3 heads that do not divide the width": "nope_every is 0",
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_published_shape_is_written_or_refused_by_what_llama_cpp_lacks(name):
    problem = objection(SHAPES[name])
    if name in REFUSED:
        assert problem is not None
        assert REFUSED[name] in problem
    else:
        assert problem is None
        assert name.split()[0] in NAMES


@pytest.mark.parametrize("name", OWN)
def test_a_model_of_no_native_class_is_refused(name):
    assert "the family is ingot" in (objection(OWN[name]) or "")


def test_other_refusals_name_the_field():
    three = SHAPES["smollm3"].model_copy(update={"nope_every": 2})
    assert "nope_every is 2" in (objection(three) or "")
    scaled = SHAPES["qwen3"].model_copy(update={"rope_scaling": LLAMA3})
    assert "reads for llama, not for qwen3" in (objection(scaled) or "")
    yarn = SHAPES["llama yarn"].rope_scaling.model_copy(update={"attention_factor": 1.5})
    own = SHAPES["llama yarn"].model_copy(update={"rope_scaling": yarn})
    assert "rope_scaling.attention_factor is set" in (objection(own) or "")


def test_a_run_refuses_before_it_writes(make_model, make_checkpoint, make_gguf, store):
    checkpoint = make_checkpoint(make_model(window=8, qk_norm="head"))
    with pytest.raises(InputError, match="cannot run this model: window is 8"):
        make_gguf(checkpoint)


def upstream(kind, config, **inputs):
    return Upstream("step", kind, kind, None, config, None, lambda: inputs)


def planned(algorithm="bpe", **model):
    tokenizer = upstream("tokenizer", TokenizerConfig(algorithm=algorithm))
    return upstream("checkpoint", PretrainConfig(model=model), tokenizer=[tokenizer])


def test_a_plan_refuses_what_configs_already_say():
    def check(**inputs):
        ExportGguf.check_plan(GgufConfig(), inputs)

    check(checkpoint=[planned()])
    check(release=[upstream("release", None, checkpoint=[planned()])])
    with pytest.raises(UsageError, match="cannot run this model: window is 16"):
        check(checkpoint=[planned(window=16, qk_norm="head")])
    with pytest.raises(UsageError, match="its model is unigram"):
        check(release=[upstream("release", None, checkpoint=[planned("unigram")])])
    with pytest.raises(UsageError, match="got neither"):
        check()
    with pytest.raises(UsageError, match="not both"):
        check(checkpoint=[planned()], release=[upstream("release", None, checkpoint=[planned()])])


def test_positions_of_llama_3_1_are_divided_as_its_paper_code_does():
    scaling = LLAMA3.model_copy(update={"original_context": 200})
    config = SHAPES["llama 3.1"].model_copy(update={"head_width": 32, "rope_scaling": scaling})
    divisors = rope_divisors(config)
    width = config.head_width
    for n, divisor in enumerate(divisors):
        wavelength = 2 * math.pi * config.rope_base ** (2 * n / width)
        turns = scaling.original_context / wavelength
        if turns > scaling.high_frequency:
            expected = 1.0
        elif turns < scaling.low_frequency:
            expected = scaling.factor
        else:
            share = (turns - scaling.low_frequency) / 3.0
            expected = 1 / ((1 - share) / scaling.factor + share)
        assert divisor == pytest.approx(expected, rel=1e-5)
    assert {1.0, 8.0} < {*divisors.tolist()}


def test_positions_that_are_stretched_stand_in_the_file(make_model, make_checkpoint, make_gguf):
    scaled = make_gguf(make_checkpoint(make_model(rope_scaling=LLAMA3.plain())), type="F32")
    [tensor] = [one for one in scaled.reader.tensors if one.name == "rope_freqs.weight"]
    assert np.array_equal(
        tensor.data, rope_divisors(make_model(rope_scaling=LLAMA3.plain()).config)
    )
    yarn = SHAPES["llama yarn"].rope_scaling
    reader = make_gguf(make_checkpoint(make_model(rope_scaling=yarn.plain()))).reader
    assert reader.fields["llama.rope.scaling.type"].contents() == "yarn"
    assert reader.fields["llama.rope.scaling.factor"].contents() == yarn.factor
    assert reader.fields["llama.rope.scaling.original_context_length"].contents() == 16


def test_the_folder_has_a_modelfile_and_lineage(
    make_family, make_checkpoint, make_gguf, read_input, store
):
    checkpoint = make_checkpoint(make_family("llama"))
    made = make_gguf(checkpoint, name="tiny", type="Q4_0").manifest
    output = read_input(made, "gguf")
    assert output.paths() == ["Modelfile", "ingot.json", "tiny-Q4_0.gguf"]
    text = output.read_bytes("Modelfile").decode()
    assert text.startswith("FROM ./tiny-Q4_0.gguf\nPARAMETER num_ctx 64\n")
    assert 'PARAMETER stop "<|im_end|>"' in text
    lineage = output.read_json("ingot.json")
    assert lineage["checkpoint"]["key"] == checkpoint[0].key
    assert lineage["types"] == {"F16": 2, "F32": 5, "Q4_0": 13, "Q8_0": 1}
    assert made.counts["tensors"] == 21
    figures = {one.title: one for one in page(Artifact(store, made))}
    assert "rounded once already" in figures["K-quants"].text
    assert "llama-cli -m tiny-Q4_0.gguf" in figures["How to run it"].text


def test_templates_reach_the_modelfile_only_where_ingot_wrote_them(
    make_family, make_checkpoint, make_gguf, read_input
):
    model = make_family("llama")
    texts = {}
    for template in (None, "{{ messages }}"):
        made = make_gguf(make_checkpoint(model, template=template), type="F16")
        texts[template] = read_input(made.manifest, "gguf").read_bytes("Modelfile").decode()
        assert ("tokenizer.chat_template" in made.reader.fields) is (template is not None)
    assert 'TEMPLATE """{{ .Prompt }}"""' in texts[None]
    assert "TEMPLATE" not in texts["{{ messages }}"]


def test_the_extra_is_asked_for_where_it_is_absent(monkeypatch):
    monkeypatch.setattr("stages.export_gguf.stage.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="gguf is not installed") as caught:
        ExportGguf.check_plan(GgufConfig(), {"checkpoint": [planned()]})
    assert caught.value.hint == "pip install 'ingot[gguf]'"
