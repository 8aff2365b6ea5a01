"""vLLM behind the protocol: our side by a stand-in, log-probabilities where it is installed."""

import importlib.util
import json
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch

from artifacts_schema.errors import InputError, UsageError
from stages.scoring.generation import Generator, Sampling
from stages.scoring.likelihood import encode_text
from stages.scoring.vllm_writing import VllmWriting

CONTEXT = 64
GREEDY = Sampling(temperature=0)


class StandIn:
    """`vllm.LLM`, as far as it is documented, over the decoder: one text after another."""

    def __init__(self, model, tokenizer):
        self.model, self.tokenizer, self.made, self.requests = model, tokenizer, {}, []

    def __call__(self, **options):
        self.made = options
        return self

    def get_tokenizer(self):
        return self.tokenizer

    def generate(self, prompts, parameters, use_tqdm):
        assert use_tqdm is False
        self.requests += parameters
        return [
            SimpleNamespace(outputs=[self.complete(prompt["prompt_token_ids"], how)])
            for prompt, how in zip(prompts, parameters, strict=True)
        ]

    @torch.no_grad()
    def complete(self, ids, how):
        """The likeliest tokens; stop token ids are in the text, as vLLM leaves ordinary ones."""
        written, logprobs = [], []
        while True:
            scores_V = self.model(torch.tensor([[*ids, *written]]))[0, -1].log_softmax(-1)
            best = scores_V.topk(max(1, how.logprobs))
            token = int(best.indices[0])
            written.append(token)
            logprobs.append(
                {
                    int(one): SimpleNamespace(logprob=float(score))
                    for one, score in zip(best.indices, best.values, strict=True)
                }
            )
            text = self.tokenizer.decode(written, skip_special_tokens=True)
            ended = None
            if token in how.stop_token_ids:
                ended = "stop", token
            elif stops := [stop for stop in how.stop if stop in text]:
                text, ended = text[: text.index(stops[0])], ("stop", stops[0])
            elif len(written) == how.max_tokens:
                ended = "length", None
            if ended:
                return SimpleNamespace(
                    token_ids=written, logprobs=logprobs, text=text,
                    finish_reason=ended[0], stop_reason=ended[1],
                )  # fmt: skip


@pytest.fixture
def small(make_model):
    return make_model(init_std=0.3, context=CONTEXT)


@pytest.fixture
def stand_in(small, tokenizer, monkeypatch):
    stand_in, module = StandIn(small, tokenizer), ModuleType("vllm")
    module.LLM, module.SamplingParams = stand_in, lambda **values: SimpleNamespace(**values)
    monkeypatch.setitem(sys.modules, "vllm", module)
    return stand_in


def test_it_writes_what_the_generator_writes(stand_in, small, tokenizer, tmp_path):
    writing = VllmWriting(tmp_path, context=CONTEXT)
    prompts = [[0, *encode_text(tokenizer, text)] for text in ("Keys", "The capital", "what is")]
    with Generator(small, tokenizer) as generator:
        free = generator.write(prompts, GREEDY, max_new_tokens=10)
        stop = {free[0].ids[4], free[1].ids[2]}
        for options in ({}, {"stop_ids": stop}, {"samples": 2, "first_number": 7}):
            expected = generator.write(prompts, GREEDY, max_new_tokens=10, **options)
            written = writing.write(prompts, GREEDY, max_new_tokens=10, **options)
            for one, other in zip(written, expected, strict=True):
                assert (one.ids, one.ending, one.ties) == (other.ids, other.ending, other.ties)
                assert (one.prompt, one.sample) == (other.prompt, other.sample)
                assert one.text.startswith(other.text)  # less half a character at the end
                assert one.log_probabilities == pytest.approx(other.log_probabilities, abs=1e-4)


def test_a_stop_text_is_told_from_a_stop_id(stand_in, small, tokenizer, tmp_path):
    writing = VllmWriting(tmp_path, context=CONTEXT)
    free = writing.write([[0, 20]], GREEDY, max_new_tokens=10)[0]
    stop = free.text[3:5]
    one = writing.write([[0, 20]], GREEDY, max_new_tokens=10, stop_texts=[stop])[0]
    assert (one.ending, one.text) == ("stop", free.text[: free.text.index(stop)])
    assert free.ending == "length"


def test_it_takes_raw_log_probabilities_no_code_and_a_seed_for_each_text(stand_in, tmp_path):
    writing = VllmWriting(tmp_path, context=CONTEXT)
    assert stand_in.made["trust_remote_code"] is False
    assert stand_in.made["logprobs_mode"] == "raw_logprobs"
    sampling = Sampling(0.7, 0.0, 3, top_k=5, min_p=0.1)
    for numbers in ({}, {"first_number": 1}):
        writing.write([[0], [0]], sampling, max_new_tokens=2, samples=2, **numbers)
    seeds = [one.seed for one in stand_in.requests]
    # Samples of prompts 0 and 1, then of 1 and 2: a number has its seeds in any call.
    assert seeds[2:4] == seeds[4:6]
    assert len(set(seeds)) == 6
    how = stand_in.requests[0]
    assert (how.temperature, how.top_k, how.min_p) == (0.7, 5, 0.1)
    assert 0 < how.top_p < 1e-6
    assert how.ignore_eos
    assert how.logprobs == 0


def test_what_the_context_cannot_hold_is_refused(stand_in, tmp_path):
    writing = VllmWriting(tmp_path, context=CONTEXT)
    with pytest.raises(UsageError) as caught:
        writing.write([[0], [0] * 60], GREEDY, max_new_tokens=5)
    assert caught.value.where == "prompt 1"


def test_a_text_that_was_not_finished_is_an_error(stand_in, tmp_path, monkeypatch):
    writing = VllmWriting(tmp_path, context=CONTEXT)
    aborted = SimpleNamespace(
        token_ids=[], logprobs=[], text="", finish_reason="abort", stop_reason=None
    )
    monkeypatch.setattr(stand_in, "complete", lambda *_: aborted)
    with pytest.raises(InputError) as caught:
        writing.write([[0]], GREEDY, max_new_tokens=5, first_number=4)
    assert caught.value.where == "prompt 4"


@pytest.fixture
def complete(store):
    """`complete(reference, *options)` → the result of `ingot complete` of "Keys", greedily."""
    from click.testing import CliRunner

    from flows.cli.main import main

    def run(reference, *options):
        manifest, output = reference
        name = f"{manifest.key}:{output}"
        fixed = ["--temperature", "0", "--max-tokens", "8", "--json", "--store", store.url]
        return CliRunner().invoke(main, ["complete", name, "Keys", *fixed, *options])

    return run


def test_complete_writes_by_vllm_what_it_writes_itself(
    stand_in, small, tokenizer, given, complete, monkeypatch
):
    from safetensors.torch import save

    from stages.model.huggingface.families import to_config, to_weights
    from stages.tokenizer.training import transformers_config

    release = given(
        "release",
        {
            "config.json": json.dumps(to_config(small.config, bos=0, eos=1, pad=2)).encode(),
            "model.safetensors": save(to_weights(small), metadata={"format": "pt"}),
            "tokenizer.json": tokenizer.to_str().encode(),
            "tokenizer_config.json": json.dumps(transformers_config("llama-bpe")).encode(),
        },
    )
    texts = {}
    for backend in ("torch", "vllm"):
        result = complete(release, "--backend", backend, "--device", "cpu")
        assert result.exit_code == 0, result.output
        texts[backend] = json.loads(result.stdout)["completion"]
    assert texts["vllm"].startswith(texts["torch"])  # less half a character at the end
    assert texts["torch"]
    assert stand_in.made["max_model_len"] == CONTEXT
    monkeypatch.setitem(sys.modules, "vllm", None)
    result = complete(release, "--backend", "vllm")
    assert result.exit_code == 2
    assert "ingot[vllm]" in result.stderr


def test_a_checkpoint_is_nothing_for_vllm(stand_in, checkpoint, complete):
    result = complete(checkpoint, "--backend", "vllm")
    assert result.exit_code == 2
    assert "vLLM reads releases" in result.stderr
    assert stand_in.made == {}


def test_without_it_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(UsageError, match=r"ingot\[vllm\]"):
        VllmWriting(tmp_path, context=CONTEXT)


@pytest.mark.full
@pytest.mark.skipif(
    importlib.util.find_spec("vllm") is None or not torch.cuda.is_available(),
    reason="needs a GPU and vLLM: pip install 'ingot[vllm]'",
)
def test_vllm_itself_has_our_log_probabilities(make_model, tokenizer, tmp_path):
    from safetensors.torch import save_file

    from stages.model.huggingface.families import to_config, to_weights
    from stages.tokenizer.training import transformers_config

    model = make_model(width=128, init_std=0.3, context=CONTEXT)
    config = to_config(model.config, bos=0, eos=1, pad=2)
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(transformers_config("llama-bpe")))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    save_file(to_weights(model), tmp_path / "model.safetensors", metadata={"format": "pt"})
    prompts = [[0, *encode_text(tokenizer, text)] for text in ("Keys", "The capital", "what is")]
    writing = VllmWriting(tmp_path, context=CONTEXT, dtype="float32")
    written = writing.write(prompts, GREEDY, max_new_tokens=20)
    with Generator(model.to("cuda"), tokenizer) as generator:
        expected = generator.write(prompts, GREEDY, max_new_tokens=20)
    for one, other in zip(written, expected, strict=True):
        end = min([*one.ties, *other.ties, 20])
        assert one.ids[:end] == other.ids[:end]
        expectation = pytest.approx(other.log_probabilities[:end], abs=1e-3)
        assert one.log_probabilities[:end] == expectation
