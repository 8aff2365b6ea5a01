"""Memory and speed of serving, by arithmetic on published shapes."""

from __future__ import annotations

import pytest

from flows.serving.memory_plan import GPUS, cache_bytes, plan_memory
from stages.model.config import ModelConfig
from stages.model.presets import PRESETS

GPU = {gpu.name: gpu for gpu in GPUS}


def published(name, **changes):
    return ModelConfig(**{"vocabulary_size": 128_256, **PRESETS[name], **changes})


def test_llama_3_8b_has_the_cache_of_its_eight_heads_in_32_layers():
    config = published("llama-3-8b")
    # 2 (keys and values) · 32 layers · 8 heads · 128 channels · 2 bytes: 128 KiB a token.
    assert cache_bytes(config, 1) == 131_072
    one, many = plan_memory(config, [1, 64], 8192)
    assert one.weights == 2 * 8_030_261_248
    assert many.cache == 64 * 2**30
    # Untied: of the embedding one row a token is looked up.
    read = one.weights - 2 * 128_256 * 4096
    assert one.read == read
    h100 = GPU["H100 SXM"]
    assert one.tokens_a_second(h100) == pytest.approx(3.35e12 / (read + 2**30))
    assert one.fits(h100)
    assert not many.fits(h100)
    assert many.fits(GPU["H200 SXM"])


def test_latent_attention_and_windows_keep_less():
    # 512 + 64 channels a layer of 61: 70,272 bytes a token (DeepSeek-V3, arXiv 2412.19437).
    assert cache_bytes(published("deepseek-v3"), 1) == 61 * 576 * 2
    plain = published("llama-3-8b")
    windowed = published("llama-3-8b", window=1024, window_pattern="SSSL")
    assert cache_bytes(windowed, 8192) == cache_bytes(plain, 8192) * (3 * 1024 + 8192) // (4 * 8192)


def test_a_batch_reads_the_experts_that_it_may_choose():
    one, many = plan_memory(published("moonlight-16b-a3b"), [1, 64], 128)
    assert one.weights == many.weights
    # 6 of 64 experts for one token, all for 64.
    assert one.read < many.read / 3
