"""Attention backends: each equals the reference, or says what it cannot do."""

import inspect
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from artifacts_schema.errors import UsageError
from stages.model.attention import (
    AttentionBackend,
    Visibility,
    attention_backend,
    choose_attention,
    find_pieces,
)
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.training.rows import Rows

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")

DOCUMENTS = torch.tensor([[0] * 30 + [1] * 50 + [2] * 40 + [-1] * 16, [5] * 136])
PREFIX = torch.tensor([[True] * 10 + [False] * 20 + [True] * 5 + [False] * 101, [False] * 136])


def tiny(**changes) -> ModelConfig:
    values = {"vocabulary_size": 97, "width": 32, "layers": 2, "heads": 4, "kv_heads": 2}
    return ModelConfig(**{**values, "init_std": 0.2, **changes})


def tokens():
    return torch.randint(97, (2, 136), generator=torch.Generator().manual_seed(0))


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("documents", [None, DOCUMENTS])
@pytest.mark.parametrize("prefix", [None, PREFIX])
@pytest.mark.parametrize("window", [None, 20])
def test_flex_attention_equals_the_reference_under_every_mask(documents, prefix, window):
    model = Decoder(tiny(window=window, window_pattern="SL" if window else "S"), seed=1)
    arguments = {"documents_BL": documents, "prefix_BL": prefix}
    with torch.no_grad():
        expected = model(tokens(), **arguments)
        model.set_attention("flex")
        torch.testing.assert_close(model(tokens(), **arguments), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_attention_mixes_values_narrower_than_keys():
    latent = {"kv_rank": 12, "plain_width": 8, "rotary_width": 4, "value_width": 6}
    model = Decoder(tiny(kv_heads=4, latent=latent), seed=1)
    with torch.no_grad():
        expected = model(tokens(), documents_BL=DOCUMENTS)
        model.set_attention("flex")
        found = model(tokens(), documents_BL=DOCUMENTS)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_flex_attention_refuses_to_train_on_a_cpu():
    model = Decoder(tiny(), attention="flex")
    with pytest.raises(UsageError, match=r"'flex'.* CPU"):
        model(tokens())


def test_pieces_begin_where_documents_begin_and_the_host_counts_them_alike():
    pieces = find_pieces(Visibility.from_batch(DOCUMENTS, DOCUMENTS, None))
    # rows of 136: four pieces in the first (padding is one), one in the second
    assert pieces.offsets.tolist() == [0, 30, 80, 120, 136, 272]
    assert (pieces.offsets.dtype, pieces.longest, pieces.window) == (torch.int32, 136, None)
    whole = find_pieces(Visibility.from_batch(DOCUMENTS, None, None))
    assert whole.offsets.tolist() == [0, 136, 272]
    counted = Rows(DOCUMENTS.numpy(), DOCUMENTS.numpy(), DOCUMENTS.numpy()).offsets()
    assert (counted.dtype, counted.tolist()) == (np.int32, pieces.offsets.tolist())


@pytest.mark.parametrize("documents", [DOCUMENTS, None])
def test_a_model_that_is_compiled_as_a_whole_finds_its_pieces_too(documents):
    """As a loop of one's own may do it; `training` compiles blocks, outside of which this runs."""
    compiled = torch.compile(find_pieces, backend="eager")
    visible = Visibility.from_batch(DOCUMENTS, documents, None)
    assert compiled(visible).offsets.tolist() == find_pieces(visible).offsets.tolist()


def test_pieces_that_were_counted_are_taken_as_they_are():
    offsets = torch.tensor([0, 5, 272], dtype=torch.int32)
    visible = Visibility.from_batch(DOCUMENTS, DOCUMENTS, None, offsets)
    assert find_pieces(replace(visible, window=20)) == (offsets, 136, 20)


def test_equal_document_numbers_in_two_rows_are_two_pieces():
    same_BL = torch.zeros(2, 4, dtype=torch.int64)
    assert find_pieces(Visibility.from_batch(same_BL, same_BL, None)).offsets.tolist() == [0, 4, 8]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"head_width": 12}, "no heads of 12 channels"),
        ({"head_width": 264}, "no heads of 264 channels"),
        (
            {
                "kv_heads": 4,
                "latent": {"kv_rank": 8, "plain_width": 8, "rotary_width": 8, "value_width": 24},
            },
            "cannot mix values of 24 channels by heads of 16",
        ),
    ],
)
def test_varlen_refuses_heads_it_does_not_have(changes, complaint):
    with pytest.raises(UsageError, match=complaint):
        Decoder(tiny(**changes), attention="varlen")


def test_varlen_refuses_prefixes_and_devices_and_types_it_does_not_have():
    model = Decoder(tiny(), attention="varlen")
    with pytest.raises(UsageError, match="prefix"):
        model(tokens(), prefix_BL=PREFIX)
    with pytest.raises(UsageError, match="does not run on cpu"):
        model(tokens())
    x = torch.zeros(1, 4, 8, 8)
    pieces = find_pieces(Visibility.from_batch(torch.zeros(1, 8), None, None))
    with pytest.raises(UsageError, match=r"torch\.float32"):
        attention_backend("varlen").attend(x, x, x, pieces)


def kernel_by_its_documentation(
    query, key, value, starts, _, longest, __, *, scale, window_size, enable_gqa
):
    """`torch.nn.attention.varlen.varlen_attn` piece by piece: (left, right) tokens are seen."""
    assert enable_gqa == (query.shape[1] != key.shape[1])
    left, right = window_size
    pieces = []
    for start, end in zip(starts.tolist(), starts.tolist()[1:], strict=False):
        assert end - start <= longest
        distance = torch.arange(end - start)[:, None] - torch.arange(end - start)
        seen = (distance >= -right) & ((distance <= left) if left >= 0 else True)
        each = (x[start:end].transpose(0, 1) for x in (query, key, value))
        mixed = torch.nn.functional.scaled_dot_product_attention(
            *each, attn_mask=seen, scale=scale, enable_gqa=True
        )
        pieces.append(mixed.transpose(0, 1))
    return torch.cat(pieces)


@pytest.mark.parametrize("documents", [None, DOCUMENTS])
@pytest.mark.parametrize("window", [None, 20])
def test_varlen_asks_its_kernel_for_what_the_reference_gives(window, documents, monkeypatch):
    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", kernel_by_its_documentation)
    generator = torch.Generator().manual_seed(2)
    query, key, value = (
        torch.randn(2, heads, 136, 8, generator=generator).bfloat16() for heads in (4, 2, 2)
    )
    visible = replace(Visibility.from_batch(tokens(), documents, None), window=window)
    reference = attention_backend("sdpa")
    expected = reference.attend(query, key, value, reference.prepare(visible), scale=0.3)
    found = attention_backend("varlen").attend(
        query.float(), key, value, find_pieces(visible), scale=0.3
    )
    torch.testing.assert_close(found, expected, atol=1e-2, rtol=1e-2)


def test_the_installed_kernel_takes_what_varlen_gives_it():
    """The floor of torch in pyproject.toml is the first version with all of them."""
    from torch.nn.attention.varlen import varlen_attn

    taken = inspect.signature(varlen_attn).parameters
    ours = inspect.signature(kernel_by_its_documentation).parameters
    keywords = [name for name, one in ours.items() if one.kind is one.KEYWORD_ONLY]
    assert keywords == ["scale", "window_size", "enable_gqa"]
    assert {taken[name].kind for name in keywords} == {inspect.Parameter.KEYWORD_ONLY}
    assert list(taken)[:7] == ["query", "key", "value", "cu_seq_q", "cu_seq_k", "max_q", "max_k"]


class Asked(Exception):
    """What torch's attention was asked for."""


@pytest.mark.parametrize(
    ("device", "dtype", "masked", "heads"),
    [
        ("cuda", torch.bfloat16, True, 4),  # the memory-efficient kernel: no groups
        ("cuda", torch.float32, True, 4),
        ("cuda", torch.float32, False, 4),
        ("cuda", torch.bfloat16, False, 2),  # the flash kernel: groups, no mask
        ("cpu", torch.float32, True, 2),
        ("cpu", torch.bfloat16, False, 2),
    ],
)
def test_heads_are_repeated_on_cuda_where_only_the_math_kernel_has_groups(
    device, dtype, masked, heads, monkeypatch
):
    def asked(query, key, value, *, enable_gqa, **_):
        raise Asked(query.shape[1], key.shape[1], value.shape[1], enable_gqa)

    monkeypatch.setattr("stages.model.attention.F.scaled_dot_product_attention", asked)
    with FakeTensorMode(), torch.no_grad():
        query, key = (torch.empty(2, n, 8, 16, device=device, dtype=dtype) for n in (4, 2))
        mask = torch.empty(2, 1, 8, 8, device=device, dtype=dtype) if masked else None
        with pytest.raises(Asked) as asks:
            attention_backend("sdpa").attend(query, key, key, mask)
    assert asks.value.args == (4, heads, heads, heads == 2)


@pytest.mark.parametrize("documents", [None, DOCUMENTS])
def test_repeated_heads_give_what_grouped_ones_give(documents):
    """As torch documents `enable_gqa`; gradients sum over copies."""
    draw = torch.Generator().manual_seed(2)
    query, key, value = (torch.randn(2, n, 136, 8, generator=draw) for n in (6, 2, 2))
    sdpa, found = attention_backend("sdpa"), []
    mask = sdpa.prepare(Visibility.from_batch(tokens(), documents, None))
    for repeat in (1, 3):
        given = [one.clone().requires_grad_() for one in (query, key, value)]
        heads = [given[0], *(one.repeat_interleave(repeat, dim=1) for one in given[1:])]
        mixed = sdpa.attend(*heads, mask)
        mixed.square().sum().backward()
        found.append([mixed, *(one.grad for one in given)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@cuda
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_dense_mask_on_a_gpu_needs_no_matrix_of_all_scores(dtype):
    """8 heads of 4,096 by 4,096 scores are 256 MiB in bfloat16; the mask alone is 32 MiB."""
    query, key = (torch.randn(1, n, 4096, 64, device="cuda", dtype=dtype) for n in (8, 2))
    mask = torch.zeros(1, 1, 4096, 4096, device="cuda", dtype=dtype)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    attention_backend("sdpa").attend(query, key, key, mask)
    assert torch.cuda.max_memory_allocated() - before < 128 * 2**20


@cuda
@pytest.mark.parametrize("window", [None, 20])
@pytest.mark.parametrize("name", ["varlen", "flex"])
def test_backends_of_a_gpu_equal_the_reference_in_bf16(name, window):
    model = Decoder(tiny(window=window, width=64), seed=1).cuda()
    arguments = {"tokens_BL": tokens().cuda(), "documents_BL": DOCUMENTS.cuda()}
    found = {}
    for backend in ("sdpa", name):
        model.set_attention(backend)
        model.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(**arguments)
        logits.float().square().mean().backward()
        found[backend] = [logits, *(weight.grad for weight in model.parameters())]
    for ours, expected in zip(found[name], found["sdpa"], strict=True):
        # bfloat16 has 8 bits: two layers of rounding in another order
        error = (ours.float() - expected.float()).norm() / expected.float().norm()
        assert error < 0.02


@cuda
def test_flex_attention_is_compiled_once_for_batches_of_other_documents():
    from torch._dynamo.utils import counters

    model = Decoder(tiny(width=64), attention="flex").cuda()
    counters.clear()
    for shift in range(6):
        documents_BL = (torch.arange(136) + 7 * shift).div(40, rounding_mode="floor").expand(2, -1)
        with torch.autocast("cuda", torch.bfloat16):
            model(tokens().cuda(), documents_BL=documents_BL.cuda()).sum().backward()
    assert counters["stats"]["unique_graphs"] <= 2  # the block mask and the attention


def test_unknown_attention_backend_is_refused_with_the_nearest_name():
    with pytest.raises(UsageError, match="did you mean 'sdpa'"):
        Decoder(tiny(), attention="spda")


class Nothing(AttentionBackend):
    """One that keeps no mask at all."""

    name = "nothing"

    def check(self, config):
        pass

    def prepare(self, visible):
        if not visible.is_causal:
            raise self.refuse("keeps no mask", hint="use 'sdpa'")

    def attend(self, query_BHLC, key_BKLC, value_BKLC, mask, scale=None):
        return query_BHLC


def test_a_backend_is_known_by_its_name_and_may_refuse_a_batch(monkeypatch):
    monkeypatch.setattr("stages.model.attention._BACKENDS", {"nothing": Nothing()})
    model = Decoder(tiny(), attention="nothing")
    model(tokens())
    with pytest.raises(UsageError, match="'nothing' keeps no mask"):
        model(tokens(), documents_BL=DOCUMENTS)


@pytest.mark.parametrize(
    ("device", "precision", "prefixes", "changes", "expected"),
    [
        ("cpu", "bf16", False, {}, "sdpa"),
        ("cuda", "bf16", False, {}, "varlen"),
        ("cuda", "fp16", False, {"window": 4}, "varlen"),
        ("cuda", "fp32", False, {}, "flex"),
        ("cuda", "bf16", True, {}, "flex"),
        ("cuda", "bf16", False, {"head_width": 12}, "flex"),
    ],
)
def test_the_backend_that_fits_is_named(device, precision, prefixes, changes, expected):
    name = choose_attention(tiny(**changes), torch.device(device), precision, prefixes=prefixes)
    assert name == expected
    Decoder(tiny(**changes), attention=name)


def test_weights_in_bfloat16_take_every_mask_too():
    exact = Decoder(tiny(window=20, qk_norm="head", logit_softcap=9.0), seed=1)
    half = Decoder(exact.config, seed=1).to(torch.bfloat16)
    with torch.no_grad():
        expected = exact(tokens(), documents_BL=DOCUMENTS, prefix_BL=PREFIX)
        found = half(tokens(), documents_BL=DOCUMENTS, prefix_BL=PREFIX)
    assert found.dtype == torch.bfloat16
    assert (found.float() - expected).norm() / expected.norm() < 0.03  # 8 bits of mantissa
