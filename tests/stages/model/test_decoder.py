"""The decoder against `transformers`' Llama, its document mask against documents apart."""

import math

import pytest
import torch

from artifacts_schema.errors import UsageError
from stages.model.attention import AttentionBackend, attention_backend, register_attention
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder, default_positions
from stages.model.huggingface import to_llama_config, to_llama_weights


def tiny(**changes) -> ModelConfig:
    values = {"vocabulary_size": 97, "width": 32, "layers": 2, "heads": 4, "kv_heads": 2}
    return ModelConfig(**{**values, "init_std": 0.2, **changes})


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_logits_equal_those_of_transformers_llama(tied, kv_heads):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = tiny(tied_embeddings=tied, kv_heads=kv_heads, rope_base=500.0, norm_epsilon=1e-3)
    model = Decoder(config, seed=3)
    with torch.no_grad():  # norms that are not 1, so that a norm left out would be seen
        for name, weight in model.named_parameters():
            if "norm" in name:
                weight.uniform_(0.5, 1.5, generator=torch.Generator().manual_seed(len(name)))
    llama = LlamaForCausalLM(LlamaConfig(**to_llama_config(config, bos=0, eos=1, pad=2))).eval()
    missing, unexpected = llama.load_state_dict(to_llama_weights(model), strict=False)
    assert unexpected == []
    assert missing in ([], ["lm_head.weight"])
    tokens_BL = torch.randint(97, (3, 40), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(model(tokens_BL), llama(tokens_BL).logits, atol=1e-5, rtol=0)


def test_packed_documents_give_the_logits_and_gradients_of_documents_apart():
    model = Decoder(tiny(), seed=1)
    generator = torch.Generator().manual_seed(5)
    pieces = [torch.randint(97, (1, length), generator=generator) for length in (5, 9, 1)]
    padding = torch.full((1, 3), 2)
    packed_BL = torch.cat([*pieces, padding], dim=1)
    documents_BL = torch.tensor([[0] * 5 + [1] * 9 + [2] * 1 + [-1] * 3])

    logits_BLV = model(packed_BL, documents_BL=documents_BL)
    logits_BLV[:, :15].square().sum().backward()
    packed = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    model.zero_grad()
    apart = [model(piece) for piece in pieces]
    sum(piece.square().sum() for piece in apart).backward()

    torch.testing.assert_close(logits_BLV[:, :15], torch.cat(apart, dim=1), atol=1e-5, rtol=1e-5)
    assert torch.isfinite(logits_BLV).all()
    for name, weight in model.named_parameters():
        torch.testing.assert_close(packed[name], weight.grad, atol=1e-3, rtol=1e-4, msg=name)


def test_no_token_sees_a_later_one():
    model = Decoder(tiny(), seed=1)
    first, second = torch.arange(12)[None], torch.arange(12)[None].clone()
    second[0, 7:] = 50
    for documents in (None, torch.zeros(1, 12, dtype=torch.int64)):
        with torch.no_grad():
            one, two = model(first, documents_BL=documents), model(second, documents_BL=documents)
        torch.testing.assert_close(one[:, :7], two[:, :7])
        assert not torch.allclose(one[:, 7:], two[:, 7:])


def test_positions_restart_at_each_piece():
    documents_BL = torch.tensor([[0, 0, 0, 1, 1, 2, -1, -1], [7, 7, 7, 7, 7, 7, 7, 7]])
    assert default_positions(documents_BL, documents_BL).tolist() == [
        [0, 1, 2, 0, 1, 0, 0, 1],
        [0, 1, 2, 3, 4, 5, 6, 7],
    ]
    assert default_positions(documents_BL, None).tolist() == [list(range(8))] * 2


def test_initial_weights_have_the_stated_spread():
    config = tiny(vocabulary_size=2000, width=128, layers=8, init_std=0.02)
    model = Decoder(config)
    spread = {name: weight.std().item() for name, weight in model.named_parameters()}
    # a sample standard deviation of n values is within 1 ± 4/sqrt(2n) of the true one; n >= 8192
    assert spread["embedding.weight"] == pytest.approx(0.02, rel=0.03)
    assert spread["blocks.0.attention.key.weight"] == pytest.approx(0.02, rel=0.04)
    for name in ("blocks.3.attention.output.weight", "blocks.3.mlp.down.weight"):
        assert spread[name] == pytest.approx(0.02 / math.sqrt(16), rel=0.04)
    assert (model.norm.weight == 1).all()


def test_weights_follow_from_the_seed_and_leave_the_global_random_state_alone():
    before = torch.get_rng_state()
    one, two, other = Decoder(tiny(), seed=4), Decoder(tiny(), seed=4), Decoder(tiny(), seed=5)
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not torch.equal(one.embedding.weight, other.embedding.weight)


def test_unknown_attention_backend_is_refused_with_the_nearest_name():
    with pytest.raises(UsageError, match="did you mean 'sdpa'"):
        Decoder(tiny(), attention="spda")


def test_a_backend_without_document_masks_refuses_packed_documents(monkeypatch):
    monkeypatch.setattr("stages.model.attention._BACKENDS", {})
    register_attention(AttentionBackend("causal", lambda q, k, v, mask: q, prepare=None))
    with pytest.raises(UsageError, match="registered twice"):
        register_attention(attention_backend("causal"))
    model = Decoder(tiny(), attention="causal")
    tokens_BL = torch.zeros(1, 4, dtype=torch.int64)
    model(tokens_BL)
    with pytest.raises(UsageError, match="'causal' cannot keep packed documents apart"):
        model(tokens_BL, documents_BL=tokens_BL)
