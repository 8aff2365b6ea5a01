"""Compiled blocks: what is compiled, how often, and what is said of it.

With the backend `eager` dynamo traces and guards as ever, but no kernel is built; one slow test
builds them.
"""

import logging

import numpy as np
import pytest
import torch

from artifacts_schema.errors import UsageError
from stages.model.attention import Varlen, find_pieces
from stages.model.config import Experts, ModelShape
from stages.model.decoder import Decoder
from stages.training import losses, runtime
from stages.training.callbacks import StepDone
from stages.training.config import TrainingExecution
from stages.training.losses import autocast
from stages.training.rows import Rows
from stages.training.runtime import (
    CompileWatch,
    checkpoint_activations,
    compile_blocks,
    compiled_graphs,
    graph_breaks,
    should_compile,
    uncompiled,
)


@pytest.fixture(autouse=True)
def forgets():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def decoder(layers=3, **shape):
    base = {"width": 16, "layers": layers, "heads": 2, "kv_heads": 1, "context": 16}
    return Decoder(ModelShape(**{**base, **shape}).with_vocabulary(31), seed=1)


def step(model, rows=4):
    tokens = torch.arange(16 * rows).view(rows, 16) * 7 % 31
    documents = (torch.arange(16) // 8).expand(rows, 16)
    loss = model(tokens, documents_BL=documents).logsumexp(-1).mean()
    loss.backward()
    return loss.detach()


def graphs(model, rows):
    """How many graphs each step with these numbers of rows compiles."""
    found = []
    for count in rows:
        before = compiled_graphs()
        step(model, count)
        found.append(compiled_graphs() - before)
    return found


@pytest.mark.parametrize("mode", ["none", "full", "cheap"])
def test_equal_blocks_share_one_graph_and_each_shape_of_a_batch_has_one(mode):
    """So the kernels of a shape are the same ones, whatever the process saw before."""
    model = decoder()
    checkpoint_activations(model, TrainingExecution(activation_checkpointing=mode))
    compile_blocks(model, backend="eager")
    assert graphs(model, [4, 4, 7, 1, 7, 4, 1]) == [1, 0, 1, 1, 0, 0, 0]


class VarlenHere(Varlen):
    """The backend of a GPU on this device."""

    def prepare(self, visible):
        return find_pieces(visible)


@torch.library.custom_op("ingot_tests::varlen", mutates_args=())
def kernel(query: torch.Tensor, key: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Opaque to torch.compile, as the kernel of a GPU is; it says how many pieces it was given."""
    return query * len(offsets)


kernel.register_fake(lambda query, key, offsets: torch.empty_like(query))
kernel.register_autograd(
    lambda ctx, grad: (grad, None, None), setup_context=lambda ctx, inputs, output: None
)


def varlen_attn(query, key, value, offsets, *_, **__):
    return kernel(query, key, offsets)


@pytest.mark.full
@pytest.mark.parametrize("mode", ["none", "full"])
@pytest.mark.parametrize("counted", [True, False])
def test_one_graph_serves_any_number_of_pieces(mode, counted, monkeypatch):
    """Of windows and none: two kinds of masks, hence two graphs, both made by the first batch."""
    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", varlen_attn)
    model = decoder(layers=4, window=4, window_pattern="SL")
    model.attend_by(VarlenHere())
    checkpoint_activations(model, TrainingExecution(activation_checkpointing=mode))
    compile_blocks(model, backend="aot_eager")
    found = []
    for length in (16, 8, 4, 5, 1, 16):
        documents = np.broadcast_to(np.arange(16) // length, (4, 16))
        offsets = Rows(documents, documents, documents).offsets()
        assert len(offsets) == 4 * -(-16 // length) + 1
        before = compiled_graphs()
        with autocast(torch.device("cpu"), "bf16"):
            logits = model(
                torch.zeros(4, 16, dtype=torch.int64),
                documents_BL=torch.from_numpy(documents.copy()),
                offsets_N1=torch.from_numpy(offsets) if counted else None,
            )
        logits.float().logsumexp(-1).mean().backward()
        found.append(compiled_graphs() - before)
    assert found == [2, 0, 0, 0, 0, 0]


def test_a_deep_model_of_two_kinds_of_layers_compiles_two_kinds():
    model = decoder(layers=24, nope_every=4)
    compile_blocks(model, backend="eager")
    assert graphs(model, [4, 4]) == [2, 0]


def test_blocks_with_experts_compile_once_wherever_tokens_go():
    """In bfloat16 experts are one grouped product: two kinds of blocks, each one whole graph."""
    model = decoder(experts=Experts(experts=4, chosen=2, width=8, first=1))
    compile_blocks(model, backend="eager")
    found = []
    for seed in range(3):
        tokens = torch.randint(31, (4, 16), generator=torch.Generator().manual_seed(seed))
        before = compiled_graphs()
        with autocast(torch.device("cpu"), "bf16"):
            model(tokens).float().logsumexp(-1).mean().backward()
        found.append(compiled_graphs() - before)
    assert found == [2, 0, 0]


@pytest.mark.full
@pytest.mark.parametrize("mode", ["none", "full", "cheap"])
def test_blocks_with_experts_compile_whole_under_activation_checkpointing(mode):
    """Counting the tokens of experts must not end the graph: two kinds of blocks, two graphs."""
    plain = decoder(layers=4, experts=Experts(experts=4, chosen=2, width=8, first=1))
    model = decoder(layers=4, experts=Experts(experts=4, chosen=2, width=8, first=1))
    checkpoint_activations(model, TrainingExecution(activation_checkpointing=mode))
    compile_blocks(model, backend="aot_eager")
    before, breaks = compiled_graphs(), graph_breaks()
    with autocast(torch.device("cpu"), "bf16"):
        assert torch.equal(step(model), step(plain))
    assert compiled_graphs() - before == 2
    assert graph_breaks() == breaks
    for one, two in zip(plain.blocks[1:], model.blocks[1:], strict=True):
        assert one.mlp.router.tokens.sum() == 4 * 16 * 2
        assert torch.equal(one.mlp.router.tokens, two.mlp.router.tokens)
    for left, right in zip(plain.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(left.grad, right.grad)


def test_blocks_that_break_into_parts_are_named_once(caplog):
    """In float32 experts have no grouped product to be traced: their loop runs as written."""
    context = Told()
    watch = CompileWatch(logging.getLogger("test"), context)
    model = decoder(experts=Experts(experts=4, chosen=2, width=8, first=1))
    compile_blocks(model, backend="eager")
    for number in (1, 2):
        step(model)
        watch.step_done(done(number))
    ((kind, text),) = context.alerts
    assert kind == "compile"
    assert "not compiled as a whole" in text
    assert len(context.layouts["graph_breaks"]) == 1


def test_blocks_that_compile_whole_raise_no_alert():
    context = Told()
    watch = CompileWatch(logging.getLogger("test"), context)
    model = decoder()
    compile_blocks(model, backend="eager")
    step(model)
    watch.step_done(done(1))
    assert (context.alerts, context.layouts) == ([], {})


@pytest.mark.parametrize(("precision", "width"), [("fp32", 8), ("bf16", 6)])
def test_experts_without_a_grouped_product_compile_around_it(precision, width):
    """How many rows each expert has is read on the host: compiled, every step would be anew."""
    model = decoder(experts=Experts(experts=4, chosen=2, width=width, first=1))
    compile_blocks(model, backend="eager")
    found = []
    for seed in range(3):
        tokens = torch.randint(31, (4, 16), generator=torch.Generator().manual_seed(seed))
        before = compiled_graphs()
        with autocast(torch.device("cpu"), precision):
            model(tokens).float().logsumexp(-1).mean().backward()
        found.append(compiled_graphs() - before)
    assert found[0]
    assert found[1:] == [0, 0]


def test_losses_are_those_without():
    one, two = decoder(), decoder()
    compile_blocks(two, backend="eager")
    assert torch.equal(step(one), step(two))
    for left, right in zip(one.parameters(), two.parameters(), strict=True):
        torch.testing.assert_close(left.grad, right.grad)


def test_names_and_what_is_saved_are_those_of_the_model():
    plain, found = decoder(), decoder()
    compile_blocks(found, backend="eager")
    step(found)
    assert plain.state_dict().keys() == found.state_dict().keys()


def test_compiled_blocks_see_weights_that_are_swapped():
    """As `Averages.applied` does it."""
    one, two = decoder(), decoder()
    compile_blocks(two, backend="eager")
    step(two)
    for model in (one, two):
        for parameter in model.parameters():
            parameter.data = parameter.data * 2
    assert torch.equal(step(one), step(two))


def test_hooks_on_modules_are_called_only_uncompiled():
    """What looks for the first module with a NaN needs them."""
    model, seen = decoder(), []
    compile_blocks(model, backend="eager")
    step(model)
    model.blocks[1].mlp.gate.register_forward_hook(lambda *_: seen.append(1))
    step(model)
    assert seen == []
    with uncompiled():
        step(model)
    assert seen == [1]


def done(step):
    return StepDone(step, 0, 0, 0.0, 0.0, 0.0, 0, False, 0.0)


class Told:
    def __init__(self):
        self.said, self.alerts, self.layouts = {}, [], {}

    def telemetry(self, **values):
        self.said |= values

    def layout(self, **values):
        self.layouts |= values

    def alert(self, kind, text, **values):
        self.alerts.append((kind, text))


def test_compiling_that_does_not_end_is_said_aloud(monkeypatch, caplog):
    """Each of the first 20 steps compiles something, then steps 21, 23, 24 and 25 of this run."""
    counts = iter([5, *range(6, 26), 26, 26, 28, 29, 31, 31])
    monkeypatch.setattr(runtime, "compiled_graphs", lambda: next(counts))
    context = Told()
    watch = CompileWatch(logging.getLogger("test"), context)
    for step in range(1, 26):
        watch.step_done(done(100 + step))
    watch.ended(None)
    assert [record.getMessage() for record in caplog.records] == [
        "training step 124 compiled 1 more graphs: shapes still change",
        "training step 125 compiled 2 more graphs: shapes still change",
    ]
    assert context.said == {"compiled_graphs": 26}


def test_compiling_is_asked_of_steady_batches_alone(monkeypatch):
    monkeypatch.setattr(runtime, "missing_for_compiling", lambda device: None)
    on, auto = TrainingExecution(compile="on"), TrainingExecution()
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    assert should_compile(on, cpu, steady=True)
    assert should_compile(auto, cuda, steady=True)
    assert not should_compile(auto, cpu, steady=True)
    assert not should_compile(auto, cuda, steady=False)
    assert not should_compile(TrainingExecution(compile="off"), cuda, steady=True)
    with pytest.raises(UsageError, match="compiling is for pretraining"):
        should_compile(on, cuda, steady=False)


def test_without_a_compiler_auto_goes_on_uncompiled_and_on_is_refused(monkeypatch):
    monkeypatch.setattr(runtime, "missing_for_compiling", lambda device: "a compiler (cc)")
    for device in (torch.device("cpu"), torch.device("cuda")):
        assert not should_compile(TrainingExecution(), device, steady=True)
        with pytest.raises(UsageError) as refused:
            should_compile(TrainingExecution(compile="on"), device, steady=True)
        assert refused.value.where == "execution.compile"
        assert "a compiler (cc)" in refused.value.what


def test_a_last_batch_with_fewer_rows_is_filled_up_only_if_compiled(monkeypatch):
    """So that held-out losses of 9 rows by 4 have one shape; losses are those without."""
    monkeypatch.setattr(losses, "_compiled", lambda: losses.differentiated)
    model, seen = decoder(), []
    model.register_forward_pre_hook(lambda _, given: seen.append(len(given[0])))
    tokens = np.arange(9 * 16, dtype=np.int64).reshape(9, 16) % 31
    rows = Rows(tokens, tokens, np.zeros_like(tokens))
    found = []
    for compiled in (False, True):
        how = runtime.Runtime(torch.device("cpu"), "fp32", compiled=compiled, micro_batch=4)
        parts = [how.losses(model, part).detach() for part in rows.split(4)]
        found.append(torch.cat(parts))
    assert seen == [4, 4, 1, 4, 4, 4]
    torch.testing.assert_close(*found)


def test_a_compiled_run_says_so_in_its_layout_and_leaves_torch_as_it_was():
    before = torch._inductor.config.deterministic
    execution = TrainingExecution(device="cpu", threads=1, compile="on", logits_in_memory=99)
    with runtime.runtime(execution, "fp32", 0, steady=True) as how:
        assert torch._inductor.config.deterministic
        layout = how.layout()
    assert (layout["compiled"], layout["logits_in_memory"]) == (True, 99)
    assert torch._inductor.config.deterministic == before
    with runtime.runtime(TrainingExecution(device="cpu", threads=1), "fp32", 0) as how:
        assert not {"compiled", "logits_in_memory"} & how.layout().keys()


@pytest.mark.slow
@pytest.mark.full
def test_kernels_that_are_built_give_the_loss_to_rounding():
    one, two = decoder(layers=1), decoder(layers=1)
    compile_blocks(two)
    torch.testing.assert_close(step(one), step(two), rtol=1e-6, atol=1e-6)
    for left, right in zip(one.parameters(), two.parameters(), strict=True):
        torch.testing.assert_close(left.grad, right.grad, rtol=1e-4, atol=1e-6)
